"""What to look at next: a policy without a language model.

The planner keeps a queue of things to do for each kind of tool. What it sees adds to
the queues: folders lead to folders and files, files to the names they declare, names
to a search. It alternates between the kinds, so that a short run sees a bit of everything.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from pathlib import PurePosixPath
from typing import Any

SKIPPED = {"node_modules", "gen", "bin", "testdata", "__pycache__", "v1"}
"""Folders of little interest: generated, downloaded or made for tests."""

EVERYWHERE = {"README.md", "doc.go", "__init__.py"}
"""Names that files of many folders have."""

LARGEST_READ = 24_000
"""Bytes of a file worth reading whole."""

DECLARATIONS = re.compile(r"^(?:type|func|message|service|class|def) +([A-Z]\w{4,})", re.MULTILINE)

ORDER = ("list", "explain", "read", "search", "list", "explain", "read", "search", "stat")
"""Kinds of actions, round-robin: folders, files that explain, code, names, sizes."""


@dataclass(frozen=True)
class Action:
    """One tool call and the reason for it."""

    tool: str
    arguments: dict[str, str]
    thought: str

    @property
    def target(self) -> str:
        """What it is about, in few words."""
        return self.arguments.get("query") or self.arguments.get("path", ".")


@dataclass(frozen=True)
class Finding:
    """Something worth remembering."""

    title: str
    text: str
    path: str
    tags: tuple[str, ...]


class Planner:
    """Decides the next action from what was seen so far.

    The same repository gives the same actions.
    """

    def __init__(self) -> None:
        """Begin at the root."""
        self._queues: dict[str, deque[Action]] = {kind: deque() for kind in ORDER}
        self._kinds = cycle(ORDER)
        self._seen: set[str] = set()
        self._plan("list", "fs:list_dir", {"path": "."}, "See what there is.")

    def next(self) -> Action | None:
        """Return the next action; None when nothing is left to see."""
        for _ in range(len(ORDER)):
            queue = self._queues[next(self._kinds)]
            if queue:
                return queue.popleft()
        return None

    def learn(self, action: Action, output: Mapping[str, Any]) -> Finding | None:
        """Take in what an action showed; return what is worth remembering."""
        if action.tool == "fs:list_dir":
            return self._learn_folder(action.arguments["path"], output["entries"])
        if action.tool == "fs:read_file":
            return self._learn_file(action.arguments["path"], output["content"])
        if action.tool == "fs:search":
            return _usage(action.arguments["query"], output["matches"])
        return None

    def _learn_folder(self, path: str, entries: list[dict[str, Any]]) -> Finding | None:
        files: list[str] = []
        for entry in entries:
            name = str(entry["name"])
            child = str(PurePosixPath(path) / name)
            if name.startswith(".") or name in SKIPPED:
                continue
            if entry["is_dir"]:
                self._plan("list", "fs:list_dir", {"path": child}, f"{child} may hold more.")
            else:
                files.append(name)
                self._plan_file(child, int(entry["size"]))
        if not files:
            return None
        # Its subfolders have other ones, except names that every folder has.
        own = next((name for name in files[:30] if name not in EVERYWHERE), files[0])
        return Finding(
            title=f"Files in the folder {path}, such as {own}",
            text=f"The folder {path} holds {len(files)} files: {', '.join(files[:30])}.",
            path=path,
            tags=("folder",),
        )

    def _plan_file(self, path: str, size: int) -> None:
        kind = PurePosixPath(path)
        if kind.name in ("doc.go", "README.md", "Makefile") or kind.suffix == ".proto":
            if size <= LARGEST_READ:
                self._plan("explain", "fs:read_file", {"path": path}, f"{path} explains things.")
        elif kind.suffix in (".md", ".mod", ".toml", ".yaml"):
            self._plan("stat", "fs:stat", {"path": path}, f"How big is {path}, and how old?")
        elif kind.suffix in (".go", ".py") and "_test" not in kind.stem and size <= LARGEST_READ:
            self._plan("read", "fs:read_file", {"path": path}, f"See what {path} declares.")

    def _learn_file(self, path: str, content: str) -> Finding:
        names = DECLARATIONS.findall(content)
        for name in names[:2]:
            top = PurePosixPath(path).parts[0]
            where = {"query": name, "path": top if top != path else "."}
            self._plan("search", "fs:search", where, f"Who uses {name} of {path}?")
        sentence = _first_sentence(content)
        declared = f" It declares {', '.join(names[:12])}." if names else ""
        return Finding(
            title=f"The file {path}: {sentence}",
            text=f"The file {path} has {content.count(chr(10))} lines. {sentence}{declared}",
            path=path,
            tags=("file", PurePosixPath(path).suffix.lstrip(".") or "plain"),
        )

    def _plan(self, kind: str, tool: str, arguments: dict[str, str], thought: str) -> None:
        key = f"{tool} {arguments.get('query') or arguments['path']}"
        if key not in self._seen:
            self._seen.add(key)
            self._queues[kind].append(Action(tool, arguments, thought))


def _usage(name: str, matches: list[dict[str, Any]]) -> Finding:
    files = sorted({str(match["path"]) for match in matches})
    return Finding(
        title=f"Who uses {name}" + (f" beside {files[0]}" if files else ""),
        text=f"{name} stands in {len(matches)} lines of {len(files)} files: "
        f"{', '.join(files[:10]) or 'none'}.",
        path=files[0] if files else "",
        tags=("symbol",),
    )


def _first_sentence(content: str) -> str:
    for line in content.splitlines():
        words = line.strip(" \t/#*\"'-;{}()=").strip()
        if len(words) > 12 and not words.startswith(("syntax", "package ", "import", "module")):
            return words[:160]
    return "It says little."
