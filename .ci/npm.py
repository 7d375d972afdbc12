"""Makes the packages for npm: the client with its command, and the server of one platform.

The client is what clients/typescript/run has built. It names the packages of all platforms as
optional dependencies, of which npm installs the one that fits. The same files give the same
bytes.
"""

import json
import sys
import tempfile
from pathlib import Path

import image
import wheel

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "clients/typescript"
CPUS = {"amd64": "x64", "arm64": "arm64"}


def manifest() -> dict[str, object]:
    """Return the package.json of the client's tree."""
    made = json.loads((CLIENT / "package.json").read_text())
    if made["version"] != wheel.version():
        sys.exit(f"clients/typescript has version {made['version']}, clients/python another one")
    return made


def pack(folder: Path, about: dict[str, object], files: dict[str, Path], when: int) -> Path:
    """Write a package as `npm pack` names it, and return its path."""
    name = str(about["name"]).removeprefix("@").replace("/", "-")
    target = folder / f"{name}-{about['version']}.tgz"
    with tempfile.TemporaryDirectory() as scratch:
        described = Path(scratch, "package.json")
        described.write_text(json.dumps(about, indent=2) + "\n")
        inside = files | {"package.json": described, "LICENSE": ROOT / "LICENSE"}
        archive = image.layer({f"package/{name}": file for name, file in inside.items()}, when)
    target.write_bytes(image.packed(archive))
    return target


def client(folder: Path, when: int) -> Path:
    """Write the client."""
    about = manifest()
    about.pop("devDependencies")
    about["optionalDependencies"] = {
        f"@loom-bridge/linux-{cpu}": about["version"] for cpu in CPUS.values()
    }
    kept = [CLIENT / "README.md"]
    for part in about["files"]:
        kept += [file for file in CLIENT.glob(f"{part}/**/*") if file.is_file()]
    if not (CLIENT / "build/index.js").exists():
        sys.exit("clients/typescript is not built: run make ts-build")
    return pack(folder, about, {str(file.relative_to(CLIENT)): file for file in kept}, when)


def server(folder: Path, arch: str, files: dict[str, Path], when: int) -> Path:
    """Write the server's package: the binary with the model beside it, and what belongs to them."""
    cpu = CPUS[arch]
    about = {
        "name": f"@loom-bridge/linux-{cpu}",
        "version": manifest()["version"],
        "description": f"The server of Loom Bridge for Linux on {cpu}: loom-bridge starts it",
        "license": "Apache-2.0",
        "os": ["linux"],
        "cpu": [cpu],
        "libc": ["glibc"],
    }
    places = {name if name == "NOTICE" else f"bin/{name}": file for name, file in files.items()}
    return pack(folder, about, places, when)
