"""The synchronous client on a real server: calls, streams, threads, signals, forks, the end."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import loombridge
from loombridge import sync, testing
from test_readme import chapter_code


@pytest.fixture
def sctx(srv: testing.Server) -> Iterator[sync.Client]:
    """A synchronous client of the real server, agent `a1` in session `s1`."""
    with sync.connect(srv.address, agent_id="a1", session_id="s1") as client:
        yield client


def own_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("loombridge")]


def run(code: str, address: str, *, send: signal.Signals | None = None) -> str:
    """Run code in a new interpreter, warnings as errors; return what it prints.

    It gets a signal as soon as it has printed `ready`.
    """
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ADDRESS": address},
    )
    assert process.stdout is not None
    head = ""
    if send is not None:
        head = process.stdout.readline()
        assert head == "ready\n"
        process.send_signal(send)
    out, err = process.communicate(timeout=60)
    # What gRPC itself says of a fork is no fault of the program.
    told = [line for line in err.splitlines() if "fork_posix" not in line and "absl::" not in line]
    assert (process.returncode, told) == (0, [])
    return head + out


# Y30
def test_the_four_verbs_and_the_parts(sctx: sync.Client, srv: testing.Server) -> None:
    (srv.workspace / "a.txt").write_text("hello\n")
    saved = sctx.memory_save("Bitcoin closed at 45,000", metadata={"n": 2**60}, tags=["market"])
    hits = sctx.memory_query({"query": "where did Bitcoin close", "limit": 3})
    assert [hit.record.id for hit in hits] == [saved.id]
    assert hits.receipt.degraded
    assert hits[0].record.metadata == {"n": 2**60}
    changed = sctx.memory.update(id=saved.id, importance=0.9, expected_version=1)
    assert [each.version for each in sctx.memory.versions(id=saved.id)] == [changed.version, 1]
    assert sctx.tool("fs:read_file", {"path": "a.txt"}).success
    assert sctx.emit("desk.news", {"n": 1}).sequence == 1
    assert sctx.context.assemble(goal="Say it", model="gpt-4o").tokens > 0
    assert [step.tool_name for step in sctx.context.all_steps()] == ["fs:read_file"]
    assert sctx.working.update(goal="Say it").goal == "Say it"
    assert sctx.agent_id == "a1"
    with pytest.raises(loombridge.RecordNotFoundError):
        sctx.memory.get(id="gone")
    with pytest.raises(TypeError, match="did you mean 'limit'"):
        sctx.memory_query("x", limits=1)  # pyright: ignore[reportCallIssue]
    other = "search"
    with pytest.raises(AttributeError, match=r"did you mean ctx\.memory_query"):
        getattr(sctx, other)


# Y30
def test_streams_are_plain_iterators(sctx: sync.Client) -> None:
    # A generator that itself uses the client is read in a thread of its own.
    def texts() -> Iterator[str]:
        for number in range(700):
            if number % 350 == 0:
                sctx.status()
            yield f"record {number}"

    saved = sctx.memory.save_many(texts())
    assert len(saved) == 700
    listing = sctx.memory.list(page_size=100)
    assert [each.id for each in listing] == [each.id for each in saved]
    assert next(iter(listing)).id == saved[0].id
    assert len([each.id for each in sctx.memory.save_many_iter(["a", "b"])]) == 2
    lines = list(sctx.memory.export_lines())
    assert sctx.memory.import_lines(iter(lines)).unchanged == 702
    sctx.context.append({"role": "user", "content": "Say it"})
    session = list(sctx.sessions.export_lines())
    assert sctx.sessions.import_lines(iter(session)).unchanged == 1
    with sctx.memory.watch() as watch:
        seen = 0
        for change in watch:
            if change.caught_up:
                break
            seen += 1
        assert seen == 702
        with pytest.raises(TimeoutError):
            watch.next(timeout=0.05)
        kept = sctx.memory_save("one more")
        change = watch.next(timeout=10)
        assert change.record is not None
        assert change.record.id == kept.id
    with pytest.raises(StopIteration):
        watch.next()


# Y30
def test_handlers_and_tools_are_plain_functions(sctx: sync.Client, srv: testing.Server) -> None:
    @sctx.tool
    def word_count(text: str) -> int:
        """Count the words of a text."""
        sctx.memory_save(f"counted {text}")
        return len(text.split())

    @sctx.tool("text.upper", description="Upper case.")
    def upper(text: str) -> str:
        return text.upper()

    @sctx.subscribe("math.add")
    def on_add(event: loombridge.Event) -> None:
        sctx.reply(event, event.payload["a"] + event.payload["b"])

    sctx.attach()
    with sync.connect(srv.address, agent_id="a2") as other:
        assert other.tool("word_count", {"text": "a b c"}).output == 3
        assert other.tool("text.upper", {"text": "a"}).output == "A"
        assert other.request("math.add", {"a": 2, "b": 3}).payload == 5
        with other.subscribe("news.*") as events:
            sctx.emit("news.one", 1)
            assert events.next(timeout=10).payload == 1
    assert [hit.text for hit in sctx.memory_query("counted")] == ["counted a b c"]
    assert word_count("a b") == 2
    assert upper("b") == "B"

    @sctx.tool
    async def inside() -> str:
        return sctx.session_id or sctx.status().version

    @sctx.tool
    async def blocked() -> str:
        return sctx.status().version

    sctx.attach()
    assert sctx.tool("inside", {}).output == "s1"
    refused = sctx.tool("blocked", {})
    assert refused.error is not None
    assert "make that a plain function" in refused.error.message
    assert on_add is not None
    assert inside is not blocked


def test_a_child_is_stopped_at_the_end_of_its_block(sctx: sync.Client) -> None:
    with sctx.spawn("child-1", goal="Find out") as child:
        assert child.state().status == "running"
    assert child.state().status == "failed"
    other = sctx.spawn("child-2", goal="Find out")
    assert other.id == "child-2"
    assert sctx.gather(other.id, wait=0).pending == ("child-2",)
    other.stop()


def test_it_works_where_an_event_loop_runs(srv: testing.Server) -> None:
    async def cell() -> str:
        with sync.connect(srv.address, agent_id="a1") as ctx:
            ctx.memory_save("from a notebook")
            return ctx.memory_query("notebook")[0].text

    assert asyncio.run(cell()) == "from a notebook"
    assert own_threads() == []


def test_many_threads_use_one_client(sctx: sync.Client) -> None:
    def work(number: int) -> str:
        sctx.memory_save(f"thread {number}", key=f"k{number}")
        return sctx.memory.get(key=f"k{number}").text

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(64))) == [f"thread {n}" for n in range(64)]
    assert sctx.memory.stats().records == 64


def test_closing_ends_what_waits_and_leaves_no_thread(srv: testing.Server) -> None:
    ctx = sync.connect(srv.address, agent_id="a1")
    events = ctx.events.subscribe("nothing.comes")
    ended: list[BaseException] = []
    began = threading.Event()

    def wait() -> None:
        began.set()
        try:
            events.next()
        except BaseException as err:
            ended.append(err)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert began.wait(10)
    ctx.close()
    ctx.close()
    waiting.join(10)
    assert [type(err) for err in ended] == [loombridge.ClientClosedError]
    with pytest.raises(loombridge.ClientClosedError):
        ctx.status()
    assert own_threads() == []


def test_what_is_forgotten_is_closed(srv: testing.Server) -> None:
    ctx = sync.connect(srv.address, agent_id="a1")
    memory = ctx.memory
    del ctx
    gc.collect()
    # A part keeps the client.
    assert memory.stats().records == 0
    del memory
    gc.collect()
    assert own_threads() == []


def test_nobody_there_leaves_no_thread() -> None:
    with pytest.raises(loombridge.ServerUnreachableError):
        sync.connect("127.0.0.1:1", agent_id="a1", wait=0)
    with pytest.raises(ValueError, match="agent_id must not be empty"):
        sync.connect("127.0.0.1:1", agent_id="")
    assert own_threads() == []


def test_ctrl_c_ends_a_call_and_the_client_goes_on(srv: testing.Server) -> None:
    printed = run(
        """
import os, signal
from loombridge import sync
signal.signal(signal.SIGINT, signal.default_int_handler)  # where it came ignored
with sync.connect(os.environ["ADDRESS"], agent_id="a1") as ctx:
    with ctx.events.subscribe("nothing.comes") as events:
        try:
            print("ready", flush=True)
            for event in events:
                print("an event")
        except KeyboardInterrupt:
            print("interrupted")
    print(ctx.memory.stats().records)
""",
        srv.address,
        send=signal.SIGINT,
    )
    assert printed == "ready\ninterrupted\n0\n"


def test_a_program_that_forgets_to_close_ends(srv: testing.Server) -> None:
    printed = run(
        """
import os
from loombridge import sync
ctx = sync.connect(os.environ["ADDRESS"], agent_id="a1")
watch = ctx.memory.watch()
ctx.memory_save("kept")
print(next(watch).record.text)
""",
        srv.address,
    )
    assert printed == "kept\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_has_no_client(srv: testing.Server) -> None:
    printed = run(
        """
import os, sys
from loombridge import sync
ctx = sync.connect(os.environ["ADDRESS"], agent_id="a1")
ctx.memory_save("before")
child = os.fork()
if child == 0:
    for attempt in (ctx.status, lambda: sync.connect(os.environ["ADDRESS"], agent_id="a2")):
        try:
            attempt()
        except RuntimeError as err:
            print("forked" in str(err), flush=True)
    sys.exit()
print(os.waitpid(child, 0)[1], ctx.memory.stats().records)
ctx.close()
""",
        srv.address,
    )
    assert printed == "True\nTrue\n0 1\n"


def test_connecting_after_a_fork_works(srv: testing.Server) -> None:
    printed = run(
        """
import os, sys
from loombridge import sync
child = os.fork()
with sync.connect(os.environ["ADDRESS"], agent_id="a1", session_id=str(child)) as ctx:
    ctx.memory_save("here", key="child" if child == 0 else "parent")
if child:
    print(os.waitpid(child, 0)[1])
""",
        srv.address,
    )
    assert printed == "0\n"


def test_the_lines_without_async_of_the_readme(
    srv: testing.Server, capsys: pytest.CaptureFixture[str]
) -> None:
    code = chapter_code("Without async").replace("127.0.0.1:50051", srv.address)
    exec(code, {})  # noqa: S102  our own text
    scored, listed = capsys.readouterr().out.splitlines()
    assert scored.endswith(" Bitcoin closed at 45,000")
    assert listed == "Bitcoin closed at 45,000"
