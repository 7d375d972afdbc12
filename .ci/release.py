"""Writes what a release has, from a binary of `make build-static`.

Into FOLDER, where wheels may lie already: an archive to unpack, a package for Debian and one
for RPM, two for npm, a container image, a bill of materials, the checksums of all, and with a
KEY of ssh-keygen their signature, which users check by its public half in SIGNERS. The same
commit gives the same bytes on the same system.

What was compiled in another root, which LINKED_IN names, gets no image.

Usage: [LINKED_IN=ROOT] release.py FOLDER VERSION BINARY MODEL [KEY SIGNERS]
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import image
import model
import npm
import sbom
import wheel

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "server/cmd/loom-bridge-server/deploy/package"
NAME = "loom-bridge"
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
USER = "10001"
UNWANTED = ("doc", "info", "locale", "man")
"""Folders of /usr/share that the image's Debian is made without."""


def epoch() -> int:
    """Return when what is released was committed, in seconds."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or sbom.said("git", "-C", str(ROOT), "log", "-1", "--format=%ct"))


def notices(parts: list[sbom.Part], beside: Path) -> bytes:
    """Return the licences of everything that a release carries, each text once."""
    texts: dict[str, list[str]] = {beside.read_text(): ["the model of embeddings"]}
    for part in parts:
        for file in part.licences:
            of = texts.setdefault(file.read_text(errors="replace"), [])
            of.append(f"{part.name} {part.version}")
    rule = "=" * 80
    blocks = (f"{rule}\n{', '.join(of)}\n{rule}\n\n{text}" for text, of in texts.items())
    return "\n".join(blocks).encode()


def packages(folder: Path, variables: dict[str, str], files: dict[str, Path]) -> None:
    """Write the packages for Debian and RPM."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, file in files.items():
            shutil.copy(file, Path(scratch, name))
        for kind in ("deb", "rpm"):
            command = ["nfpm", "package", "-f", "nfpm.yaml", "-p", kind, "-t", folder.resolve()]
            quiet = subprocess.DEVNULL
            subprocess.run(
                command, cwd=scratch, env=os.environ | variables, check=True, stdout=quiet
            )


def system(arch: str, when: int) -> bytes:
    """Return a small Debian with the user of the image, from this machine's sources."""
    user = f'useradd --root "$1" --uid {USER} --create-home --home-dir /var/lib/loom loom'
    command = ["mmdebstrap", "--quiet", "--variant=essential", "--include=ca-certificates"]
    command += [f"--architectures={arch}", f"--customize-hook={user}"]
    command += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in UNWANTED]
    command += ["bookworm", "-", "/etc/apt/sources.list.d/debian.sources"]
    env = os.environ | {"SOURCE_DATE_EPOCH": str(when)}
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout


def start(version: str, made: str) -> dict[str, object]:
    """Return how the image starts, and its labels."""
    label = "org.opencontainers.image."
    second = 1_000_000_000
    return {
        "User": USER,
        "WorkingDir": "/var/lib/loom",
        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/var/lib/loom", "TMPDIR=/var/lib/loom"],
        "Entrypoint": ["loom-bridge-server"],
        "ExposedPorts": {"50051/tcp": {}, "9090/tcp": {}},
        "Volumes": {"/var/lib/loom": {}},
        "StopSignal": "SIGTERM",
        "Labels": {
            f"{label}title": "loom-bridge-server",
            f"{label}description": "Memory, context, tools and events for agents",
            f"{label}version": version,
            f"{label}created": made,
            f"{label}licenses": "Apache-2.0",
            f"{label}base.name": "debian:bookworm",
        },
        "Healthcheck": {
            "Test": ["CMD", "loom-bridge-server", "health"],
            "Interval": 10 * second,
            "Timeout": 6 * second,  # a second longer than it waits for an answer
            "StartPeriod": 5 * second,
            "Retries": 3,
        },
    }


def sums(folder: Path) -> Path:
    """Write the checksums of what lies in a folder, where the old ones' signature goes."""
    target = folder / "SHA256SUMS"
    Path(f"{target}.sig").unlink(missing_ok=True)
    files = sorted(file for file in folder.iterdir() if not file.name.startswith(target.name))
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    target.write_text("".join(lines))
    return target


def sign(file: Path, key: str, signers: Path) -> None:
    """Sign a file, and check it as those do who have only the public halves."""
    made = Path(f"{file}.sig")
    keygen = ["ssh-keygen", "-q", "-Y"]
    subprocess.run([*keygen, "sign", "-f", key, "-n", NAME, file], check=True)
    verify = [*keygen, "verify", "-f", signers, "-I", NAME, "-n", NAME, "-s", made]
    good = signers.is_file() and not subprocess.run(verify, input=file.read_bytes()).returncode
    if not good:
        made.unlink()
        sys.exit(f"{signers} needs a line for the public half of {key}: {NAME} ssh-ed25519 AAAA…")


def main(
    target: str, version: str, server: str, weights: str, key: str = "", signers: str = ""
) -> None:
    """Write everything."""
    folder, binary, beside = Path(target), Path(server), Path(weights)
    folder.mkdir(parents=True, exist_ok=True)
    arch, when = ARCH[wheel.machine(binary)], epoch()
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
    root = Path(os.environ.get("LINKED_IN", "/"))
    parts = sbom.modules(binary) + sbom.bundled(ROOT)
    parts += sbom.libraries(Path(f"{binary}.map"), arch, root)
    name, number = model.PACKAGE.split("==")
    parts.append(sbom.Part(name, number, f"pkg:pypi/{name}@{number}", "beside", (beside.name,), ()))
    base = f"{NAME}-{version}-linux-{arch}"
    bill = folder / f"{base}.sbom.json"
    bill.write_text(json.dumps(sbom.cyclonedx(version, arch, parts, made), indent=1) + "\n")
    with tempfile.TemporaryDirectory() as scratch:
        notice = Path(scratch, "NOTICE")
        notice.write_bytes(notices(parts, beside.with_suffix(".NOTICE")))
        files = {file.name: file for file in (binary, beside, notice, ROOT / "LICENSE")}
        about = {file.name: file for file in PACKAGE.iterdir()}

        wanted = ("README", "config.toml", "loom-bridge.service")
        unpacked = files | {name: about[name] for name in wanted} | {"sbom.json": bill}
        packed = image.layer({f"{base}/{name}": file for name, file in unpacked.items()}, when)
        (folder / f"{base}.tar.gz").write_bytes(image.packed(packed))

        npm.write(folder, binary, [beside, notice])

        variables = {"VERSION": version, "ARCH": arch}
        packages(folder, variables | {"SOURCE_DATE_EPOCH": str(when)}, files | about)

        if root == Path("/"):
            tags = [f"loom-bridge-server:{tag}" for tag in (version.replace("+", "-"), "latest")]
            places = {f"usr/local/bin/{file.name}": file for file in (binary, beside)}
            own = image.layer(places | {f"usr/share/doc/{NAME}/NOTICE": notice}, when)
            image.write(
                folder / f"{base}.image.tar",
                [system(arch, when), own],
                start(version, made),
                {"os": "linux", "architecture": arch},
                tags,
                (when, made),
            )
    listing = sums(folder)
    if key:
        sign(listing, key, Path(signers))
    print(listing.read_text(), end="")
    print("Signed." if key else "NOT SIGNED: only SIGN_KEY=FILE gives users something to check by.")
    print(f"This was for Linux on {arch}; macOS: `make build-macos`; for Windows nothing is built.")


if __name__ == "__main__":
    if len(sys.argv) not in (5, 7):
        sys.exit(__doc__)
    main(*sys.argv[1:])
