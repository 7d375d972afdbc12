"""`loombridge.local`: a server for this program, found or started, and ended with it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loombridge
import loombridge.sync

WORDS = ("--embedder", "off")


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of this test's sockets, whose paths must be short."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield Path(folder)


def serving(runtime: Path) -> list[Path]:
    """Return the sockets of servers in the folder."""
    return list(runtime.glob("*/*.sock"))


def gone(runtime: Path) -> None:
    """Wait until no server has a socket in the folder."""
    ends = time.monotonic() + 60
    while serving(runtime):
        assert time.monotonic() < ends
        time.sleep(0.05)


async def test_a_program_has_a_server_and_its_memory_stays(
    tmp_path: Path, binary: Path, runtime: Path
) -> None:
    async with loombridge.local(tmp_path, agent_id="a", binary=binary, args=WORDS) as ctx:
        await ctx.memory_save("Bitcoin closed at 45,000")
        (tmp_path / "note.txt").write_text("in the workspace")
        read = await ctx.tool("fs:read_file", {"path": "note.txt"})
        assert read.output == {"content": "in the workspace"}
        # Another one of the same folder shares it.
        async with loombridge.local(tmp_path, agent_id="a", binary=binary) as other:
            assert (await other.memory_query("Bitcoin"))[0].text == "Bitcoin closed at 45,000"
        assert (await ctx.memory_query("Bitcoin"))[0].text == "Bitcoin closed at 45,000"
    gone(runtime)

    def later() -> str:
        with loombridge.sync.local(tmp_path, agent_id="a", binary=binary, args=WORDS) as ctx:
            return ctx.memory_query("Bitcoin")[0].text

    assert await asyncio.to_thread(later) == "Bitcoin closed at 45,000"
    gone(runtime)


def test_the_server_ends_with_a_program_that_is_killed(
    tmp_path: Path, binary: Path, runtime: Path
) -> None:
    program = (
        "import asyncio, loombridge, sys\n"
        "async def main():\n"
        "    args = ('--embedder', 'off')\n"
        "    folder, binary = sys.argv[1:]\n"
        "    async with loombridge.local(folder, agent_id='a', binary=binary, args=args):\n"
        "        print('serving', flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), str(binary)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"serving\n"
        assert serving(runtime)
        process.send_signal(signal.SIGKILL)
    gone(runtime)


def companions() -> list[int]:
    """Return the processes that this one started."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [int(pid) for each in tasks for pid in each.read_text().split()]


def kill_server() -> None:
    """Kill the one server of this process, and wait until nothing of it is left but a zombie."""
    (pid,) = companions()
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


async def test_a_server_that_is_killed_is_started_again(
    tmp_path: Path, binary: Path, runtime: Path
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    async with loombridge.local(tmp_path, agent_id="a", binary=binary, args=WORDS) as ctx:

        @ctx.subscribe("news")
        async def on_news(event: loombridge.Event) -> None:
            await heard.put(str(event.payload))

        await ctx.attach()
        for round_ in range(2):
            await ctx.memory_save(f"round {round_} before")
            kill_server()
            # Many at once, none of which may be sent twice.
            many = [ctx.memory_save(f"round {round_} of {i}") for i in range(5)]
            await asyncio.gather(*many)
            assert len(companions()) == 1
        found = await ctx.memory_query("round", limit=50)
        assert len(found) == 12
        # An agent that only listens is reached as well.
        kill_server()
        while heard.empty():
            with contextlib.suppress(loombridge.ServerUnreachableError):
                await ctx.emit("news", "again")
            await asyncio.sleep(0.05)
    assert not companions()
    gone(runtime)


def test_a_server_that_is_killed_is_started_again_for_sync(
    tmp_path: Path, binary: Path, runtime: Path
) -> None:
    with loombridge.sync.local(tmp_path, agent_id="a", binary=binary, args=WORDS) as ctx:
        ctx.memory_save("before")
        kill_server()
        ctx.memory_save("after")
        assert len(ctx.memory_query({"query": "before after"})) == 2
        # One that can't be started again says why.
        kill_server()
        (tmp_path / ".loom" / "store").rename(tmp_path / "away")
        (tmp_path / ".loom" / "store").write_text("in the way")
        with pytest.raises(loombridge.ServerUnreachableError, match=r"(?s)code 2.*its log ends"):
            ctx.memory_save("lost")
        (tmp_path / ".loom" / "store").unlink()
        (tmp_path / "away").rename(tmp_path / ".loom" / "store")
        assert len(ctx.memory_query({"query": "before after"})) == 2
    assert not companions()
    gone(runtime)


async def test_a_server_that_does_not_start_shows_its_log(tmp_path: Path, binary: Path) -> None:
    with pytest.raises(loombridge.ServerError, match=r"(?s)code 2.*--embedder"):
        async with loombridge.local(
            tmp_path, agent_id="a", binary=binary, args=("--embedder", "nothing")
        ):
            pass
    with (
        pytest.raises(loombridge.ServerError, match="code 2"),
        loombridge.sync.local(tmp_path, agent_id="a", binary=binary, args=("--nonsense",)),
    ):
        pass


def test_what_is_wrong_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="agent_id"):
        loombridge.local(tmp_path, agent_id="")
    with pytest.raises(loombridge.ServerError, match="is no program"):
        loombridge.local(tmp_path, agent_id="a", binary=tmp_path / "nothing")


def test_a_folder_in_one_that_does_not_exist_is_refused(tmp_path: Path, binary: Path) -> None:
    for local in (loombridge.local, loombridge.sync.local):
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*nope; make it first"):
            local(tmp_path / "nope" / "x", agent_id="a", binary=binary)
    assert not list(tmp_path.iterdir())


async def test_what_is_not_entered_says_how(tmp_path: Path, binary: Path) -> None:
    """Whoever takes it for a client, or enters it another way, reads what to write."""
    local: Any = loombridge.local(tmp_path, agent_id="a", binary=binary)
    plain: Any = loombridge.sync.local(tmp_path, agent_id="a", binary=binary)
    connect: Any = loombridge.connect(agent_id="a")
    how = r"async with loombridge\.local\(\.\.\.\) as ctx:.*loombridge\.sync\.local"
    with pytest.raises(AttributeError, match=rf"local\(\) .* no memory_save: write `{how}"):
        local.memory_save("x")
    with pytest.raises(TypeError, match=how), local:
        pass
    with pytest.raises(TypeError, match=how):
        await local
    with pytest.raises(AttributeError, match=r"write `with loombridge\.sync\.local"):
        plain.memory_save("x")
    with pytest.raises(TypeError, match=r"write `with loombridge\.sync\.local"):
        await plain
    with pytest.raises(AttributeError, match=r"async with .*loombridge\.sync\.connect"):
        connect.memory_save("x")
    with pytest.raises(TypeError, match=r"async with loombridge\.connect"), connect:
        pass
    assert not os.listdir(tmp_path)


def test_the_server_is_a_module_too(binary: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "loombridge.server", "--version"],
        env={**os.environ, "LOOM_BRIDGE_SERVER": str(binary)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("loom-bridge-server ")
