"""Build the console from its sources, with the bundler of go.mod and packages of npm.

    build.py OUT [GO]
    build.py --packages

The packages are named in packages.json by version and digest, and kept in the user's
cache; no Node.js is needed. OUT is the folder that server/console embeds.
With --packages it prints where the packages are.
"""

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "server/console/src"
REGISTRY = os.environ.get("NPM_CONFIG_REGISTRY", "https://registry.npmjs.org").rstrip("/")
MOST = 64 << 20  # bytes that a package takes, packed or not
BUNDLED = ("preact", "@preact/signals", "@preact/signals-core")


def download(name: str, version: str, integrity: str) -> bytes:
    """Return the archive of a package, which has the digest that is named."""
    url = f"{REGISTRY}/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310  https, or as configured
        archive = answer.read(MOST)
    kind, _, wanted = integrity.partition("-")
    if kind != "sha512" or hashlib.sha512(archive).digest() != base64.b64decode(wanted):
        sys.exit(f"build.py: {name} {version} does not have the digest of packages.json")
    return archive


def unpack(archive: bytes, folder: Path) -> None:
    """Write the files of a package, and nothing outside its folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            path = PurePosixPath(*PurePosixPath(member.name).parts[1:])
            content = tar.extractfile(member) if member.isfile() else None
            if content is None or ".." in path.parts:
                continue
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())


def packages() -> Path:
    """Return the folder with all packages, as a bundler looks for them."""
    named = (HERE / "packages.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "loom-bridge"
    kept = cache / f"console-{hashlib.sha256(named).hexdigest()[:16]}"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(dir=cache))
        for name, package in json.loads(named).items():
            archive = download(name, package["version"], package["integrity"])
            unpack(archive, new / "node_modules" / name)
        try:
            new.rename(kept)
        except OSError:  # another build was first
            shutil.rmtree(new)
    return kept / "node_modules"


def licences(modules: Path) -> str:
    """Return what the licences of the bundled packages ask to be told."""
    parts = ["The console holds these packages of npm.\n"]
    for name in BUNDLED:
        (text,) = (modules / name).glob("LICENSE*")
        parts.append(f"{name}\n\n{text.read_text().strip()}\n")
    return ("\n" + "-" * 80 + "\n\n").join(parts)


def build(out: Path, go: str) -> None:
    """Write what the server embeds."""
    modules = packages()
    out.mkdir(parents=True, exist_ok=True)
    command = [
        go,
        "tool",
        "esbuild",
        "main.tsx",
        "--bundle",
        "--minify",
        f"--outdir={out.absolute()}",
    ]
    command += ["--format=esm", "--target=es2022", "--charset=utf8", "--legal-comments=none"]
    command += ["--jsx=automatic", "--jsx-import-source=preact", "--entry-names=console"]
    command += ["--log-level=warning", '--define:process.env.NODE_ENV="production"']
    tidy = {k: v for k, v in os.environ.items() if k != "NODE_PATH"}
    subprocess.run(command, cwd=SOURCES, env={**tidy, "NODE_PATH": str(modules)}, check=True)
    for name in ("index.html", "icon.svg"):
        shutil.copyfile(SOURCES / name, out / name)
    (out / "LICENSES.txt").write_text(licences(modules))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if sys.argv[1] == "--packages":
        print(packages())
    else:
        build(Path(sys.argv[1]), *(sys.argv[2:] or ["go"]))
