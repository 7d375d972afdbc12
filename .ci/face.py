"""Tell which tests go through the face: an RPC, a client or the command line.

A test goes through the face when it, or a function that it calls, starts the
server and calls it:

- Go, in server/ and below: it starts the server (servertest, a listener, or
  `run`, which is what main runs) and calls an RPC by its name or a command. What
  a test calls is looked for in the tests of its package.
- Python: it asks, by itself or by a fixture, for the server's binary.
- TypeScript: always, for all these tests call the built server.

Calls are told by their names, so that a test which has a function of its own
called like an RPC counts as one that calls it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeAlias

Uses: TypeAlias = "dict[str, set[str]]"
"""What each function uses, by name: functions, methods with a dot in front, fixtures."""

# What starts a server.
GO_STARTS = {"servertest.Start", "grpc.NewClient", "run"}
PYTHON_STARTS = {"binary", "testing.server"}
# Functions that call it, other than the RPCs.
GO_CALLS = {"run", ".Invoke", ".NewStream"}

GO_FUNCTION = re.compile(r"^func (?:\(.*?\) )?(\w+)")
GO_USE = re.compile(r"(?<![\w.])\w+(?:\.\w+)?(?=\()")
GO_METHOD = re.compile(r"\.\w+(?=\()")
RPC = re.compile(r"^\s*rpc (\w+)\(", re.MULTILINE)


def go_uses(source: str) -> Uses:
    """Return what the functions of Go source call."""
    uses: Uses = {}
    current: set[str] = set()
    for line in source.splitlines():
        if line.lstrip().startswith("//"):
            continue
        if found := GO_FUNCTION.match(line):
            current = uses.setdefault(found[1], set())
            line = line[found.end() :]
        current |= set(GO_USE.findall(line))
        current |= set(GO_METHOD.findall(line))
    return uses


def python_uses(source: str) -> Uses:
    """Return what the functions of Python source call and which fixtures they take."""
    uses: Uses = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            used = uses.setdefault(node.name, set())
            used |= {arg.arg for arg in node.args.args}
            for part in ast.walk(node):
                if isinstance(part, ast.Call):
                    used.add(ast.unparse(part.func))
    return uses


def reaching(uses: Uses, ends: Iterable[str]) -> set[str]:
    """Return the functions that use one of ends, by themselves or by others."""
    found: set[str] = set()
    names = set(ends)
    while True:
        more = {name for name, used in uses.items() if name not in found and used & names}
        if not more:
            return found
        found |= more
        names |= more | {f".{name}" for name in more}


class Reach:
    """Which tests of a tree go through the face."""

    def __init__(self, root: Path) -> None:
        """Take the RPCs of the protos below root."""
        self._root = root
        protos = root.glob("proto/**/*.proto")
        rpcs = {name for proto in protos for name in RPC.findall(proto.read_text("utf-8"))}
        self._calls = GO_CALLS | {f".{name}" for name in rpcs}
        self._go = cache(self._go_tests)

    def is_face(self, path: str, test: str) -> bool:
        """Say whether the test of that name in the file goes through the face."""
        file = Path(path)
        match file.suffix:
            case ".go":
                return file.parts[0] == "server" and test in self._go(file.parent)
            case ".py":
                return test in self._python_tests(file)
            case _:
                return True

    def _go_tests(self, folder: Path) -> set[str]:
        files = sorted((self._root / folder).glob("*_test.go"))
        uses = go_uses("\n".join(file.read_text("utf-8") for file in files))
        return reaching(uses, GO_STARTS) & reaching(uses, self._calls)

    def _python_tests(self, file: Path) -> set[str]:
        shared = self._root / file.parent / "conftest.py"
        files = [path for path in (shared, self._root / file) if path.exists()]
        uses = python_uses("\n".join(path.read_text("utf-8") for path in files))
        return reaching(uses, PYTHON_STARTS)
