"""Sessions on their way: exported and imported as lines."""

from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass

from loombridge import _lines, _rpc, _spelling, _values
from loombridge.v1 import transfer_pb2 as pb


class SessionExport(_lines.Export):
    """Lines of an export: `async for line in ctx.sessions.export_lines()`.

    Each loop begins anew.
    """

    _nothing = "no sessions were exported"


@dataclass(frozen=True, slots=True)
class ImportedSessions:
    """What became of the sessions of an import."""

    saved: int
    """How many are new."""
    unchanged: int
    """How many were there already, as they came."""
    results: int
    """How many offloaded results they have."""
    skipped: int = 0
    """How many were there as something else, and stayed so."""


@_spelling.helpful
class Sessions(_spelling.Helpful):
    """What is stored of the agent's sessions, as a whole; reached as `ctx.sessions`.

    `ctx.context` lists sessions and reads their contents.
    """

    def __init__(self, transport: _rpc.Transport, agent_id: str) -> None:
        """Made by the client."""
        self._transport = transport
        self._agent_id = agent_id

    def export_lines(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> SessionExport:
        """Return the agent's sessions as lines of JSON, for `async for`.

        They hold all that is stored of a session: messages, steps, folds, settings, working
        state, snapshots, tasks, and offloaded results with every byte. Recorded prompts,
        children, events and memories are not of it. With a newline behind each they are a
        file of JSON Lines, which `import_lines` and `loom-bridge-server sessions import`
        take.

        Args:
            session_id: export that session alone; a missing one has no lines.
                Default: all of them, not only the client's.
            timeout: seconds without a further line; default: the client's.

        Raises:
            TooLargeError: a session has more than 64 MiB without its results; once the loop
                comes to it.
        """
        request = pb.ExportRequest(
            agent_id=self._agent_id,
            sessions=True,
            session_id=_values.optional_text("session_id", session_id),
        )
        return SessionExport(self._transport, request, timeout)

    async def import_lines(
        self,
        lines: Iterable[str] | AsyncIterable[str],
        *,
        skip_existing: bool = False,
        dry_run: bool = False,
        timeout: _values.Seconds = _lines.IMPORT_TIMEOUT,
    ) -> ImportedSessions:
        """Take lines of an export into the agent, which may be another one than they are of.

        Each session appears whole, or not at all, but for one of more than 8 MiB without its
        results, of which an import that was interrupted may leave the beginning. It can be
        made again: a session that is there as it came is passed over. Steps and tasks keep
        their numbers and ids, so an agent with its own steps can import few.

        Args:
            lines: the lines of `export_lines`, such as an open file.
            skip_existing: leave a session as it is that comes with another content, in place
                of raising.
            dry_run: check and count as the import would, and store nothing.
            timeout: seconds for all of it.

        Raises:
            RecordExistsError: a session is there with another content, or the agent has a
                step, a task or a path of a result of it already.
            InvalidRequestError: a line is not a line of an export; the error says which. Sessions
                complete before it are stored.
        """
        first = pb.ImportRequest(
            agent_id=self._agent_id, sessions=True, skip_existing=skip_existing, dry_run=dry_run
        )
        answer = await _lines.send(self._transport, first, lines, timeout)
        return ImportedSessions(
            saved=answer.saved,
            unchanged=answer.unchanged,
            results=answer.results,
            skipped=answer.skipped,
        )
