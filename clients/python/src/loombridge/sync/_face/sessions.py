"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable

from loombridge import _lines, _sessions, _spelling, _values
from loombridge.sync import _twin
from loombridge.sync._face.held import SessionExport


@_spelling.helpful
@_twin.documented(_sessions.Sessions)
class Sessions(_twin.Twin, _spelling.Helpful):
    """What is stored of the agent's sessions, as a whole; reached as `ctx.sessions`."""

    def export_lines(
        self, *, session_id: str | None = None, timeout: _values.Seconds | None = None
    ) -> SessionExport:
        """Return the agent's sessions as lines of JSON, for `for`."""
        return SessionExport(
            self._home, self._run("export_lines", session_id=session_id, timeout=timeout)
        )

    def import_lines(
        self,
        lines: Iterable[str] | AsyncIterable[str],
        *,
        skip_existing: bool = False,
        dry_run: bool = False,
        timeout: _values.Seconds = _lines.IMPORT_TIMEOUT,
    ) -> _sessions.ImportedSessions:
        """Take lines of an export into the agent, which may be another one than they are of."""
        return self._await(
            "import_lines",
            _twin.fed(lines),
            skip_existing=skip_existing,
            dry_run=dry_run,
            timeout=timeout,
        )
