"""Writes the packages for npm: the client with its command, and the server of one platform.

The client is what clients/typescript/run has built. It names the packages of all platforms as
optional dependencies, of which npm installs the one that fits. The server's package has the binary
of `make build-static` with the model of embeddings beside it. The same files give the same bytes.

Usage: npm.py FOLDER BINARY FILE...
"""

import json
import sys
import tempfile
from pathlib import Path

import image
import wheel

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "clients/typescript"
CPUS = {"x86_64": "x64", "aarch64": "arm64"}
"""As npm calls them."""
WHEN = 499162500
"""The time of all files, as `npm pack` has it."""


def pack(folder: Path, about: dict[str, object], files: dict[str, Path]) -> Path:
    """Write a package as `npm pack` names it, and return its path."""
    name = str(about["name"]).removeprefix("@").replace("/", "-")
    target = folder / f"{name}-{about['version']}.tgz"
    with tempfile.TemporaryDirectory() as scratch:
        described = Path(scratch, "package.json")
        described.write_text(json.dumps(about, indent=2) + "\n")
        inside = files | {"package.json": described, "LICENSE": ROOT / "LICENSE"}
        archive = image.layer({f"package/{name}": file for name, file in inside.items()}, WHEN)
    target.write_bytes(image.packed(archive))
    return target


def write(folder: Path, binary: Path, beside: list[Path]) -> list[Path]:
    """Write both packages, and return their paths."""
    client = json.loads((CLIENT / "package.json").read_text())
    version = client["version"]
    if version != wheel.version():
        sys.exit(f"clients/typescript has version {version}, clients/python {wheel.version()}")
    if not (CLIENT / "build/index.js").exists():
        sys.exit("clients/typescript is not built: run make ts-build")
    cpu = wheel.machine(binary)
    client["optionalDependencies"] = {f"@loom-bridge/linux-{one}": version for one in CPUS.values()}
    del client["devDependencies"]
    kept = [file for part in client["files"] for file in CLIENT.glob(f"{part}/**/*")]
    kept = [CLIENT / "README.md", *(file for file in kept if file.is_file())]
    server = {
        "name": f"@loom-bridge/linux-{CPUS[cpu]}",
        "version": version,
        "description": f"The server of Loom Bridge for Linux on {cpu}: loom-bridge starts it",
        "license": "Apache-2.0",
        "os": ["linux"],
        "cpu": [CPUS[cpu]],
    }
    folder.mkdir(parents=True, exist_ok=True)
    return [
        pack(folder, client, {str(file.relative_to(CLIENT)): file for file in kept}),
        pack(folder, server, {f"bin/{file.name}": file for file in (binary, *beside)}),
    ]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for made in write(Path(sys.argv[1]), Path(sys.argv[2]), [Path(file) for file in sys.argv[3:]]):
        print(f"{made} ({made.stat().st_size >> 10} KiB)")
