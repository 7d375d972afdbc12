"""Says whether a version may be released from this tree.

- All manifests have one version: that of clients/python/pyproject.toml. A VERSION without a
  commit behind it is a release, and theirs.
- The changelog begins with what a release brings, and does not call it unreleased.
- IMAGE is what loombridge.v1 is, and breaks nothing that the image of the last release has.
- The test of upgrades has a store of the last release.

Releases are tags vX.Y.Z. The last one is the newest that HEAD comes from, but its own.

Usage: releasable.py VERSION IMAGE BUF
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import wheel

ROOT = Path(__file__).resolve().parent.parent
PROTOS = "proto/loombridge/v1"
STORES = "server/cmd/loom-bridge-server/testdata/stores"


def manifests() -> Iterator[tuple[str, str]]:
    """Yield where a version stands, and which."""
    python = (ROOT / "clients/python/pyproject.toml").read_text()
    for pinned in re.findall(r'"loombridge-server==([^"]+)"', python):
        yield "clients/python/pyproject.toml, extra server", pinned
    folder = ROOT / "clients/typescript"
    yield (
        "clients/typescript/package.json",
        json.loads((folder / "package.json").read_text())["version"],
    )
    lock = json.loads((folder / "package-lock.json").read_text())
    yield "clients/typescript/package-lock.json", lock["version"]
    yield "clients/typescript/package-lock.json, packages", lock["packages"][""]["version"]


def numbers(version: str) -> Iterator[str]:
    """Yield which manifests have another version than all should."""
    wanted = wheel.version()
    if "+" not in version and version != wanted:
        yield f"VERSION is {version}, but clients/python/pyproject.toml has {wanted}"
    for place, found in manifests():
        if found != wanted:
            yield f"{place} has {found}, but clients/python/pyproject.toml has {wanted}"


def changelog(version: str) -> Iterator[str]:
    """Yield what the changelog lacks for a release."""
    line = re.escape(version.rpartition(".")[0])
    first = re.search(r"^## .*", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    heading = first.group() if first else ""
    if not re.match(rf"## {line}(\.\d+)?\b", heading) or "not released" in heading:
        yield f"CHANGELOG.md begins with {heading!r}: head what is new `## {version} (date)`"


def last(version: str) -> str:
    """Return the tag of the release before; empty for none."""
    command = ["git", "describe", "--tags", "--abbrev=0", "--match=v[0-9]*"]
    command.append(f"--exclude=v{version}")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def protos(image: Path, buf: Path, before: str) -> Iterator[str]:
    """Yield how the API breaks what was released."""
    with tempfile.TemporaryDirectory() as scratch:
        new, old = Path(scratch, "new.binpb"), Path(scratch, "old.binpb")
        build = [buf, "build", "--path", PROTOS, "--exclude-source-info", "-o", new]
        subprocess.run(build, cwd=ROOT, check=True)
        if new.read_bytes() != image.read_bytes():
            yield f"{image} is not what {PROTOS} says: run make proto-release"
        if before:
            show = ["git", "show", f"{before}:{image}"]
            old.write_bytes(subprocess.run(show, cwd=ROOT, capture_output=True, check=True).stdout)
            breaking = [buf, "breaking", new, "--against", old]
            done = subprocess.run(breaking, cwd=ROOT, capture_output=True, text=True, check=False)
            for line in (done.stdout + done.stderr).splitlines():
                yield f"against {before}: {line}"


def main(version: str, image: str, buf: str) -> int:
    """Print what is wrong; return the exit code."""
    problems = [*numbers(version)]
    before = last(version)
    if "+" not in version:
        problems += changelog(version)
        if before and not (ROOT / STORES / f"{before.removeprefix('v')}.zip").exists():
            problems.append(f"{STORES} has no store of {before}: .ci/store.py makes it")
    problems += protos(Path(image), Path(buf).absolute(), before)
    print("\n".join(problems) or f"{version} may be released after {before or 'nothing'}")
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
