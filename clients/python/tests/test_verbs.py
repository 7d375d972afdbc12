"""What each call sends, and the dataclasses that come back."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

import loombridge
from fake import Fake
from loombridge import _rpc
from loombridge.v1 import (
    admin_pb2,
    context_pb2,
    events_pb2,
    memory_pb2,
    prompt_pb2,
    tools_pb2,
)

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def wire(moment: datetime) -> Timestamp:
    result = Timestamp()
    result.FromDatetime(moment)
    return result


RECORD = memory_pb2.Record(
    id="r1",
    text="text",
    key="k",
    kind="note",
    session_id="s1",
    author="Ann",
    event_time=wire(MOMENT),
    create_time=wire(MOMENT),
    metadata_json='{"a":1}',
    tags=["t"],
    importance=0.25,
    origin=memory_pb2.ORIGIN_WEB,
    tier=4,
)

STEP = context_pb2.Step(
    id="step_007",
    tool_name="fs:read_file",
    minimal_args_json='{"path":"a"}',
    observation="Read a (7 bytes, text)",
    create_time=wire(MOMENT),
    success=True,
    outcome=context_pb2.STEP_OUTCOME_SUCCEEDED,
    position=9,
)
STEP.metadata["size"] = 7


async def test_memory_save(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.MEMORY_SAVE,
        memory_pb2.MemorySaveResponse(
            id="r1", create_time=wire(MOMENT), expire_time=wire(MOMENT + timedelta(days=1))
        ),
    )
    saved = await ctx.memory_save(
        "text",
        key="k",
        kind="note",
        tags=["a", "b"],
        importance=0,
        expire_time=MOMENT,
        event_time=MOMENT,
        author="Ann",
        embedding=[1, 0.5],
        embedding_space="m",
        supersedes="r0",
        derived_from=["x"],
        origin="web",
        user_id="u",
        id="r1",
        request_id="q",
    )
    assert saved == loombridge.Saved("r1", MOMENT, MOMENT + timedelta(days=1))
    sent = fake.requests[0]
    assert sent == memory_pb2.MemorySaveRequest(
        agent_id="a1",
        session_id="s1",
        text="text",
        key="k",
        kind="note",
        tags=["a", "b"],
        importance=0,
        expire_time=wire(MOMENT),
        event_time=wire(MOMENT),
        author="Ann",
        embedding=[1, 0.5],
        embedding_space="m",
        supersedes="r0",
        derived_from=["x"],
        origin=memory_pb2.ORIGIN_WEB,
        user_id="u",
        id="r1",
        request_id="q",
    )
    assert sent.HasField("importance")


async def test_memory_save_leaves_out_what_is_not_given(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.MEMORY_SAVE, memory_pb2.MemorySaveResponse(id="r1"))
    assert (await ctx.memory_save("text")).expire_time is None
    assert fake.requests[0] == memory_pb2.MemorySaveRequest(
        agent_id="a1", session_id="s1", text="text"
    )


async def test_hits_are_a_sequence_with_a_receipt(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.MEMORY_QUERY,
        memory_pb2.MemoryQueryResponse(
            hits=[
                memory_pb2.MemoryHit(record=RECORD, score=0.75),
                memory_pb2.MemoryHit(record=RECORD, score=0.5),
            ],
            receipt=memory_pb2.QueryReceipt(records=9, degraded=["no embedder, words only"]),
        ),
    )
    hits = await ctx.memory_query("text", filter='tags:"t"', min_score=0.1)
    assert fake.requests[0].filter == 'tags:"t"'
    assert len(hits) == 2
    assert [hit.score for hit in hits] == [0.75, 0.5]
    assert hits[-1].score == 0.5
    assert [hit.score for hit in hits[:1]] == [0.75]
    assert hits.receipt.records == 9
    assert hits.receipt.degraded == ("no embedder, words only",)
    record = hits[0].record
    assert (record.id, record.origin, record.metadata) == ("r1", "web", {"a": 1})
    assert record.event_time == MOMENT
    assert record.expire_time is None
    assert not loombridge.Hits()


async def test_memory_get_by_key(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.GET_RECORD, RECORD)
    record = await ctx.memory.get(key="k", user_id="u", include_embedding=True)
    assert record.text == "text"
    assert fake.requests[0] == memory_pb2.GetRecordRequest(
        agent_id="a1",
        user_id="u",
        key="k",
        include_embeddings=True,
    )


async def test_tool(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.TOOL,
        tools_pb2.ToolResponse(
            success=True,
            output_json='{"content":"x","n":9007199254740993}',
            observation="Read a",
            output_truncated=True,
            output_blob=context_pb2.BlobInfo(ref="ab", path="workspace/outputs/read_007.txt"),
            step=STEP,
            recorded=True,
        ),
    )
    result = await ctx.tool(
        "fs:read_file", {"path": "a"}, timeout=2, thought="look", turn_id="t", call_id="c"
    )
    assert result.raise_for_error() is result
    assert result.output == {"content": "x", "n": 9007199254740993}
    assert (result.success, result.error, result.truncated) == (True, None, True)
    assert result.blob
    assert result.blob.path == "workspace/outputs/read_007.txt"
    assert result.step
    assert result.step.metadata == {"size": 7}
    assert isinstance(result.step.metadata["size"], int)
    assert (result.step.outcome, result.step.minimal_args) == ("succeeded", {"path": "a"})
    sent = fake.requests[0]
    assert (sent.arguments_json, sent.thought, sent.turn_id, sent.call_id) == (
        '{"path":"a"}',
        "look",
        "t",
        "c",
    )
    assert sent.timeout.ToTimedelta() == timedelta(seconds=2)
    assert sent.session_id == "s1"


async def test_failed_tool_is_a_result(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.TOOL,
        tools_pb2.ToolResponse(
            error_message="no such file",
            error_code=tools_pb2.TOOL_ERROR_CODE_NOT_FOUND,
            recorded=False,
            record_error="log is full",
        ),
    )
    result = await ctx.tool("fs:read_file")
    assert not result.success
    assert result.error == loombridge.ToolFailure("not_found", "no such file")
    assert (result.output, result.step, result.blob) == (None, None, None)
    assert result.record_error == "log is full"
    with pytest.raises(loombridge.ToolFailedError, match="no such file") as caught:
        result.raise_for_error()
    assert caught.value.reason == "NOT_FOUND"
    assert fake.requests[0].timeout.ToTimedelta() == timedelta(seconds=30)


async def test_a_long_default_timeout_stays_within_what_tools_may_take(fake: Fake) -> None:
    fake.on(_rpc.TOOL, tools_pb2.ToolResponse(success=True))
    async with loombridge.connect(fake.address, agent_id="a", timeout=3600) as ctx:
        await ctx.tool("fs:stat")
    assert fake.requests[0].timeout.ToTimedelta() == timedelta(minutes=10)


async def test_emit(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.EMIT, events_pb2.EmitResponse(event_id="e1", sequence=4, create_time=wire(MOMENT)))
    assert await ctx.emit("a.b", {"n": 1}, headers={"h": "v"}, event_id="e1") == (
        loombridge.Emitted("e1", 4, MOMENT)
    )
    await ctx.emit("a.b", b"\x00\xff", volatile=True, session_id="s2")
    await ctx.emit("a.b")
    first, second, third = fake.requests
    assert first.payload_json == '{"n":1}'
    assert (dict(first.headers), first.delivery) == ({"h": "v"}, events_pb2.DELIVERY_DURABLE)
    assert first.session_id == "s1"
    assert (second.payload_bytes, second.delivery) == (b"\x00\xff", events_pb2.DELIVERY_VOLATILE)
    assert second.session_id == "s2"
    assert third.payload_json == "null"


async def test_assemble_neutral(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.ASSEMBLE,
        context_pb2.AssembleResponse(
            messages=[
                context_pb2.Message(role=context_pb2.ROLE_SYSTEM, content="be brief"),
                context_pb2.Message(
                    role=context_pb2.ROLE_ASSISTANT,
                    tool_calls=[
                        context_pb2.ModelToolCall(id="c", name="fs_stat", arguments_json="{}")
                    ],
                ),
            ],
            tools_json='[{"name":"fs_stat","description":"d","parameters":{"type":"object"}}]',
            tokens=context_pb2.TokenCount(
                tokens=42, counter="o200k_base", certainty=context_pb2.TOKEN_CERTAINTY_EXACT
            ),
            parts={"system": 2},
            prefix_sha256="ff",
        ),
    )
    prompt = await ctx.context.assemble(goal="go", max_tokens=100, system="be brief", tools=False)
    assert (prompt.tokens, prompt.counter, prompt.exact) == (42, "o200k_base", True)
    assert prompt.parts == {"system": 2}
    assert prompt.messages == (
        loombridge.Message("system", "be brief"),
        loombridge.Message("assistant", tool_calls=(loombridge.ToolCall("c", "fs_stat", "{}"),)),
    )
    assert prompt.tools == (loombridge.ToolDefinition("fs_stat", "d", {"type": "object"}),)
    with pytest.raises(ValueError, match='format="openai"'):
        prompt.openai()
    assert fake.requests[0] == context_pb2.AssembleRequest(
        agent_id="a1",
        session_id="s1",
        goal="go",
        max_tokens=100,
        system="be brief",
        without_tools=True,
    )


async def test_assemble_openai(fake: Fake, ctx: loombridge.Client) -> None:
    text = '{"messages":[{"role":"user","content":"go"}],"tools":[]}'
    fake.on(
        _rpc.ASSEMBLE,
        context_pb2.AssembleResponse(
            prompt_json=text, format=context_pb2.PROMPT_FORMAT_OPENAI_CHAT
        ),
    )
    prompt = await ctx.context.assemble(goal="go", format="openai")
    assert prompt.openai() == {"messages": [{"role": "user", "content": "go"}], "tools": []}
    assert prompt.openai() is not prompt.openai()
    assert fake.requests[0].format == context_pb2.PROMPT_FORMAT_OPENAI_CHAT


async def test_append_takes_messages_and_openai_mappings(
    fake: Fake, ctx: loombridge.Client
) -> None:
    fake.on(_rpc.APPEND_MESSAGES, context_pb2.AppendMessagesResponse(positions=[3, 4, 5]))
    positions = await ctx.context.append(
        loombridge.Message("user", "hi", name="Ann"),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "x"}]},
    )
    assert positions == (3, 4, 5)
    assert list(fake.requests[0].messages) == [
        context_pb2.Message(role=context_pb2.ROLE_USER, content="hi", name="Ann"),
        context_pb2.Message(
            role=context_pb2.ROLE_ASSISTANT,
            tool_calls=[context_pb2.ModelToolCall(id="c", name="f", arguments_json="{}")],
        ),
        context_pb2.Message(
            role=context_pb2.ROLE_TOOL,
            tool_call_id="c",
            blocks_json='[{"type":"text","text":"x"}]',
        ),
    ]


async def test_steps(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.LIST_STEPS, context_pb2.ListStepsResponse(steps=[STEP]))
    fake.on(_rpc.GET_STEP, STEP)
    (step,) = await ctx.context.steps()
    assert step == await ctx.context.step("step_007")
    assert (step.id, step.position, step.create_time) == ("step_007", 9, MOMENT)
    assert fake.requests[0].page_size == 0


async def test_record_step(fake: Fake, ctx: loombridge.Client) -> None:
    struct_form = context_pb2.Step()
    struct_form.CopyFrom(STEP)
    struct_form.minimal_args["path"] = "a"
    fake.on(
        _rpc.RECORD_STEP,
        context_pb2.RecordStepResponse(
            step=struct_form,
            observation="Read a",
            output_blob=context_pb2.BlobInfo(ref="ab"),
        ),
    )
    recorded = await ctx.context.record_step(
        "my:tool", {"path": "a"}, output=[2**60], thought="look", call_id="c", request_id="q"
    )
    assert (recorded.step.id, recorded.step.minimal_args) == ("step_007", {"path": "a"})
    assert recorded.observation == "Read a"
    assert recorded.blob
    assert recorded.blob.ref == "ab"
    await ctx.context.record_step("my:tool", error="it broke")
    first, second = fake.requests
    assert first == context_pb2.RecordStepRequest(
        agent_id="a1",
        session_id="s1",
        tool_name="my:tool",
        arguments_json='{"path":"a"}',
        success=True,
        output_json="[1152921504606846976]",
        thought="look",
        call_id="c",
        request_id="q",
    )
    assert (second.success, second.error_message) == (False, "it broke")
    assert second.WhichOneof("output_form") is None


async def test_all_steps_turns_pages(fake: Fake, ctx: loombridge.Client) -> None:
    async def pages(
        request: context_pb2.ListStepsRequest, _call: object
    ) -> context_pb2.ListStepsResponse:
        more = "p2" if not request.page_token else ""
        return context_pb2.ListStepsResponse(steps=[STEP], next_page_token=more)

    fake.on(_rpc.LIST_STEPS, pages)
    assert [step.id async for step in ctx.context.all_steps()] == ["step_007", "step_007"]


async def test_count_tokens(fake: Fake, ctx: loombridge.Client) -> None:
    count = context_pb2.TokenCount(
        tokens=3, counter="cl100k_base", certainty=context_pb2.TOKEN_CERTAINTY_ESTIMATED
    )
    fake.on(_rpc.COUNT_TOKENS, count)
    assert await ctx.context.count_tokens("abc", model="gpt-4") == (
        loombridge.TokenCount(3, "cl100k_base", "estimated")
    )


async def test_count_messages(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.COUNT_TOKENS, context_pb2.TokenCount())
    said = loombridge.Message("assistant", "yes", name="ann")
    await ctx.context.count_messages([{"role": "user", "content": "no"}, said], model="gpt-4")
    assert fake.requests[0] == context_pb2.CountTokensRequest(
        agent_id="a1",
        model="gpt-4",
        messages=[
            context_pb2.Message(role=context_pb2.ROLE_USER, content="no"),
            context_pb2.Message(role=context_pb2.ROLE_ASSISTANT, content="yes", name="ann"),
        ],
    )
    with pytest.raises(TypeError, match=r"messages\[0\] must be a Message"):
        await ctx.context.count_messages(cast("Any", ["no"]))


async def test_list_tools(fake: Fake, ctx: loombridge.Client) -> None:
    tool = prompt_pb2.ToolDescriptor(
        name="fs:stat", parameters_schema_json='{"type":"object"}', level=1, category="file"
    )
    fake.on(_rpc.LIST_TOOLS, tools_pb2.ListToolsResponse(tools=[tool]))
    (found,) = await ctx.tools.list([1, 2])
    assert (found.name, found.parameters, found.mutates) == ("fs:stat", {"type": "object"}, False)
    assert list(fake.requests[0].levels) == [1, 2]


async def test_status(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.GET_STATUS,
        admin_pb2.GetStatusResponse(
            version="1.2.3", start_time=wire(MOMENT), durability="sync", store_format=1, tools=6
        ),
    )
    assert await ctx.status() == loombridge.Status("1.2.3", MOMENT, "sync", 1, False, 6)
    store = admin_pb2.StoreStatus(problem="no room", damage=["log: gone"], scrub_time=wire(MOMENT))
    calls = {"ok": 2, "timeout": 1}
    fake.on(
        _rpc.GET_STATUS,
        admin_pb2.GetStatusResponse(start_time=wire(MOMENT), store=store, tool_calls=calls),
    )
    status = await ctx.status()
    assert (status.writable, status.problem, status.damage) == (False, "no room", ("log: gone",))
    assert status.scrub_time == MOMENT
    assert (status.tool_calls, status.failed_tool_calls) == (3, 1)
    assert status.tool_outcomes == {"ok": 2, "timeout": 1}
