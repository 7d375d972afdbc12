"""Copies of the whole store, for who runs the server."""

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from loombridge import _errors, _rpc, _spelling, _stream, _values
from loombridge.v1 import admin_pb2 as pb

BACKUP_TIMEOUT = 600.0
"""Seconds within which the server says something of a backup that it makes."""


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of the whole store, of all tenants, at one moment."""

    name: str
    """What it is called: when it was begun, such as `20261123T174500.123Z`."""
    create_time: datetime
    """When it was begun, in UTC."""
    bytes: int
    """The size of all its files."""
    new_bytes: int
    """The size of the files that the previous backup did not have."""


@dataclass(frozen=True, slots=True)
class BackupProgress:
    """How far a backup is."""

    done: int
    """How many bytes there are of it."""
    total: int
    """How many there will be."""
    backup: Backup | None
    """What was made; None until the end."""


class BackingUp(_stream.Stream[pb.CreateBackupRequest, pb.CreateBackupResponse]):
    """The making of a backup: `await` it, or `async for progress in ctx.backups.create()`.

    Leaving the loop, `close`, or dropping it stops the work, and nothing is left of it.
    """

    def __init__(self, transport: _rpc.Transport, full: bool, timeout: float) -> None:
        """Made by `ctx.backups.create`."""
        super().__init__(
            _stream.Receiver(
                transport,
                _rpc.CREATE_BACKUP,
                pb.CreateBackupRequest(full=full),
                timeout,
                _stream.Resume.NEVER,
                "no backup was made",
            )
        )

    def __aiter__(self) -> Self:
        """Return it itself."""
        return self

    async def __anext__(self) -> BackupProgress:
        """Wait until there is some more of it.

        Raises:
            OperatorRequiredError: the credential does not say `operates`.
            NoBackupFolderError: the server was started without `--backup-dir`.
            BackupRunningError: another backup is being made.
            DeadlineExceededError: nothing came within the timeout.
        """
        m = await self._receiver.next()
        return BackupProgress(
            done=m.bytes_done,
            total=m.bytes_total,
            backup=_backup(m.backup) if m.HasField("backup") else None,
        )

    def __await__(self) -> Generator[Any, None, Backup]:
        """Wait until it is made, and return it."""
        return self._made().__await__()

    async def _made(self) -> Backup:
        made: Backup | None = None
        async with self:
            async for progress in self:
                made = progress.backup
        if made is None:
            raise _errors.ServerUnreachableError("no backup was made: the stream ended early")
        return made

    async def __aenter__(self) -> Self:
        """Return it itself; the work begins with the first answer."""
        return self


@_spelling.helpful
class Backups(_spelling.Helpful):
    """The backups in the server's own folder (`--backup-dir`); `ctx.backups`.

    With authentication the credential must say `operates`.
    """

    def __init__(self, transport: _rpc.Transport) -> None:
        """Made by the client."""
        self._transport = transport

    def create(self, *, full: bool = False, timeout: _values.Seconds = BACKUP_TIMEOUT) -> BackingUp:
        """Make a backup now, while the server serves: `await` it for a `Backup`.

        What was acknowledged before the call is in it.

        Args:
            full: copy every file. Otherwise files that the previous backup also has are shared
                with it and take no room.
            timeout: seconds between two signs of progress.
        """
        return BackingUp(self._transport, full, _values.wait("timeout", timeout))

    @_stream.listed
    async def list(self, *, timeout: _values.Seconds | None = None) -> list[Backup]:
        """Return the backups that can be restored, the newest first.

        Args:
            timeout: seconds; default: the client's.

        Raises:
            OperatorRequiredError: the credential does not say `operates`.
            NoBackupFolderError: the server was started without `--backup-dir`.
        """
        found = await self._transport.items(
            _rpc.LIST_BACKUPS, pb.ListBackupsRequest(), lambda answer: answer.backups, timeout
        )
        return [_backup(m) for m in found]


def _backup(m: pb.Backup) -> Backup:
    return Backup(
        name=m.name,
        create_time=_values.moment(m.create_time),
        bytes=m.bytes,
        new_bytes=m.new_bytes,
    )
