"""Compare requirements.tsv with the requirement ids that tests name.

requirements.tsv has one line per requirement that is built: its id, what works in a
few words, and, where no test can go through the face, why; parted by tabs:

    A13	what works
    A13	what works	inside: why no test can go through the face

What exactly holds is what the tests say. The letter is a part of the requirements: A
reduction, B compaction, C isolation and messages, D offloading, E tools, F memory and
tiers, G the context of a task, H partitions and pressure, I injection, J compression, K
readings (where a document can be read in two ways), L decay, M the provider's cache, N
from a call to its answer, P procedures, Q figures, R what agents of loom.v1 count on, X
presets, Y the life of a record, Z several servers. Gaps are not built.

A test names the requirements that it would fail for, in a comment that holds
nothing else: `// A13` or `// A13, B06` in Go and TypeScript, `# A13` in Python.
A comment may go on after a colon or a dash: `// A13: even after a restart`.
Every id is written out, ranges are not expanded.

The script prints the table with the tests of each row, and with `face` where one
of them goes through the face that users have, `inside` where none does; face.py
says how that is told. It fails when a row has no test, when none of its tests
goes through the face and no third column says why, when one stands there
without need, when a test names an id that has no row, when a row stands there
twice and when a comment holds a range.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import face

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / ".ci" / "requirements.tsv"

# Folders that hold no tests of ours.
SKIPPED = {
    ".git",
    ".tools",
    ".venv",
    ".venv-frameworks",
    ".venv-lowest",
    ".venv-oldest",
    "bin",
    "build",
    "gen",
    "node_modules",
    "__pycache__",
}

ID = r"[A-Z][0-9]{2,3}[a-z]?"
DASH = "[-\u2013\u2014]"
ROW = re.compile(rf"^({ID})\t([^\t]+)(?:\tinside: ([^\t]+))?$")
COMMENT = re.compile(rf"(?://|#)\s*({ID}(?:\s*,\s*{ID})*)\s*(?:$|[:.]\s|{DASH}\s)")
RANGE = re.compile(rf"(?://|#)\s*(?:{ID}\s*,\s*)*{ID}\s*(?:{DASH}|\.\.)\s*{ID}\b")
TEST = re.compile(
    r"^(?:func (?:\(.*?\) )?(\w+)\(|\s*(?:async )?def (test_\w+)\(|test\(\s*[\"'](.+?)[\"'])"
)


def is_test(path: Path) -> bool:
    """Say whether the file at path, below ROOT, holds tests.

    Suites that several packages share are ordinary Go files in a folder whose
    name ends in "test".
    """
    match path.suffix:
        case ".go":
            return path.name.endswith("_test.go") or path.parent.name.endswith("test")
        case ".py":
            return path.name.startswith("test_") or path.name == "conftest.py"
        case ".ts":
            return path.name.endswith(".test.ts")
        case _:
            return False


def test_files() -> Iterator[Path]:
    """Yield every file with tests, in a fixed order."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - SKIPPED)
        for name in sorted(names):
            path = Path(folder, name).relative_to(ROOT)
            if is_test(path):
                yield path


@dataclass(frozen=True)
class Row:
    """A row of requirements.tsv."""

    text: str
    inside: str | None
    """Why no test goes through the face; None: one does."""


def read_table(problems: list[str]) -> dict[str, Row]:
    """Return each row by its id."""
    rows: dict[str, Row] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if row := ROW.match(line):
            if row[1] in rows:
                problems.append(f"{row[1]} has two rows")
            rows[row[1]] = Row(row[2], row[3])
        else:
            problems.append(f"not a row: {line!r}")
    return rows


def find_test(lines: list[str], index: int) -> str:
    """Return the name of the test that the comment at index belongs to.

    It stands right above a test, apart from further comment lines, or inside
    of one.
    """
    below = index + 1
    while below < len(lines) and lines[below].lstrip().startswith(("//", "#", "@")):
        below += 1
    if below < len(lines) and (found := TEST.match(lines[below])):
        return next(filter(None, found.groups()))
    for line in reversed(lines[:index]):
        if found := TEST.match(line):
            return next(filter(None, found.groups()))
    return f"line {index + 1}"


def read_tests(problems: list[str]) -> dict[str, list[str]]:
    """Return the tests that name each id, as "file: test"."""
    named: defaultdict[str, list[str]] = defaultdict(list)
    for path in test_files():
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        for index, line in enumerate(lines):
            if RANGE.search(line):
                problems.append(f"{path}:{index + 1}: write out each id instead of a range")
            elif comment := COMMENT.search(line):
                test = f"{path}: {find_test(lines, index)}"
                for name in re.findall(ID, comment[1]):
                    if test not in named[name]:
                        named[name].append(test)
    return named


def check_row(name: str, row: Row, tests: list[str], through_face: bool) -> Iterator[str]:
    """Yield what is wrong with a row."""
    if not tests:
        yield f"{name} has a row and no test"
    elif not through_face and row.inside is None:
        yield (
            f"{name} has no test through the face: write one that uses a client or the command "
            f"line, or say why there can be none in a third column, `inside: why`"
        )
    elif through_face and row.inside is not None:
        yield f"{name} has a test through the face: its third column has to go"


def main() -> int:
    """Print the table and the mismatches; return the exit code."""
    problems: list[str] = []
    rows = read_table(problems)
    named = read_tests(problems)
    reach = face.Reach(ROOT)

    counts = {"face": 0, "inside": 0}
    for name, row in rows.items():
        tests = named.get(name, [])
        by_face = [reach.is_face(*test.split(": ", 1)) for test in tests]
        place = "face" if any(by_face) else "inside"
        counts[place] += 1
        print(f"{name}  {place}  {row.text}")
        if row.inside:
            print(f"       inside: {row.inside}")
        for test, is_face in zip(tests, by_face, strict=True):
            print(f"       {'face' if is_face else '    '}  {test}")
        problems += check_row(name, row, tests, any(by_face))
    problems += [
        f"{name} has no row, but is named by {', '.join(named[name])}"
        for name in sorted(named)
        if name not in rows
    ]

    print(f"\n{len(rows)} requirements, {counts['face']} face, {counts['inside']} inside")
    for problem in problems:
        print(f"  {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
