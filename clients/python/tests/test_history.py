"""What the calls about a session's history send, and the accounts that come back."""

from typing import Any

import pytest

import loombridge
from fake import Fake
from loombridge import _rpc
from loombridge.v1 import context_pb2 as pb
from loombridge.v1 import prompt_pb2

FOLD = pb.FoldInfo(
    refs=["step_001", "message_002"],
    tokens=40,
    before_tokens=900,
)

BATCH = prompt_pb2.FoldBatch(
    number=1,
    reason=prompt_pb2.FOLD_REASON_PRICE,
    refs=["step_001", "message_002"],
    before_tokens=900,
    after_tokens=40,
)

SEEN_FOLD = loombridge.Fold(
    refs=("step_001", "message_002"),
    tokens=40,
    before_tokens=900,
)

SEEN_BATCH = loombridge.FoldBatch(1, "price", ("step_001", "message_002"), 900, 40)


async def test_a_prompt_has_a_receipt(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.ASSEMBLE,
        pb.AssembleResponse(
            tokens=pb.TokenCount(tokens=7, certainty=pb.TOKEN_CERTAINTY_ANCHORED),
            receipt=pb.Receipt(
                prompt_id="p1",
                policy="ledger",
                folds=[FOLD],
                batch=BATCH,
                stable_tokens=3,
                cost=4.5,
                append_only_cost=100.25,
                pressure=0.5,
            ),
        ),
    )
    prompt = await ctx.context.assemble(
        model="gpt-4o",
        dry_run=True,
        history=loombridge.HistorySettings(preset="design", literal=True),
    )
    assert (prompt.certainty, prompt.exact) == ("anchored", False)
    assert prompt.receipt == loombridge.Receipt(
        prompt_id="p1",
        policy="ledger",
        folds=(SEEN_FOLD,),
        batch=SEEN_BATCH,
        stable_tokens=3,
        cost=4.5,
        append_only_cost=100.25,
        pressure=0.5,
    )
    assert fake.requests[0] == pb.AssembleRequest(
        agent_id="a1",
        session_id="s1",
        model="gpt-4o",
        dry_run=True,
        history=pb.HistorySettings(preset="design", literal=True),
    )


async def test_what_is_not_given_is_left_to_the_session(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.ASSEMBLE, pb.AssembleResponse())
    prompt = await ctx.context.assemble()
    assert prompt.receipt.batch is None
    assert (fake.requests[0].model, fake.requests[0].max_tokens) == ("", 0)
    assert not fake.requests[0].HasField("history")


async def test_configure(fake: Fake, ctx: loombridge.Client) -> None:
    answer = pb.ConfigureSessionResponse(
        history=pb.HistorySettings(
            policy=pb.HISTORY_POLICY_PRESET,
            preset="chat",
            literal=False,
            prices=pb.TokenPrices(input=2, cached_input=1, cache_write=2),
            expected_steps=9,
            max_result_tokens=100,
        ),
        model="claude-sonnet-4",
        max_tokens=5000,
    )
    fake.on(_rpc.CONFIGURE_SESSION, answer)
    settings = loombridge.HistorySettings(
        policy="preset",
        preset="chat",
        literal=False,
        prices=loombridge.TokenPrices(2, cached_input=1),
        expected_steps=9,
        max_result_tokens=100,
    )
    held = await ctx.context.configure(
        settings, model="claude-sonnet-4", max_tokens=5000, reset=True, request_id="q"
    )
    assert held.history.prices == loombridge.TokenPrices(2, 1, 2)
    assert (held.history.policy, held.history.preset, held.history.literal) == (
        "preset",
        "chat",
        False,
    )
    assert (held.model, held.max_tokens) == ("claude-sonnet-4", 5000)
    sent = fake.requests[0]
    assert sent == pb.ConfigureSessionRequest(
        agent_id="a1",
        session_id="s1",
        history=answer.history,
        model="claude-sonnet-4",
        max_tokens=5000,
        reset=True,
        request_id="q",
    )
    assert sent.history.HasField("literal")


async def test_configure_without_arguments_only_asks(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.CONFIGURE_SESSION, pb.ConfigureSessionResponse())
    held = await ctx.context.configure()
    assert held == loombridge.SessionSettings(loombridge.HistorySettings(), "", 0)
    assert fake.requests[0] == pb.ConfigureSessionRequest(agent_id="a1", session_id="s1")


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"policy": "design"}, TypeError, "history must be a HistorySettings, not dict"),
        (loombridge.HistorySettings(policy="best"), ValueError, "history.policy must be one of"),  # pyright: ignore
        (loombridge.HistorySettings(prices=3), TypeError, "history.prices must be a TokenPrices"),  # pyright: ignore
        (loombridge.HistorySettings(preset=1), TypeError, "history.preset must be a str"),  # pyright: ignore
        (loombridge.HistorySettings(expected_steps="9"), TypeError, "history.expected_steps"),  # pyright: ignore
    ],
)
async def test_wrong_settings_are_found_before_anything_is_sent(
    fake: Fake, ctx: loombridge.Client, settings: Any, error: type[Exception], text: str
) -> None:
    for call in (ctx.context.configure(settings), ctx.context.assemble(history=settings)):
        with pytest.raises(error, match=text):
            await call
    assert fake.requests == []


async def test_end(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.END_SESSION, pb.EndSessionResponse(last_position=12))
    assert await ctx.context.end() == 12
    assert await ctx.context.end(session_id="s2") == 12
    assert [each.session_id for each in fake.requests] == ["s1", "s2"]


async def test_compact_folds_or_returns_text(fake: Fake, ctx: loombridge.Client) -> None:
    count = pb.TokenCount(tokens=50, counter="o200k_base", certainty=pb.TOKEN_CERTAINTY_EXACT)
    fake.on(
        _rpc.COMPACT_HISTORY,
        pb.CompactHistoryResponse(
            batch=BATCH, folds=[FOLD], text="t", tokens=count, summary_problem="p"
        ),
    )
    done = await ctx.context.compact()
    assert done == loombridge.Compaction(
        batch=SEEN_BATCH,
        folds=(SEEN_FOLD,),
        text="t",
        tokens=loombridge.TokenCount(50, "o200k_base", "exact"),
        summary_problem="p",
    )
    assert done.tokens.exact
    await ctx.context.compact(
        style="grouped", keep_recent=2, model="m", max_tokens=500, dry_run=True
    )
    first, second = fake.requests
    assert first == pb.CompactHistoryRequest(agent_id="a1", session_id="s1")
    assert second == pb.CompactHistoryRequest(
        agent_id="a1",
        session_id="s1",
        style=pb.HISTORY_STYLE_GROUPED,
        keep_recent=2,
        model="m",
        max_tokens=500,
        dry_run=True,
    )
    with pytest.raises(ValueError, match="'design', 'reduction', 'grouped'"):
        await ctx.context.compact(style="long")  # pyright: ignore[reportArgumentType]


async def test_undo_takes_a_batch_a_number_or_nothing(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.UNDO, pb.UndoResponse(refs=["step_001"]))
    assert await ctx.context.undo() == loombridge.Undone(("step_001",))
    await ctx.context.undo(SEEN_BATCH, request_id="q")
    await ctx.context.undo(3)
    assert [(each.batch, each.request_id) for each in fake.requests] == [(0, ""), (1, "q"), (3, "")]


class Dumped:
    """An object of a provider's library."""

    def model_dump(self) -> dict[str, Any]:
        return {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": None}


@pytest.mark.parametrize(
    ("usage", "sent"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}, (9, 4, 0, 0)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 5},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            (9, 4, 3, 5),
        ),
        (
            {
                "input_tokens": 9,
                "output_tokens": 4,
                "input_tokens_details": {"cached_tokens": 5},
                "output_tokens_details": {"reasoning_tokens": 3},
            },
            (9, 4, 3, 5),
        ),
        (
            {
                "input_tokens": 2,
                "cache_read_input_tokens": 5,
                "cache_creation_input_tokens": 2,
                "output_tokens": 4,
            },
            (9, 4, 0, 5),
        ),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5}, (9, 0, 0, 5)),
        (Dumped(), (9, 2, 0, 0)),
    ],
    ids=["openai", "openai-cached", "responses", "anthropic", "deepseek", "object"],
)
async def test_usage_is_understood_as_providers_tell_it(
    fake: Fake, ctx: loombridge.Client, usage: object, sent: tuple[int, ...]
) -> None:
    fake.on(
        _rpc.REPORT_USAGE,
        pb.ReportUsageResponse(ratio=1.125),
    )
    learned = await ctx.context.report_usage("p1", usage)
    assert learned == loombridge.UsageLearned(1.125)
    r = fake.requests[0]
    assert (r.agent_id, r.session_id, r.prompt_id) == ("a1", "s1", "p1")
    assert (r.prompt_tokens, r.completion_tokens, r.reasoning_tokens, r.cached_tokens) == sent


async def test_usage_of_a_prompt_by_numbers(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.ASSEMBLE, pb.AssembleResponse(receipt=pb.Receipt(prompt_id="p7")))
    fake.on(_rpc.REPORT_USAGE, pb.ReportUsageResponse())
    prompt = await ctx.context.assemble()
    await ctx.context.report_usage(
        prompt, prompt_tokens=9, completion_tokens=4, reasoning_tokens=3, cached_tokens=5
    )
    assert fake.requests[1] == pb.ReportUsageRequest(
        agent_id="a1",
        session_id="s1",
        prompt_id="p7",
        prompt_tokens=9,
        completion_tokens=4,
        reasoning_tokens=3,
        cached_tokens=5,
    )


async def test_usage_that_says_nothing_is_refused(fake: Fake, ctx: loombridge.Client) -> None:
    report = ctx.context.report_usage
    with pytest.raises(ValueError, match="usage must have prompt_tokens"):
        await report("p1", {"total_tokens": 9})
    with pytest.raises(TypeError, match="prompt_tokens must be an int, not str"):
        await report("p1", {"prompt_tokens": "9"})
    both: list[dict[str, Any]] = [{}, {"usage": {"prompt_tokens": 9}, "prompt_tokens": 9}]
    for wrong in both:
        with pytest.raises(TypeError, match="give either usage or prompt_tokens"):
            await report("p1", **wrong)
    with pytest.raises(TypeError, match="usage must be a mapping"):
        await report("p1", 9)
    assert fake.requests == []


def test_refs_one_by_one() -> None:
    refs = ("step_001", "message_002..message_004", "step_998..step_1001", "ab..cd")
    undone = loombridge.Undone(refs)
    assert list(undone.each_ref()) == [
        *("step_001", "message_002", "message_003", "message_004"),
        *("step_998", "step_999", "step_1000", "step_1001", "ab..cd"),
    ]


async def test_compress(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(
        _rpc.COMPRESS_RESULT,
        pb.CompressResultResponse(
            content="short",
            compressed=True,
            blob=pb.BlobInfo(path="storage/tool_results/ab.json"),
            strategy="search",
        ),
    )
    short = await ctx.context.compress(
        "web:search",
        {"results": [1]},
        kind="search",
        hint="force",
        failed=True,
        threshold_chars=10,
        path="a.txt",
        exit_code=2,
        compressed=True,
        tool_call_id="c1",
    )
    assert (short.content, short.compressed, short.strategy) == ("short", True, "search")
    assert short.blob
    assert short.blob.path == "storage/tool_results/ab.json"
    assert fake.requests[0] == pb.CompressResultRequest(
        agent_id="a1",
        session_id="s1",
        tool_name="web:search",
        tool_call_id="c1",
        content='{"results":[1]}',
        result_kind="search",
        hint=pb.COMPRESS_HINT_FORCE,
        failed=True,
        threshold_chars=10,
        path="a.txt",
        exit_code=2,
        compressed=True,
    )
    await ctx.context.compress("t", "as it is")
    assert fake.requests[1].content == "as it is"


async def test_pins_and_observations_travel(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.APPEND_MESSAGES, pb.AppendMessagesResponse(positions=[1, 2]))
    fake.on(_rpc.RECORD_STEP, pb.RecordStepResponse(step=pb.Step(pinned=True)))
    await ctx.context.append(
        loombridge.Message("user", "Observation: 3", observation=True),
        {"role": "assistant", "content": "keep this", "pinned": True},
    )
    recorded = await ctx.context.record_step("t", pinned=True)
    assert recorded.step.pinned
    messages, step = fake.requests
    assert [(m.pinned, m.observation) for m in messages.messages] == [(False, True), (True, False)]
    assert step.pinned
