"""Writes the wheel that brings the server to `pip install loombridge[server]`.

The wheel has the binary of `make build-static` with the model of embeddings beside it, and
commands of that name. Two runs over the same files give the same bytes. The binary needs no
library, so its platforms are every Linux of its machine that pip knows.

Usage: wheel.py FOLDER BINARY FILE...
"""

import base64
import hashlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAME = "loombridge_server"
PROGRAM, ORDINARY = 0o100755, 0o100644
MACHINES = {62: "x86_64", 183: "aarch64"}
"""By their numbers in ELF's header."""
PLATFORMS = ("manylinux_2_17", "musllinux_1_1")
"""The oldest ones with glibc and with musl that pip of Python 3.11 installs for."""
EPOCH = (1980, 1, 1, 0, 0, 0)

MODULE = '''"""The Loom Bridge server as a package."""

import os
import sys
from pathlib import Path

BINARY = Path(__file__).parent / "loom-bridge-server"


def main() -> None:
    """Become the server, with the arguments of this process."""
    os.execv(BINARY, ["loom-bridge-server", *sys.argv[1:]])


if __name__ == "__main__":
    main()
'''

COMMANDS = f"""[console_scripts]
loom-bridge-server = {NAME}:main
loombridge-server = {NAME}:main
"""


def version() -> str:
    """Return the version of the Python client: the two go together."""
    project = tomllib.loads((ROOT / "clients/python/pyproject.toml").read_text())["project"]
    return project["version"]


def machine(binary: Path) -> str:
    """Return the machine of a binary.

    Raises:
        SystemExit: it needs a library, which a package must not take from the system.
    """
    dump = ["objdump", "--private-headers", str(binary)]
    said = subprocess.run(dump, stdout=subprocess.PIPE, text=True, check=True).stdout
    if foreign := re.findall(r"NEEDED +(\S+)", said):
        sys.exit(f"{binary} needs {', '.join(foreign)}: build it by `make build-static`")
    return MACHINES[int.from_bytes(binary.read_bytes()[18:20], "little")]


def digest(data: bytes) -> str:
    """Return a digest as wheels write it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write(folder: Path, binary: Path, beside: list[Path]) -> Path:
    """Write the wheel, and return its path."""
    number, of = version(), machine(binary)
    platforms = [f"{name}_{of}" for name in PLATFORMS]
    about = f"{NAME}-{number}.dist-info"
    metadata = (
        "Metadata-Version: 2.4\n"
        f"Name: {NAME.replace('_', '-')}\n"
        f"Version: {number}\n"
        "Summary: The Loom Bridge server: memory, context, tools and events for agents\n"
        "License-Expression: Apache-2.0\n"
        "License-File: LICENSE\n"
        "Requires-Python: >=3.11\n"
    )
    wheel = "Wheel-Version: 1.0\nGenerator: loom-bridge\nRoot-Is-Purelib: false\n"
    wheel += "".join(f"Tag: py3-none-{name}\n" for name in platforms)
    files = [(f"{NAME}/__init__.py", MODULE.encode(), ORDINARY)]
    files += [(f"{NAME}/{binary.name}", binary.read_bytes(), PROGRAM)]
    files += [(f"{NAME}/{file.name}", file.read_bytes(), ORDINARY) for file in beside]
    files += [
        (f"{about}/METADATA", metadata.encode(), ORDINARY),
        (f"{about}/WHEEL", wheel.encode(), ORDINARY),
        (f"{about}/entry_points.txt", COMMANDS.encode(), ORDINARY),
        (f"{about}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes(), ORDINARY),
    ]
    record = f"{about}/RECORD"
    lines = "".join(f"{name},{digest(data)},{len(data)}\n" for name, data, _ in files)
    files.append((record, f"{lines}{record},,\n".encode(), ORDINARY))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}-{number}-py3-none-{'.'.join(platforms)}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, which has modes
            archive.writestr(entry, data)
    return path


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    made = write(Path(sys.argv[1]), Path(sys.argv[2]), [Path(file) for file in sys.argv[3:]])
    print(f"{made} ({made.stat().st_size >> 20} MiB)")
