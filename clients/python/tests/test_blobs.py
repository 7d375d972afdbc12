"""Reading offloaded bytes."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import grpc
import pytest

import loombridge
from fake import Call, Fake, refuse
from loombridge import _rpc
from loombridge.v1 import context_pb2 as pb

DATA = bytes(range(10))
INFO = pb.BlobInfo(ref="ab", path="workspace/outputs/read_001.txt", size=len(DATA), kind="binary")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.01, 0.01))


class Blob:
    """Ten bytes, three at a time, on connections that break after two pieces."""

    def __init__(self, breaks: int = 0) -> None:
        self.breaks = breaks

    async def __call__(
        self, request: pb.ReadBlobRequest, call: Call
    ) -> AsyncGenerator[pb.ReadBlobResponse, None]:
        end = request.offset + request.limit if request.limit else len(DATA)
        wanted = DATA[request.offset : end]
        yield pb.ReadBlobResponse(info=INFO)
        for number, begin in enumerate(range(0, len(wanted), 3)):
            if number == 2 and self.breaks:
                self.breaks -= 1
                await refuse(call, grpc.StatusCode.UNAVAILABLE, "bye")
            yield pb.ReadBlobResponse(data=wanted[begin : begin + 3])


async def test_read_whole_and_ranges(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on_stream(_rpc.READ_BLOB, Blob())
    assert await ctx.context.read_blob("step_001") == DATA
    assert await ctx.context.read_blob("step_001", offset=4) == DATA[4:]
    assert await ctx.context.read_blob("step_001", offset=2, limit=5) == DATA[2:7]
    assert await ctx.context.read_blob("step_001", offset=len(DATA)) == b""


async def test_stream_knows_what_it_reads(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on_stream(_rpc.READ_BLOB, Blob())
    stream = ctx.context.stream_blob("ab")
    assert stream.info is None
    pieces = [piece async for piece in stream]
    assert [len(piece) for piece in pieces] == [3, 3, 3, 1]
    assert stream.info
    assert (stream.info.path, stream.info.size) == (INFO.path, 10)


@pytest.mark.parametrize("limit", [None, 9])
async def test_a_break_is_bridged(fake: Fake, ctx: loombridge.Client, limit: int | None) -> None:
    fake.on_stream(_rpc.READ_BLOB, Blob(breaks=1))
    assert await ctx.context.read_blob("ab", limit=limit) == DATA[:limit]
    assert [request.offset for request in fake.requests] == [0, 6]


async def test_a_server_that_is_gone_is_given_up(fake: Fake, ctx: loombridge.Client) -> None:
    async def gone(_request: Any, call: Call) -> AsyncGenerator[pb.ReadBlobResponse, None]:
        await refuse(call, grpc.StatusCode.UNAVAILABLE, "away")
        yield pb.ReadBlobResponse()

    fake.on_stream(_rpc.READ_BLOB, gone)
    with pytest.raises(loombridge.ServerUnreachableError):
        await ctx.context.read_blob("ab")
    assert len(fake.requests) == 3


async def test_errors_and_silence(fake: Fake, ctx: loombridge.Client) -> None:
    async def silent(
        request: pb.ReadBlobRequest, call: Call
    ) -> AsyncGenerator[pb.ReadBlobResponse, None]:
        if request.name == "none":
            await refuse(call, grpc.StatusCode.NOT_FOUND, "none", reason="BLOB_NOT_FOUND")
        await asyncio.sleep(60)
        yield pb.ReadBlobResponse()

    fake.on_stream(_rpc.READ_BLOB, silent)
    with pytest.raises(loombridge.BlobNotFoundError):
        await ctx.context.read_blob("none")
    with pytest.raises(loombridge.DeadlineExceededError, match="no piece of ab"):
        await ctx.context.read_blob("ab", timeout=0.05)


async def test_leaving_the_block_ends_the_call(fake: Fake, ctx: loombridge.Client) -> None:
    left = asyncio.Event()

    async def endless(_request: Any, _call: Call) -> AsyncGenerator[pb.ReadBlobResponse, None]:
        try:
            while True:
                yield pb.ReadBlobResponse(data=b"x")
        finally:
            left.set()

    fake.on_stream(_rpc.READ_BLOB, endless)
    async with ctx.context.stream_blob("ab") as stream:
        assert await anext(stream) == b"x"
    await asyncio.wait_for(left.wait(), 60)
