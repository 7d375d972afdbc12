"""Claude's memory tool, whose files are records of long-term memory.

    from loombridge.anthropic import LoomBridgeMemoryTool  # or AsyncLoomBridgeMemoryTool

    memory = LoomBridgeMemoryTool("127.0.0.1:50051", user_id="ann")
    client.beta.messages.run_tools(model=…, max_tokens=…, messages=[…], tools=[memory])

Its answers are word for word those of the SDK's own tool on a file system. What the model
writes is found by `memory_query` of the same memory. Install it with
`pip install "loombridge[anthropic]"`.
"""

import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar, Unpack

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] != "anthropic":
        raise
    raise ImportError(
        'loombridge.anthropic needs Anthropic\'s library: pip install "loombridge[anthropic]"'
    ) from err

from loombridge import _client, _errors, _filters, _loops, _records

__all__ = ["AsyncLoomBridgeMemoryTool", "LoomBridgeMemoryTool"]

ResultT = TypeVar("ResultT")

AGENT = "claude"
"""The default owner of the records."""

KIND = "memory_file"
"""The kind of a file's record."""

ROOT = "/memories"
"""The folder that holds all files."""

EMPTY = "-"
"""The text of the record of an empty file, which has no version of its own."""

PATH_BYTES = 240
"""Bytes of a path; its record is named by it."""

FILE_BYTES = 256 << 10
"""Bytes of a file."""

MAX_LINES = 999_999
"""Lines of a file that is viewed."""

WIDTH = 6
"""Digits of a line's number."""

MOST_KEYS = 12
"""Names that one filter has; it may have 4 KiB."""

ATTEMPTS = 10
"""Times that an edit begins again because others change the file meanwhile."""


class LoomBridgeMemoryTool(_loops.Adapter, BetaAbstractMemoryTool):
    """A memory tool for `client.beta.messages.run_tools` of `anthropic.Anthropic`.

    A file has at most 256 KiB and a path of 240 bytes. Folders are there as long as they hold
    files. Every change is one commit, also the renaming of a folder; two who edit one file at
    the same time lose nothing. Any thread may use it; `close` it, or use it in a `with` block.
    """

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose memory the files are in; default `claude`, or the client's.
            user_id: keep them in that person's memory instead, which all agents share.
            cache_control: marks the tool's definition, as in the SDK.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        super().__init__(cache_control=cache_control)
        self._user_id = user_id
        self._open(server, agent_id, AGENT, connection)

    def _do(self, work: "Callable[[_Files], Awaitable[str]]") -> str:
        user_id = self._user_id

        async def do(ctx: _client.Client) -> str:
            return await work(_Files(ctx, user_id))

        return self._loop.call(do)

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return the lines of a file, or what is in a folder."""
        return self._do(lambda files: files.view(command))

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a new file."""
        return self._do(lambda files: files.create(command))

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands once in a file."""
        return self._do(lambda files: files.str_replace(command))

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind a line."""
        return self._do(lambda files: files.insert(command))

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all in it."""
        return self._do(lambda files: files.delete(command))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a folder."""
        return self._do(lambda files: files.rename(command))

    def clear_all_memory(self) -> str:
        """Delete all files."""
        return self._do(lambda files: files.clear())


class AsyncLoomBridgeMemoryTool(_loops.Adapter, BetaAsyncAbstractMemoryTool):
    """The same for `anthropic.AsyncAnthropic`; see `LoomBridgeMemoryTool`."""

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects. See `LoomBridgeMemoryTool`."""
        super().__init__(cache_control=cache_control)
        self._user_id = user_id
        self._open(server, agent_id, AGENT, connection)

    async def _do(self, work: "Callable[[_Files], Awaitable[str]]") -> str:
        user_id = self._user_id

        async def do(ctx: _client.Client) -> str:
            return await work(_Files(ctx, user_id))

        return await self._loop.acall(do)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Return the lines of a file, or what is in a folder."""
        return await self._do(lambda files: files.view(command))

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Make a new file."""
        return await self._do(lambda files: files.create(command))

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that stands once in a file."""
        return await self._do(lambda files: files.str_replace(command))

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert lines behind a line."""
        return await self._do(lambda files: files.insert(command))

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Delete a file, or a folder with all in it."""
        return await self._do(lambda files: files.delete(command))

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a folder."""
        return await self._do(lambda files: files.rename(command))

    async def clear_all_memory(self) -> str:
        """Delete all files."""
        return await self._do(lambda files: files.clear())


class _Files:
    """The commands, over the files of one memory."""

    def __init__(self, ctx: _client.Client, user_id: str | None) -> None:
        self._ctx = ctx
        self._user_id = user_id

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        path = _path(command.path)
        record = await self._file(path)
        if record is None:
            below = await self._below(path)
            if not below and path != ROOT:
                raise _missing(command.path)
            return _listing(command.path, path, below)
        lines = _content(record).split("\n")
        if len(lines) > MAX_LINES:
            raise ToolError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
        first, last = 1, len(lines)
        if command.view_range and len(command.view_range) == 2:
            first = max(1, command.view_range[0])
            last = last if command.view_range[1] == -1 else command.view_range[1]
        shown = _numbered(lines, first, last)
        return f"Here's the content of {command.path} with line numbers:\n{shown}"

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        path = _path(command.path)
        exists = ToolError(f"File {command.path} already exists")
        if path == ROOT or await self._below(path, 1):
            raise exists
        await self._check_folders(path)
        await self._add([_draft(path, command.file_text)], exists)
        return f"File created successfully at: {command.path}"

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        old = command.old_str

        def edit(content: str) -> tuple[str, str]:
            first = content.find(old)
            if first < 0:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                    f"{command.path}."
                )
            if content.count(old) > 1:
                places = ", ".join(str(line) for line in _lines_of(content, old))
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in "
                    f"lines: {places}. Please ensure it is unique"
                )
            changed = content.replace(old, command.new_str)
            line = content.count("\n", 0, first) + 1
            shown = _numbered(changed.split("\n"), max(1, line - 2), line + 2)
            return changed, (
                "The memory file has been edited. Here is the snippet showing the change (with "
                f"line numbers):\n{shown}"
            )

        return await self._edit(command.path, edit)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        def edit(content: str) -> tuple[str, str]:
            lines = content.removesuffix("\n").split("\n") if content else []
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. It should be within "
                    f"the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            changed = "\n".join(lines)
            changed += "" if changed.endswith("\n") else "\n"
            return changed, f"The file {command.path} has been edited."

        return await self._edit(command.path, edit)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        path = _path(command.path)
        if path == ROOT:
            raise ToolError(f"Cannot delete the {ROOT} directory itself")
        gone = await self._remove(f"{_named(path)} OR {_named(path, below=True)}")
        if not gone:
            raise ToolError(f"The path {command.path} does not exist")
        return f"Successfully deleted {command.path}"

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        old, new = _path(command.old_path), _path(command.new_path)
        if old == ROOT:
            raise ToolError(f"Cannot rename the {ROOT} directory itself")
        exists = ToolError(f"The destination {command.new_path} already exists")
        if new == ROOT or await self._file(new) or await self._below(new, 1):
            raise exists
        moved = [record for record in [await self._file(old)] if record] or await self._below(old)
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        await self._check_folders(new)
        # One commit replaces the records by others with the new names; nobody sees the old
        # ones from then on, also if they are not deleted.
        drafts = [_draft(new + _place(r)[len(old) :], _content(r), r.id) for r in moved]
        await self._add(drafts, exists)
        await self._delete(moved)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    async def clear(self) -> str:
        await self._remove(f'kind = "{KIND}"')
        return "All memory cleared"

    async def _add(self, drafts: Sequence[_records.RecordDraft], exists: ToolError) -> None:
        try:
            await self._ctx.memory.save_many(drafts, user_id=self._user_id)
        except _errors.RecordExistsError:
            keys = " OR ".join(
                f"key = {_filters.literal(draft.key or '')}" for draft in drafts[:MOST_KEYS]
            )
            there = [record async for record in self._list(keys)]
            # A renaming that was cut off leaves records under the old names.
            left = [record for record in there if record.superseded_by]
            if not left or len(left) < len(there):
                raise exists from None
            await self._delete(left)
            await self._add(drafts, exists)

    async def _delete(self, records: Sequence[_records.Record]) -> None:
        for record in records:
            with suppress(_errors.RecordNotFoundError):
                await self._ctx.memory.delete(id=record.id, user_id=self._user_id)

    async def _edit(self, path: str, edit: Callable[[str], tuple[str, str]]) -> str:
        place = _path(path)
        for _ in range(ATTEMPTS):
            record = await self._file(place)
            if record is None:
                if place == ROOT or await self._below(place, 1):
                    raise ToolError(f"The path {path} is not a file.")
                raise _missing(path)
            changed, answer = edit(_content(record))
            draft = _draft(place, changed)
            with suppress(_errors.VersionConflictError, _errors.RecordNotFoundError):
                await self._ctx.memory.update(
                    id=record.id,
                    text=draft.text,
                    metadata=draft.metadata,
                    expected_version=record.version,
                    user_id=self._user_id,
                )
                return answer
        raise ToolError(f"The file {path} is being changed by others; try again")

    async def _file(self, path: str) -> _records.Record | None:
        with suppress(_errors.RecordNotFoundError):
            record = await self._ctx.memory.get(key=_key(path), user_id=self._user_id)
            return None if record.superseded_by else record
        return None

    async def _below(self, path: str, limit: int | None = None) -> list[_records.Record]:
        """Return the files in a folder and the folders in it, or some of them."""
        found: list[_records.Record] = []
        async for record in self._list(_named(path, below=True), limit):
            if not record.superseded_by:
                found.append(record)
            if len(found) == limit:
                break
        return found

    def _list(self, expression: str, limit: int | None = None) -> AsyncIterator[_records.Record]:
        return aiter(
            self._ctx.memory.list(filter=expression, page_size=limit, user_id=self._user_id)
        )

    async def _check_folders(self, path: str) -> None:
        while (path := posixpath.dirname(path)) != ROOT:
            if await self._file(path):
                raise ToolError(f"The path {path} is not a directory")

    async def _remove(self, expression: str) -> int:
        return await self._ctx.memory.delete_matching(expression, user_id=self._user_id)


def _path(path: str) -> str:
    """Return a path in its one form.

    Raises:
        ToolError: it does not begin with the root, leads out of it, or is too long.
    """
    if not path.startswith(ROOT):
        raise ToolError(f"Path must start with {ROOT}, got: {path}")
    found = posixpath.normpath(f"{ROOT}/{path[len(ROOT) :].lstrip('/')}")
    if found != ROOT and not found.startswith(f"{ROOT}/"):
        raise ToolError(f"Path {path} would escape {ROOT} directory")
    if "\x00" in found or len(found.encode(errors="replace")) > PATH_BYTES:
        raise ToolError(f"Path {path} is longer than {PATH_BYTES} bytes, or has a NUL")
    return found


def _key(path: str) -> str:
    return f"{KIND}:{path}"


def _named(path: str, *, below: bool = False) -> str:
    """Return the filter that lets a file through, or all files in a folder."""
    key = _filters.literal(_key(path))
    return f"key = {key[:-1]}/*{key[-1]}" if below else f"key = {key}"


def _missing(path: str) -> ToolError:
    return ToolError(f"The path {path} does not exist. Please provide a valid path.")


def _draft(path: str, content: str, supersedes: str | None = None) -> _records.RecordDraft:
    if len(content.encode()) > FILE_BYTES:
        raise ToolError(f"File {path} would be longer than {FILE_BYTES:,} bytes")
    about: dict[str, Any] = {"path": path, "empty": not content}
    return _records.RecordDraft(
        text=content or EMPTY,
        key=_key(path),
        kind=KIND,
        metadata=about,
        supersedes=supersedes,
    )


def _content(record: _records.Record) -> str:
    return "" if record.metadata["empty"] else record.text


def _place(record: _records.Record) -> str:
    return record.metadata["path"]


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    shown = enumerate(lines[first - 1 : last], first)
    return "\n".join(f"{number:{WIDTH}}\t{line}" for number, line in shown)


def _lines_of(content: str, text: str) -> list[int]:
    found: list[int] = []
    place = content.find(text)
    while place >= 0:
        found.append(content.count("\n", 0, place) + 1)
        place = content.find(text, place + 1)
    return found


def _listing(asked: str, path: str, files: Sequence[_records.Record]) -> str:
    """Return the table of a folder: files and folders up to two levels deep, without hidden ones.

    The size of a folder is that of the files in it.
    """
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    total = 0
    for record in files:
        names = tuple(_place(record)[len(path) + 1 :].split("/"))
        size = len(_content(record).encode())
        total += size
        if any(name.startswith(".") for name in names[:2]):
            continue
        folders.update(names[:depth] for depth in (1, 2) if depth < len(names))
        for depth in (1, 2):
            if depth <= len(names):
                sizes[names[:depth]] = sizes.get(names[:depth], 0) + size
    lines = [f"{_size(total)}\t{asked}"]
    for names in sorted(sizes):
        name = f"{asked}/{'/'.join(names)}" + ("/" if names in folders else "")
        lines.append(f"{_size(sizes[names])}\t{name}")
    header = f"Here're the files and directories up to 2 levels deep in {asked}, "
    return f"{header}excluding hidden items:\n" + "\n".join(lines)


def _size(size: int) -> str:
    unit = min(max(size.bit_length() - 1, 0) // 10, 3)
    number = f"{size / 1024**unit:.1f}".removesuffix(".0")
    return f"{number}{'BKMG'[unit]}"
