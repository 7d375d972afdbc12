"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

import builtins

from loombridge import _backups, _spelling, _values
from loombridge.sync import _twin
from loombridge.sync._face.held import BackingUp


@_spelling.helpful
@_twin.documented(_backups.Backups)
class Backups(_twin.Twin, _spelling.Helpful):
    """The backups in the server's own folder (`--backup-dir`); `ctx.backups`."""

    def create(
        self, *, full: bool = False, timeout: _values.Seconds = _backups.BACKUP_TIMEOUT
    ) -> _backups.Backup:
        """Make a backup now, while the server serves: `await` it for a `Backup`."""
        return self._await("create", full=full, timeout=timeout)

    def create_iter(
        self, *, full: bool = False, timeout: _values.Seconds = _backups.BACKUP_TIMEOUT
    ) -> BackingUp:
        """Make a backup now, while the server serves: `await` it for a `Backup`."""
        return BackingUp(self._home, self._run("create", full=full, timeout=timeout))

    def list(self, *, timeout: _values.Seconds | None = None) -> builtins.list[_backups.Backup]:
        """Return the backups that can be restored, the newest first."""
        return self._await("list", timeout=timeout)
