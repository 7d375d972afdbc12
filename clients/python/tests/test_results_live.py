"""Results on the real server: kept byte for byte, in every form."""

import base64
import json
import random
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import loombridge
from loombridge import testing


def noise(size: int, seed: int = 0) -> bytes:
    """Return bytes of no meaning, always the same."""
    return random.Random(seed).randbytes(size)  # noqa: S311  they are no secret


def png(width: int, height: int) -> bytes:
    """Return a PNG of one color, with bytes in it that say nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\x00" + b"\x10\x20\x30" * width for _ in range(height))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"tEXt", b"k\x00" + noise(2000))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


async def read(ctx: loombridge.Client, recorded: loombridge.RecordedStep) -> set[bytes]:
    """Return what every name of a result leads to."""
    names = {recorded.step.id}
    if recorded.blob is not None:
        names |= {recorded.blob.path, recorded.blob.ref, recorded.blob.ref[:12]}
        names |= {recorded.blob.path.removeprefix("workspace/")}
    return {bytes(await ctx.context.read_blob(name)) for name in names}


# A21
@pytest.mark.parametrize(
    "size", [0, 1, 3, 300, 600, 999, 1000, 5000, 20_000, 1 << 20, (1 << 20) + 1]
)
async def test_text_and_bytes_come_back(live: loombridge.Client, size: int) -> None:
    for output in (
        "x" * size,
        ("ab\0c é" * size)[:size],
        noise(size),
        b"\xff" * size,
        "é" * (size // 2),
    ):
        recorded = await live.context.record_step("my:tool", output=output)
        given = output.encode() if isinstance(output, str) else output
        assert await read(live, recorded) == {given}
        assert recorded.step.result_form == ("text" if isinstance(output, str) else "bytes")


async def test_json_comes_back(live: loombridge.Client) -> None:
    exact = [
        '{"b": 1.0, "a": [1e5, -0.0], "a": null}',
        "[1, 2]",
        " null ",
        "true",
        "3",
        '"\\u0041"',
        '{"error_code":"E42"}',
        '{"stdout":"a\\nb","stderr":"c","pid":4}',
    ]
    for text in exact:
        for output in (text, f'[{text}, "{"long " * 5000}"]', f'[{text}, "{"long " * 500_000}"]'):
            recorded = await live.context.record_step("my:tool", output=loombridge.JsonText(output))
            assert await read(live, recorded) == {output.encode()}
    value = {"z": 1.0, "a": [None, True, 2**70], "text": "é\n"}
    recorded = await live.context.record_step("my:tool", output=value)
    data = await live.context.read_blob(recorded.step.id)
    assert (data.json(), list(data.json())) == (value, ["z", "a", "text"])
    assert recorded.step.result_form == "json"


async def test_halves_of_surrogate_pairs_are_mended(live: loombridge.Client) -> None:
    half, name = "\ud83d", "odd\udcff.txt"  # as os.listdir gives a name that is not UTF-8
    for n, output in enumerate((f"found {name}", [name], loombridge.JsonText(f'["{name}"]'))):
        step = await live.context.record_step(
            "ls", {"a" + half: half}, output=output, thought=half, call_id=f"{half}{n}"
        )
        assert "odd\ufffd.txt" in step.observation
    failed = await live.context.record_step("ls", error=f"no {name}")
    assert "odd\ufffd.txt" in failed.observation
    answer = await live.tool("no" + half, {}, call_id="c" + half)
    assert answer.error is not None


async def test_nothing_is_not_none(live: loombridge.Client) -> None:
    nothing = await live.context.record_step("my:tool")
    none = await live.context.record_step("my:tool", output=None)
    assert (nothing.observation, nothing.step.result_form) == ("my:tool completed", "none")
    assert (none.observation, none.step.result_form) == ("my:tool completed", "json")


async def test_forms_of_a_result(live: loombridge.Client) -> None:
    context = live.context
    printed = loombridge.JsonText('{"stdout": "out é\\n", "stderr": "err", "exit_code": 1}')
    for tool in ("my:tool", "system:shell"):
        step = (await context.record_step(tool, {"command": "ls"}, output=printed)).step
        assert await context.read_blob(step.id) == printed.encode()
        assert (await context.read_blob(step.id, form="text")).text() == "out é\nerr"
        assert (await context.read_blob(f"{step.id}.txt")).text() == "out é\nerr"
        assert await context.read_blob(step.id, form="stdout") == "out é\n".encode()
        assert await context.read_blob(step.id, form="stdout", offset=4, limit=2) == "é".encode()
        assert await context.read_blob(step.id, form="stderr") == b"err"
        with pytest.raises(loombridge.BlobNotFoundError):
            await context.read_blob(step.id, form="media")
    with pytest.raises(ValueError, match="form must be one of"):
        await context.read_blob(step.id, form="pretty")  # pyright: ignore[reportArgumentType]
    with pytest.raises(loombridge.InvalidRequestError):
        await context.read_blob(step.id, form="media", media_index=64)


# A09, A15: the path of what a shell printed leads to the log, and that of a file to
# its content, however they were given; the step leads to what was given.
async def test_paths_of_logs_and_files(live: loombridge.Client) -> None:
    out = "".join(f"line {i} é\n" for i in range(500))
    given = {"exit_code": 0, "stdout": out, "stderr": "warn\n", "pid": 4}
    shell = await live.context.record_step("system:shell", {"command": "make all"}, output=given)
    file = await live.context.record_step("fs:read_file", {"path": "a"}, output={"content": out})
    odd = loombridge.JsonText(json.dumps({"content": out}))  # not as the server would write it
    odd_file = await live.context.record_step("fs:read_file", {"path": "a"}, output=odd)
    for recorded, path, whole in (
        (shell, (out + "warn\n"), json.dumps(given, ensure_ascii=False, separators=(",", ":"))),
        (file, out, json.dumps({"content": out}, ensure_ascii=False, separators=(",", ":"))),
        (odd_file, out, odd),
    ):
        assert recorded.blob is not None
        assert (await live.context.read_blob(recorded.blob.path)).text() == path
        assert (await live.context.read_blob(recorded.step.id)).text() == whole
        original = await live.context.read_blob(recorded.blob.path, form="original")
        assert original.text() == whole
    assert shell.blob is not None
    assert shell.blob.path.endswith(".log")
    assert shell.step.metadata["stdout_bytes"] == len(out.encode())
    assert shell.step.metadata["stderr_bytes"] == 5


async def test_streams_and_files(live: loombridge.Client, tmp_path: Path) -> None:
    whole = noise(5 << 20)
    path = tmp_path / "large.bin"
    path.write_bytes(whole)

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(whole), 700_001):
            yield whole[start : start + 700_001]

    for output in (whole, path, pieces()):
        recorded = await live.context.record_step("my:tool", output=output, media_type="x/y")
        assert await read(live, recorded) == {whole}
        assert recorded.step.result_form == "bytes"
    with pytest.raises(FileNotFoundError):
        await live.context.record_step("my:tool", output=tmp_path / "none")


async def test_a_stream_that_breaks_records_nothing(live: loombridge.Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * (3 << 20)
        raise RuntimeError("the tool broke")

    with pytest.raises(RuntimeError, match="the tool broke"):
        await live.context.record_step("my:tool", output=pieces())
    assert await live.context.steps() == ()


async def test_what_is_too_long_is_refused(binary: Path) -> None:
    async with (
        testing.server(binary, args=["--max-result-bytes", str(2 << 20)]) as server,
        loombridge.connect(server.address, agent_id="a1") as ctx,
    ):
        with pytest.raises(loombridge.InvalidRequestError, match="longer than 2097152 bytes"):
            await ctx.context.record_step("my:tool", output=b"x" * ((2 << 20) + 1))
        await ctx.context.record_step("my:tool", output=b"x" * (2 << 20))
        assert len(await ctx.context.steps()) == 1


async def test_a_repeated_upload_is_one_step(live: loombridge.Client) -> None:
    whole = "line\n" * 500_000
    first = await live.context.record_step("my:tool", output=whole, request_id="r")
    again = await live.context.record_step("my:tool", output=whole, request_id="r")
    assert (first.replayed, again.replayed, again.step.id) == (False, True, first.step.id)
    with pytest.raises(loombridge.RequestIdReusedError):
        await live.context.record_step("my:tool", output=whole + "x", request_id="r")


# J09
async def test_images(live: loombridge.Client) -> None:
    image = png(640, 480)
    url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    content = loombridge.Content(["a screenshot", loombridge.Image(image)])
    for output in (image, url, {"screenshot": url, "title": "home"}, content):
        recorded = await live.context.record_step("my:tool", output=output)
        prompt = await live.context.assemble(max_tokens=60_000)
        shown = "".join(message.content for message in prompt.messages)
        assert base64.b64encode(image).decode()[:40] not in shown
        assert f"[image image/png 640x480, {recorded.step.outcome_path}]" in shown
        assert await live.context.read_blob(recorded.step.id, form="media") == image
        assert recorded.step.metadata["width"] == 640
        if isinstance(output, bytes | str):
            assert recorded.blob is not None
            assert (recorded.blob.kind, recorded.blob.media_type) == ("image", "image/png")
    blocks = (await live.context.read_blob(recorded.step.id)).json()["content"]
    assert [block["type"] for block in blocks] == ["text", "image"]
    assert base64.b64decode(blocks[1]["data"]) == image


# P25, P26
async def test_tasks_are_found_by_id_and_reference(live: loombridge.Client) -> None:
    task = loombridge.Task("execute", task_id="t1", parameters={"n": 1}, result="done")
    await live.context.record_step("planner:plan", output="ok", task=task, session_id="elsewhere")
    for name in ("t1", "task/t1"):
        found = await live.context.task(name)
        assert (found.task.task_id, found.task.result) == ("t1", "done")
        assert found.task.parameters == {"n": 1}
        assert found.session_id == "elsewhere"
        assert 1 in found.tiers
    assert (await live.context.read_blob("task/t1")).json()["task_id"] == "t1"
    with pytest.raises(loombridge.RecordNotFoundError):
        await live.context.task("task/none")


async def test_refused_calls(live: loombridge.Client) -> None:
    recorded = await live.context.record_step(
        "system:shell", {"command": "ls -l"}, error="no such tool here", refused=True
    )
    assert recorded.step.refused
    assert recorded.observation == "ls: refused: no such tool here"
    history = loombridge.PromptSettings(sources=loombridge.SourceSettings(exclude=["errors"]))
    prompt = await live.context.assemble(max_tokens=60_000, settings=history)
    assert sum(m.content.count("no such tool here") for m in prompt.messages) == 1


async def test_agents_tools_give_text_and_bytes(live: loombridge.Client) -> None:
    @live.tool("my:text")
    def text() -> str:
        return "ab\0c"

    @live.tool("my:bytes")
    def data() -> bytes:
        return b"\xff\x00\xfe"

    @live.tool("my:exact")
    def exact() -> loombridge.JsonText:
        return loombridge.JsonText('{"b": 1.0, "a": [1e5]}')

    await live.attach()
    for name, output, whole in (
        ("my:text", "ab\0c", b"ab\0c"),
        ("my:bytes", b"\xff\x00\xfe", b"\xff\x00\xfe"),
        ("my:exact", {"b": 1.0, "a": [1e5]}, b'{"b": 1.0, "a": [1e5]}'),
    ):
        result = await live.tool(name)
        assert (result.success, result.output) == (True, output)
        assert result.step is not None
        assert await live.context.read_blob(result.step.id) == whole
