"""Lines of exports: received one by one, and sent back."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import cast

from loombridge import _rpc, _stream, _values
from loombridge.v1 import transfer_pb2 as pb

IMPORT_TIMEOUT = 300.0
"""Seconds for an import: some 100,000 records."""

_LINES = 10_000  # of one message, as the server bounds it
_BYTES = 256 << 10  # of one message, about


class Export:
    """Lines of an export. Each loop begins anew."""

    _nothing: str  # what did not come within the timeout

    def __init__(
        self, transport: _rpc.Transport, request: pb.ExportRequest, timeout: _values.Seconds | None
    ) -> None:
        """Make no call yet; made by `export_lines`."""
        self._transport = transport
        self._request = request
        self._timeout = (
            transport.timeout if timeout is None else _values.seconds("timeout", timeout)
        )

    async def __aiter__(self) -> AsyncIterator[str]:
        """Yield the lines, each a JSON object without a newline."""
        receiver = _stream.Receiver(
            self._transport,
            _rpc.EXPORT,
            self._request,
            self._timeout,
            _stream.Resume.AT_FIRST,
            self._nothing,
        )
        try:
            while True:
                try:
                    message = await receiver.next()
                except StopAsyncIteration:
                    return
                for line in message.lines:
                    yield line
        finally:
            receiver.close()


async def send(
    transport: _rpc.Transport,
    first: pb.ImportRequest,
    lines: Iterable[str] | AsyncIterable[str],
    timeout: _values.Seconds | None,
) -> pb.ImportResponse:
    """Send the lines of an export, the first of them in the message that is given."""
    # A text would be sent letter by letter.
    if isinstance(cast("object", lines), str | bytes):
        raise TypeError("lines must be a file that is open, or a list of lines; not one text")

    async def messages() -> AsyncIterator[pb.ImportRequest]:
        message, size = first, 0
        async for line in _each(lines):
            text = _values.text("lines", line).rstrip("\n")
            if size and (size + len(text) > _BYTES or len(message.lines) == _LINES):
                yield message
                message, size = pb.ImportRequest(agent_id=first.agent_id), 0
            message.lines.append(text)
            size += len(text) + 1
        yield message

    return await transport.upload(_rpc.IMPORT, messages, timeout=timeout)


async def _each(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line
