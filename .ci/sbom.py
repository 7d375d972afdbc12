"""Names what a binary is made of, from what linked it.

Modules come from the binary itself, libraries of the system from the linker's map: an archive
counts if a member of it was linked in. Debian's packages say whose it is, and its version.
"""

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

BUILD_HOST = "debian-12"


@dataclass(frozen=True)
class Part:
    """A thing that was linked in, or lies beside."""

    name: str
    version: str
    purl: str
    linked: str
    """How: "go", "static", "bundled" by the console, or "beside" the binary."""
    files: tuple[str, ...]
    licences: tuple[Path, ...]
    """Files with its licence."""


def said(*argv: str) -> str:
    """Return what a command prints."""
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


def modules(binary: Path) -> list[Part]:
    """Return Go's own library, and the modules that a binary was built from."""
    text = said("go", "version", "-m", str(binary))
    found = re.findall(r"^\t(?:dep|=>)\t(\S+)\t(\S+)\t", text, re.MULTILINE)
    places = said("go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", *(path for path, _ in found))
    folders = dict(line.split("\t") for line in places.splitlines())
    (release,) = re.findall(r": go(\S+)", text.splitlines()[0])
    root = Path(said("go", "env", "GOROOT").strip())
    parts = [Part("std", release, f"pkg:golang/std@{release}", "go", (), (root / "LICENSE",))]
    for path, version in found:
        terms = re.compile(r"(?i)(licen[cs]e|copying|notice)")
        licences = tuple(
            file for file in sorted(Path(folders[path]).iterdir()) if terms.match(file.name)
        )
        parts.append(Part(path, version, f"pkg:golang/{path}@{version}", "go", (), licences))
    return parts


def bundled(root: Path) -> list[Part]:
    """Return the packages of npm that the console of a tree holds."""
    terms = root / "server/console/built/LICENSES.txt"
    named = json.loads((root / ".ci/console/packages.json").read_text())
    return [
        Part(name, (v := package["version"]), f"pkg:npm/{quote(name)}@{v}", "bundled", (), (terms,))
        for name, package in named.items()
        if f"\n{name}\n" in terms.read_text()
    ]


def libraries(link_map: Path, arch: str, root: Path) -> list[Part]:
    """Return the packages of the Debian in a root whose files the linker took there."""
    text = link_map.read_text(errors="replace")
    members = text.partition("\nDiscarded input sections")[0].partition("\nMemory Configuration")[0]
    linked = set(re.findall(r"^(/\S+\.a)\(", members, re.MULTILINE))
    linked |= set(re.findall(r"^LOAD (/\S+/crt\w+\.o)$", text, re.MULTILINE))
    query = ("dpkg-query", f"--root={root}")
    packages: dict[str, set[str]] = {}
    for file in linked:
        owner = said(*query, "--search", owned(file)).partition(": ")[0].partition(",")[0]
        packages.setdefault(owner, set()).add(os.path.basename(file))
    parts: list[Part] = []
    for owner, files in sorted(packages.items()):
        form = "${source:Package}\t${Version}\t${binary:Package}"
        source, version, name = said(*query, "--show", "-f", form, owner).split("\t")
        name = name.partition(":")[0]
        purl = f"pkg:deb/debian/{quote(name)}@{quote(version)}?arch={arch}&distro={BUILD_HOST}"
        licence = root / "usr/share/doc" / name / "copyright"
        parts.append(Part(source, version, purl, "static", tuple(sorted(files)), (licence,)))
    return parts


def owned(file: str) -> str:
    """Return the path by which dpkg knows a file: /lib may be a link to /usr/lib."""
    path = os.path.normpath(file)
    return path if path.startswith("/usr/") else f"*{path}"


def cyclonedx(version: str, arch: str, parts: list[Part], stamp: str) -> dict[str, object]:
    """Return a bill of materials as CycloneDX 1.5 writes it."""
    components = [
        {
            "type": "library",
            "bom-ref": part.purl,
            "name": part.name,
            "version": part.version,
            "purl": part.purl,
            "properties": [
                {"name": "loom-bridge:linked", "value": part.linked},
                *({"name": "loom-bridge:file", "value": file} for file in part.files),
            ],
        }
        for part in parts
    ]
    me = f"pkg:generic/loom-bridge-server@{version}?arch={arch}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": stamp,
            "component": {
                "type": "application",
                "bom-ref": me,
                "name": "loom-bridge-server",
                "version": version,
                "purl": me,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": me, "dependsOn": [part.purl for part in parts]},
        ],
    }
