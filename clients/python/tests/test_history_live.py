"""Histories on the real server: folded, read back, unfolded, counted."""

import json
import re
from typing import Any

import pytest

import loombridge
from loombridge import testing


def report(number: int) -> str:
    """Return a result of a thousand tokens and more."""
    lines = (f"src/part_{number}/file_{n}.go:{n * 7}: func Handle{number}_{n}()" for n in range(60))
    return "\n".join(lines)


async def work(ctx: loombridge.Client, steps: range) -> None:
    """Take steps of one turn each."""
    for i in steps:
        await ctx.context.record_step(
            "code:grep", {"query": f"part {i}"}, output=report(i), thought=f"Look at {i}."
        )


async def text(ctx: loombridge.Client, **options: Any) -> str:
    """Return a prompt's messages, as they go to a provider."""
    prompt = await ctx.context.assemble(format="openai", tools=False, max_tokens=60_000, **options)
    return json.dumps(prompt.openai()["messages"])


async def test_a_long_history_is_folded_and_can_be_read_back(live: loombridge.Client) -> None:
    await live.context.append({"role": "user", "content": "Find the handler"})
    prompts: list[loombridge.Prompt] = []
    for i in range(30):
        await work(live, range(i, i + 1))
        prompts.append(await live.context.assemble(goal="Find it", max_tokens=60_000))
    receipts = [prompt.receipt for prompt in prompts]
    assert sum(r.cost for r in receipts) < sum(r.append_only_cost for r in receipts)
    batches = [r.batch for r in receipts if r.batch]
    assert batches
    assert {batch.reason for batch in batches} == {"price"}
    assert all(batch.after_tokens < batch.before_tokens for batch in batches)
    assert [batch.number for batch in batches] == list(range(1, len(batches) + 1))
    refs = [ref for fold in receipts[-1].folds for ref in fold.each_ref()]
    folded = [ref for ref in refs if ref.startswith("step_")]
    assert folded[0] == "step_001"
    assert len(set(folded)) == len(folded)
    for ref in folded:
        number = int(ref.removeprefix("step_")) - 1
        assert report(number) in (await live.context.read_blob(ref)).decode()
    read = await live.tool("fs:read_file", {"path": folded[0]})
    assert "func Handle0_59()" in str(read.output)
    assert prompts[-1].messages[0] == loombridge.Message("user", "Find the handler")


# B15
async def test_every_reference_of_a_long_run_is_read_back(
    live: loombridge.Client, srv: testing.Server
) -> None:
    shown: set[str] = set()
    for i in range(120):
        call = {"id": f"c{i}", "function": {"name": "code_grep", "arguments": f'{{"n":{i}}}'}}
        said = {"role": "assistant", "content": f"Look at {i}. " * 40, "tool_calls": [call]}
        await live.context.append(said)
        await live.context.record_step("code:grep", {"n": i}, output=report(i), call_id=f"c{i}")
        if i % 10 == 9:
            prompt = await live.context.assemble(goal="Find it", max_tokens=60_000)
            shown |= {ref for fold in prompt.receipt.folds for ref in fold.each_ref()}
            for message in prompt.messages:
                shown |= set(re.findall(r"\b(?:step|message)_\d+\b", str(message)))
    messages = [name for name in shown if name.startswith("message_")]
    steps = [name for name in shown if name.startswith("step_")]
    assert len(messages) > 90
    assert len(steps) > 90
    for name in shown:
        number = int(name.partition("_")[2])
        is_step = name.startswith("step_")
        text = (await live.context.read_blob(name)).decode()
        # A message of the assistant and its step stand one behind the other.
        assert (report(number - 1) if is_step else f"Look at {number // 2}. ") in text
        part = f"Handle{number - 1}_59" if is_step else "Look at"
        async with live.context.search_blobs(name, literal=part) as search:
            assert [match.line async for found in search for match in found.matches]
    async with loombridge.connect(srv.address, agent_id="a1", session_id="s2") as ctx:
        with pytest.raises(loombridge.BlobNotFoundError):
            await ctx.context.read_blob(messages[0])
        assert await ctx.context.read_blob(messages[0], session_id="s1")


async def test_undo_gives_back_the_very_bytes(live: loombridge.Client) -> None:
    await work(live, range(6))
    settings = loombridge.HistorySettings(policy="append_only")
    plain = await text(live, history=settings)
    done = await live.context.compact()
    assert done.batch
    assert (done.batch.number, done.batch.reason) == (1, "caller")
    assert done.folds
    assert await text(live) != plain
    with pytest.raises(loombridge.NothingToUndoError):
        await live.context.undo(done.batch.number + 1)
    undone = await live.context.undo(done.batch)
    assert undone.refs == done.batch.refs
    assert await text(live, dry_run=True) == plain
    with pytest.raises(loombridge.NothingToUndoError):
        await live.context.undo()


async def test_dry_runs_store_nothing(live: loombridge.Client) -> None:
    await work(live, range(12))
    once = await live.context.assemble(max_tokens=12_000, dry_run=True)
    again = await live.context.assemble(max_tokens=12_000, dry_run=True)
    assert once.receipt.batch
    assert once.receipt.batch == again.receipt.batch
    assert once.messages == again.messages
    shown = await live.context.compact(dry_run=True)
    assert shown.batch
    with pytest.raises(loombridge.NothingToUndoError):
        await live.context.undo()


async def test_settings_hold_until_they_are_changed(
    live: loombridge.Client, srv: testing.Server
) -> None:
    settings = loombridge.HistorySettings(policy="append_only", expected_steps=9)
    held = await live.context.configure(settings, model="gpt-4o-mini", max_tokens=50_000)
    assert (held.history.policy, held.history.expected_steps) == ("append_only", 9)
    await work(live, range(8))
    await srv.restart()
    assert await live.context.configure() == held
    prompt = await live.context.assemble()
    assert (prompt.receipt.policy, prompt.receipt.folds) == ("append_only", ())
    short = loombridge.HistorySettings(policy="ledger", max_result_tokens=50)
    assert (await live.context.assemble(history=short, dry_run=True)).tokens < prompt.tokens / 2
    prices = loombridge.TokenPrices(3, cached_input=0.3, cache_write=3.75)
    held = await live.context.configure(loombridge.HistorySettings(prices=prices))
    assert (held.history.prices, held.history.policy) == (prices, "append_only")
    design = await live.context.assemble(history=loombridge.HistorySettings(preset="design"))
    assert design.receipt.policy == "design"
    assert (await live.context.configure(reset=True)).history.policy != "append_only"


async def test_a_preset_that_is_none_is_refused(live: loombridge.Client) -> None:
    wrong = loombridge.HistorySettings(preset="best")  # pyright: ignore[reportArgumentType]
    with pytest.raises(loombridge.InvalidRequestError) as caught:
        await live.context.configure(wrong)
    assert [violation.field for violation in caught.value.violations] == ["history.preset"]


async def test_history_as_text(live: loombridge.Client) -> None:
    await work(live, range(6))
    design = await live.context.compact(style="design", keep_recent=2)
    assert design.text.startswith("Previous steps:\n")
    assert "Recent steps:" in design.text
    assert design.tokens.tokens > 0
    assert design.batch is None
    grouped = await live.context.compact(style="grouped")
    assert grouped.text
    with pytest.raises(loombridge.NothingToUndoError):
        await live.context.undo()


# B01
async def test_a_summary_that_is_blank_or_too_long_is_left_out(live: loombridge.Client) -> None:
    for summary, problem in {
        " ": "it is blank",
        "word " * 600: "it is longer than 500 tokens",
    }.items():
        await work(live, range(6))
        done = await live.context.compact(summary=summary)
        assert done.batch
        assert done.summary_problem == problem
    await work(live, range(6))
    assert (await live.context.compact(summary="The fault is found.")).summary_problem == ""
    assert "Summary: The fault is found." in await text(live)


async def test_pins_are_never_folded(live: loombridge.Client) -> None:
    await live.context.record_step("note:rule", output="Never touch the ledger.", pinned=True)
    await work(live, range(6))
    done = await live.context.compact()
    assert done.batch
    assert "step_001" not in tuple(done.batch.each_ref())
    assert "Never touch the ledger." in await text(live)
    assert (await live.context.step("step_001")).pinned


async def test_observations_of_react_agents_fold_like_results(live: loombridge.Client) -> None:
    await live.context.append({"role": "user", "content": "Find the handler"})
    for i in range(6):
        await live.context.append(
            {"role": "assistant", "content": f"Thought: look at {i}\nAction: grep part {i}"},
            loombridge.Message("user", f"Observation: {report(i)}", observation=True),
        )
    done = await live.context.compact()
    assert done.batch
    shown = await text(live)
    assert "Find the handler" in shown
    assert "func Handle0_30" not in shown


async def test_counts_learn_from_the_provider(live: loombridge.Client, srv: testing.Server) -> None:
    await work(live, range(3))
    prompt = await live.context.assemble(max_tokens=60_000)
    usage = {"prompt_tokens": prompt.tokens + 40, "completion_tokens": 10}
    learned = await live.context.report_usage(prompt, usage)
    assert learned.ratio == pytest.approx(1.0, abs=0.2)  # pyright: ignore[reportUnknownMemberType]
    await work(live, range(3, 4))
    anchored = await live.context.assemble(max_tokens=60_000)
    assert anchored.certainty == "anchored"
    assert anchored.receipt.stable_tokens > 0
    with pytest.raises(loombridge.PromptUnknownError):
        await live.context.report_usage("nobody", usage)
    with pytest.raises(loombridge.PromptUnknownError):
        await live.context.report_usage(prompt, usage, session_id="other")
    await srv.restart()
    with pytest.raises(loombridge.PromptUnknownError):
        await live.context.report_usage(anchored, usage)


async def test_a_session_ends_and_is_opened_again(live: loombridge.Client) -> None:
    async def ended() -> bool:
        return [each.ended async for each in live.context.sessions(include_closed=True)] == [True]

    assert await live.context.end() == 0
    await work(live, range(2))
    assert not await ended()
    assert await live.context.end() == 2
    assert await live.context.end() == 2
    assert await ended()
    await work(live, range(1))
    assert not await ended()


async def test_a_long_result_is_compressed_and_kept(live: loombridge.Client) -> None:
    found = {
        "query": "handlers",
        "results": [
            {"title": f"Handler {n}", "url": f"https://example.org/{n}", "snippet": "word " * 60}
            for n in range(20)
        ],
    }
    short = await live.context.compress("web:search", found)
    assert short.compressed
    assert short.strategy
    assert len(short.content) < len(json.dumps(found))
    assert short.blob
    assert short.blob.path.startswith("storage/tool_results/")
    kept = json.loads(await live.context.read_blob(short.blob.path))
    assert json.loads(kept["content"]) == found
    assert await live.context.compress("web:search", found) == short
    tiny = await live.context.compress("web:search", "nothing")
    assert (tiny.content, tiny.compressed, tiny.blob) == ("nothing", False, None)


# L01, K13, K40
async def test_messages_fade_by_age(live: loombridge.Client) -> None:
    for number in range(1, 13):
        role = "user" if number % 2 else "assistant"
        content = f"Message {number} begins here. " + "It goes on. " * 60
        await live.context.append({"role": role, "content": content})
    faded = loombridge.HistorySettings(preset="three_phase", literal=True)
    shown = await text(live, history=faded)
    assert shown.count("[Summary of 2 earlier messages] [user] Message 1 begins here.") == 1
    assert shown.count(" chars omitted]\u2026 ") == 6 or shown.count(" chars omitted]\\u2026 ") == 6
    omitted = loombridge.HistorySettings(preset="task_context")
    await live.context.record_step("my:tool", {"n": 1}, output="what it gave")
    assert "what it gave" in await text(live)
    assert "what it gave" not in await text(live, history=omitted)
