"""Writes the wheel that brings the server to `pip install loombridge[server]`.

The wheel has the binary of `make build-static` with the model of embeddings beside it, and
commands of that name. Two runs over the same files give the same bytes. The platform in its
name is the oldest C library that has what the binary needs.

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


def platform(binary: Path) -> str:
    """Return the platform of a binary, by the newest symbol of the C library that it needs.

    Raises:
        SystemExit: it needs another library, which a wheel must not take from the system.
    """
    dump = ["objdump", "--private-headers", "--dynamic-syms", str(binary)]
    said = subprocess.run(dump, stdout=subprocess.PIPE, text=True, check=True).stdout
    foreign = set(re.findall(r"NEEDED +(\S+)", said)) - {"libc.so.6", "libm.so.6"}
    foreign = {name for name in foreign if not name.startswith("ld-linux")}
    if foreign:
        sys.exit(f"{binary} needs {', '.join(sorted(foreign))}: build it by `make build-static`")
    major, minor = max(
        (int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", said)
    )
    machine = MACHINES[int.from_bytes(binary.read_bytes()[18:20], "little")]
    return f"manylinux_{major}_{minor}_{machine}"


def digest(data: bytes) -> str:
    """Return a digest as wheels write it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def write(folder: Path, binary: Path, beside: list[Path]) -> Path:
    """Write the wheel, and return its path."""
    number, tag = version(), f"py3-none-{platform(binary)}"
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
    wheel = f"Wheel-Version: 1.0\nGenerator: loom-bridge\nRoot-Is-Purelib: false\nTag: {tag}\n"
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
    path = folder / f"{NAME}-{number}-{tag}.whl"
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
