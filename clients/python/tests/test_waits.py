"""A wait that is given up breaks no iterator: the next one goes on where it was."""

import asyncio
import gc
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, TypeVar

import grpc
import pytest

import loombridge
from fake import Call, Fake, refuse
from fake_attach import Attach
from loombridge import _rpc
from loombridge.v1 import context_pb2, memory_pb2
from test_events import event, ready

T = TypeVar("T")


class Steps:
    """Lets a fake server go on only when the test says so, a step each time."""

    def __init__(self) -> None:
        self._steps = asyncio.Semaphore(0)

    def go(self) -> None:
        self._steps.release()

    async def next(self) -> None:
        await self._steps.acquire()


async def give_up(iterator: AsyncIterator[Any], seconds: float = 0.05) -> None:
    """Wait for an item that does not come."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(seconds):
            await anext(iterator)


async def in_time(iterator: AsyncIterator[T]) -> T:
    """Wait for an item; a CancelledError of a task that nobody cancelled is a failure."""
    try:
        async with asyncio.timeout(60):
            return await anext(iterator)
    except asyncio.CancelledError:
        pytest.fail("anext raised CancelledError in a task that nobody cancelled")


async def all_of(iterator: AsyncIterator[T]) -> tuple[list[T], int]:
    """Return all items, and how many waits were given up at once for them."""
    items: list[T] = []
    given_up = 0
    async with asyncio.timeout(60):
        while True:
            try:
                async with asyncio.timeout(0):
                    items.append(await anext(iterator))
            except TimeoutError:
                given_up += 1
                await asyncio.sleep(0)
            except StopAsyncIteration:
                return items, given_up


async def subscription(fake: Fake, ctx: loombridge.Client, steps: Steps) -> AsyncIterator[Any]:
    async def stream(_request: Any, _call: Call) -> AsyncGenerator[Any, None]:
        await steps.next()
        yield ready(t=0)
        await steps.next()
        yield event(1)
        await steps.next()
        yield event(2)

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    return ctx.events.subscribe({"t": 0})


async def blob_stream(fake: Fake, ctx: loombridge.Client, steps: Steps) -> AsyncIterator[Any]:
    async def stream(_request: Any, _call: Call) -> AsyncGenerator[Any, None]:
        yield context_pb2.ReadBlobResponse(info=context_pb2.BlobInfo(path="p"))
        for piece in (b"ab", b"cd"):
            await steps.next()
            yield context_pb2.ReadBlobResponse(data=piece)

    fake.on_stream(_rpc.READ_BLOB, stream)
    return ctx.context.stream_blob("p")


async def blob_search(fake: Fake, ctx: loombridge.Client, steps: Steps) -> AsyncIterator[Any]:
    async def stream(_request: Any, _call: Call) -> AsyncGenerator[Any, None]:
        for path in ("p", "q"):
            await steps.next()
            yield context_pb2.SearchBlobsResponse(blob=context_pb2.BlobInfo(path=path))

    fake.on_stream(_rpc.SEARCH_BLOBS, stream)
    return ctx.context.search_blobs(words="x")


async def reembedding(fake: Fake, ctx: loombridge.Client, steps: Steps) -> AsyncIterator[Any]:
    async def stream(_request: Any, _call: Call) -> AsyncGenerator[Any, None]:
        for done in (1, 2):
            await steps.next()
            yield memory_pb2.ReembedResponse(embedding_space="m", done=done, total=2)

    fake.on_stream(_rpc.REEMBED, stream)
    return ctx.memory.reembed()


async def blob_listing(fake: Fake, ctx: loombridge.Client, steps: Steps) -> AsyncIterator[Any]:
    async def answer(request: Any, _call: Call) -> context_pb2.ListBlobsResponse:
        await steps.next()
        token = "" if request.page_token else "more"
        blob = context_pb2.BlobInfo(path=f"p{request.page_token}")
        return context_pb2.ListBlobsResponse(blobs=[blob], next_page_token=token)

    fake.on(_rpc.LIST_BLOBS, answer)
    return aiter(ctx.context.list_blobs())


async def record_listing(fake: Fake, ctx: loombridge.Client, steps: Steps) -> AsyncIterator[Any]:
    async def answer(request: Any, _call: Call) -> memory_pb2.ListRecordsResponse:
        await steps.next()
        token = "" if request.page_token else "more"
        record = memory_pb2.Record(id=f"r{request.page_token}")
        return memory_pb2.ListRecordsResponse(records=[record], next_page_token=token)

    fake.on(_rpc.LIST_RECORDS, answer)
    return aiter(ctx.memory.list())


async def all_steps(fake: Fake, ctx: loombridge.Client, steps: Steps) -> AsyncIterator[Any]:
    async def answer(request: Any, _call: Call) -> context_pb2.ListStepsResponse:
        await steps.next()
        token = "" if request.page_token else "more"
        step = context_pb2.Step(id=f"s{request.page_token}")
        return context_pb2.ListStepsResponse(steps=[step], next_page_token=token)

    fake.on(_rpc.LIST_STEPS, answer)
    return ctx.context.all_steps()


async def batch_saving(fake: Fake, ctx: loombridge.Client, steps: Steps) -> AsyncIterator[Any]:
    async def answer(request: Any, _call: Call) -> memory_pb2.BatchSaveResponse:
        await steps.next()
        saved = [memory_pb2.MemorySaveResponse(id=each.text) for each in request.records]
        return memory_pb2.BatchSaveResponse(saved=saved)

    fake.on(_rpc.BATCH_SAVE, answer)
    return aiter(ctx.memory.save_many([str(n) for n in range(1001)]))


ITERATORS = [
    subscription,
    blob_stream,
    blob_search,
    reembedding,
    blob_listing,
    record_listing,
    all_steps,
    batch_saving,
]


@pytest.mark.parametrize("opened", ITERATORS, ids=lambda each: each.__name__)
async def test_a_wait_that_timed_out_loses_nothing(
    fake: Fake, ctx: loombridge.Client, opened: Callable[..., Any]
) -> None:
    steps = Steps()
    iterator = await opened(fake, ctx, steps)
    items: list[Any] = []
    if opened is subscription:
        await give_up(iterator)
        steps.go()
    await give_up(iterator)
    steps.go()
    items.append(await in_time(iterator))
    for _ in range(999 if opened is batch_saving else 0):
        items.append(await in_time(iterator))
    await give_up(iterator)
    steps.go()
    items.append(await in_time(iterator))
    with pytest.raises(StopAsyncIteration):
        await in_time(iterator)
    assert len({repr(item) for item in items}) == len(items)
    calls = 2 if opened in (blob_listing, record_listing, all_steps, batch_saving) else 1
    assert len(fake.requests) == calls, "nothing was asked for twice"


@pytest.mark.parametrize("opened", ITERATORS, ids=lambda each: each.__name__)
async def test_one_that_is_forgotten_in_a_wait_leaves_no_task(
    fake: Fake, ctx: loombridge.Client, opened: Callable[..., Any]
) -> None:
    lost: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: lost.append(what))
    iterator = await opened(fake, ctx, Steps())
    before = asyncio.all_tasks()
    # A task of its own: one that goes on keeps the error of its last cancelled wait,
    # and with it what the wait was for.
    waiting = asyncio.create_task(give_up(iterator))
    await waiting
    mine = [each for each in asyncio.all_tasks() - before if _fetches(each)]
    assert mine
    del iterator, waiting
    gc.collect()
    async with asyncio.timeout(60):
        while any(not task.done() for task in mine):  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.001)
    gc.collect()
    assert lost == []


def _fetches(task: "asyncio.Task[Any]") -> bool:
    """Tell the tasks of the client from those of gRPC and its server."""
    return getattr(task.get_coro(), "__qualname__", "").endswith(("_read_ahead", "work"))


async def test_an_error_that_came_while_nobody_waited(fake: Fake, ctx: loombridge.Client) -> None:
    lost: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, what: lost.append(what))
    steps = Steps()

    async def stream(_request: Any, call: Call) -> AsyncGenerator[Any, None]:
        await steps.next()
        await refuse(call, grpc.StatusCode.NOT_FOUND, "none", reason="BLOB_NOT_FOUND")
        yield context_pb2.ReadBlobResponse()

    fake.on_stream(_rpc.READ_BLOB, stream)
    taken, forgotten = ctx.context.stream_blob("p"), ctx.context.stream_blob("p")
    for each in (taken, forgotten):
        await give_up(each)
        steps.go()
        await asyncio.sleep(0.05)
    with pytest.raises(loombridge.BlobNotFoundError):
        await anext(taken)
    del each, taken, forgotten
    gc.collect()
    await asyncio.sleep(0)
    assert lost == []


async def test_a_place_moves_on_only_when_an_event_is_handed_out(
    fake: Fake, ctx: loombridge.Client
) -> None:
    steps = Steps()
    stream = await subscription(fake, ctx, steps)
    assert isinstance(stream, loombridge.Subscription)
    steps.go()
    await give_up(stream)
    steps.go()
    await asyncio.sleep(0.05)
    assert stream.positions == {"t": 0}
    assert (await in_time(stream)).sequence == 1
    assert stream.positions == {"t": 1}
    stream.close()


async def test_a_break_is_mended_while_waits_are_given_up(
    fake: Fake, ctx: loombridge.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_rpc, "RETRY_PAUSES", (0.2,))
    asked: list[int] = []

    async def stream(request: Any, call: Call) -> AsyncGenerator[Any, None]:
        asked.append(request.topics[0].after_sequence)
        yield ready(t=asked[-1])
        yield event(asked[-1] + 1)
        await refuse(call, grpc.StatusCode.UNAVAILABLE, "bye")

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    opened = ctx.events.subscribe({"t": 0})
    got: list[int] = []
    async with asyncio.timeout(60):
        while len(got) < 3:
            # Each wait is shorter than the pause before the stream opens again.
            try:
                async with asyncio.timeout(0.05):
                    got.append((await anext(opened)).sequence)
            except TimeoutError:
                continue
    opened.close()
    assert (got, asked) == ([1, 2, 3], [0, 1, 2])


async def test_two_readers_of_one_stream_are_refused(fake: Fake, ctx: loombridge.Client) -> None:
    steps = Steps()
    stream = await blob_stream(fake, ctx, steps)
    first = asyncio.create_task(in_time(stream))
    await asyncio.sleep(0.02)
    with pytest.raises(RuntimeError, match="one reader at a time"):
        await anext(stream)
    steps.go()
    assert await first == b"ab"


async def test_closing_while_a_wait_was_given_up(fake: Fake, ctx: loombridge.Client) -> None:
    stream = await subscription(fake, ctx, Steps())
    assert isinstance(stream, loombridge.Subscription)
    await give_up(stream)
    stream.close()
    stream.close()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_listing_can_be_closed_while_it_fetches(fake: Fake, ctx: loombridge.Client) -> None:
    pages: Any = await record_listing(fake, ctx, Steps())
    await give_up(pages)
    await pages.aclose()
    await pages.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(pages)


@pytest.mark.parametrize("opened", ITERATORS, ids=lambda each: each.__name__)
async def test_closing_the_client_ends_a_wait_that_was_given_up(
    fake: Fake, ctx: loombridge.Client, opened: Callable[..., Any]
) -> None:
    iterator = await opened(fake, ctx, Steps())
    await give_up(iterator)
    await ctx.close()
    with pytest.raises(loombridge.ClientClosedError):
        await in_time(iterator)


@pytest.mark.parametrize("opened", ITERATORS, ids=lambda each: each.__name__)
async def test_closing_the_client_ends_a_wait_for_the_next_item(
    fake: Fake, ctx: loombridge.Client, opened: Callable[..., Any]
) -> None:
    steps = Steps()
    iterator = await opened(fake, ctx, steps)
    steps.go()
    if opened is subscription:
        await give_up(iterator)
        steps.go()
    for _ in range(1000 if opened is batch_saving else 1):
        await in_time(iterator)
    waiting = asyncio.create_task(in_time(iterator))
    await asyncio.sleep(0.05)
    await ctx.close()
    with pytest.raises(loombridge.ClientClosedError):
        await waiting


async def test_closing_the_client_ends_its_streams_at_the_server(
    fake: Fake, ctx: loombridge.Client
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def stream(_request: Any, _call: Call) -> AsyncGenerator[Any, None]:
        begun.set()
        try:
            yield ready(t=0)
            await asyncio.sleep(60)
        finally:
            ended.set()

    fake.on_stream(_rpc.SUBSCRIBE, stream)
    opened = ctx.events.subscribe({"t": 0})
    await give_up(opened)
    async with asyncio.timeout(60):
        await begun.wait()
        await ctx.close()
        await ended.wait()


async def test_a_listener_of_an_attached_agent(agent: loombridge.Client, attach: Attach) -> None:
    async with agent.subscribe({"t": 0}) as listener:
        side = await attach.side()
        await give_up(listener)
        side.event("t", 1)
        assert (await in_time(listener)).sequence == 1
        await give_up(listener)
        side.event("t", 2)
        assert (await in_time(listener)).sequence == 2


async def test_on_a_real_server(live: loombridge.Client) -> None:
    saved, waits = await all_of(aiter(live.memory.save_many([f"note {n}" for n in range(30)])))
    assert (len(saved), waits > 0) == (30, True)
    listed, waits = await all_of(aiter(live.memory.list(page_size=7)))
    assert [each.text for each in listed] == [f"note {n}" for n in range(30)]
    assert waits >= 5
    whole = "".join(f"line {n}\n" for n in range(80_000))
    await live.context.record_step("my:tool", output=whole)
    names = [blob.path async for blob in live.context.list_blobs()]
    pieces, waits = await all_of(live.context.stream_blob(names[0]))
    assert (b"".join(pieces).decode(), waits > 0) == (whole, True)
    found, waits = await all_of(live.context.search_blobs(names[0], literal="line 79999"))
    assert ([match.line for match in found[0].matches], waits > 0) == ([80_000], True)
    steps, waits = await all_of(live.context.all_steps())
    assert ([step.id for step in steps], waits > 0) == (["step_001"], True)


async def test_a_subscription_on_a_real_server(live: loombridge.Client) -> None:
    subscription = live.events.subscribe({"t": 0})
    got: list[int] = []
    emitting = asyncio.create_task(_emit(live, 50))
    async with asyncio.timeout(60):
        while len(got) < 50:
            try:
                async with asyncio.timeout(0.0005):
                    got.append((await anext(subscription)).sequence)
            except TimeoutError:
                continue
    await emitting
    subscription.close()
    assert got == list(range(1, 51))


async def _emit(client: loombridge.Client, count: int) -> None:
    for n in range(count):
        await client.emit("t", n)
