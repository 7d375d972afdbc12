"""Check the pages: the map of ARCHITECTURE.md, and the size of what is read.

Every package that the server's binary is built from has exactly one line in the
map, and every line names a package. README.md and the pages of the server have
at most 120 lines of at most 200 characters, and all pages together 160 KB. No
block of code is empty. Comments of Go name no Go file that is not there.

Usage: docs.py [GO]
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAP = ROOT / "ARCHITECTURE.md"
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("server/docs/*.md"))]
MAX_LINES = 120
MAX_LENGTH = 200
MAX_BYTES = 160 * 1024
"""Most that all pages under version control have together."""


BINARY = "./server/cmd/loom-bridge-server"
FILE = re.compile(r"(?<![\w.*/])[a-z_0-9/]+\.go\b")
LINE = re.compile(r"^- `([\w./-]+)`: \S", re.MULTILINE)


def output(*argv: str) -> list[str]:
    """Return the lines that a command prints."""
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def check_map(go: str) -> Iterator[str]:
    """Yield what is wrong with the map."""
    module = output(go, "list", "-m")[0]
    packages = {
        name.removeprefix(f"{module}/")
        for name in output(go, "list", "-deps", BINARY)
        if name.startswith(f"{module}/") and "/proto/" not in name
    }
    lines = Counter(LINE.findall(MAP.read_text(encoding="utf-8")))
    for name in sorted(packages - lines.keys()):
        yield f"ARCHITECTURE.md has no line for {name}: add `- \\`{name}\\`: what it is`"
    for name in sorted(lines.keys() - packages):
        yield f"ARCHITECTURE.md has a line for {name}, which the binary does not have"
    for name in sorted(name for name, count in lines.items() if count > 1):
        yield f"ARCHITECTURE.md has {lines[name]} lines for {name}"


def check_page(page: Path) -> Iterator[str]:
    """Yield what is wrong with the size of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    name = page.relative_to(ROOT)
    if len(lines) > MAX_LINES:
        yield f"{name} has {len(lines)} lines, at most {MAX_LINES} are wanted"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LENGTH:
            yield f"{name}:{number} has {len(line)} characters, at most {MAX_LENGTH} are wanted"


def check_blocks(page: Path) -> Iterator[str]:
    """Yield where a block of code is empty."""
    begin, filled = 0, False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("```"):
            filled = filled or bool(line.strip())
            continue
        if begin and not filled:
            yield f"{page.relative_to(ROOT)}:{begin} begins a block of code that is empty"
        begin, filled = 0 if begin else number, False


def check_comments(source: Path) -> Iterator[str]:
    """Yield which Go files a comment names that are neither beside it nor in the tree."""
    if "gen" in source.parts or source.name.endswith("_test.go"):  # tests name made-up files
        return
    for number, line in enumerate((ROOT / source).read_text(encoding="utf-8").splitlines(), 1):
        comment = line.strip() if line.strip().startswith("//") else ""
        for name in FILE.findall(comment):
            if not (ROOT / source.parent / name).exists() and not (ROOT / name).exists():
                yield f"{source}:{number} names {name}, which is not there"


def main(go: str = "go") -> int:
    """Print what is wrong; return the exit code."""
    problems = [*check_map(go)]
    for page in PAGES:
        problems += check_page(page)
    tracked = [ROOT / page for page in output("git", "ls-files", "*.md")]
    for page in tracked:
        problems += check_blocks(page)
    for source in output("git", "ls-files", "*.go"):
        problems += check_comments(Path(source))
    size = sum(page.stat().st_size for page in tracked)
    if size > MAX_BYTES:
        problems.append(f"all pages have {size} bytes, at most {MAX_BYTES} are wanted")
    for problem in problems:
        print(problem)
    print(f"{size} bytes of pages, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
