"""What was said and done comes back, from either end."""

from typing import Any

import pytest

import loombridge
from loombridge import _conversation

USER: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "q"}], "pinned": True}
ASSISTANT: dict[str, Any] = {"role": "assistant", "content": "I look.", "reasoning_content": "hm"}


def _label(entry: loombridge.ConversationEntry) -> tuple[int, str]:
    if entry.task is not None:
        return entry.position, entry.task.task_id
    if entry.step is not None:
        return entry.position, entry.step.id
    assert entry.message is not None
    return entry.position, entry.message.role


async def test_conversation_comes_back_from_either_end(live: loombridge.Client) -> None:
    await live.context.append(USER, ASSISTANT)
    recorded = await live.context.record_step(
        "code:grep",
        {"n": 1},
        output="found",
        task=loombridge.Task("execute", task_id="t1", result="ok"),
    )
    entries = [each async for each in live.context.conversation()]
    assert [_label(each) for each in entries] == [
        (1, "user"),
        (2, "assistant"),
        (3, "step_001"),
        (3, "t1"),
    ]
    assert entries[0].message == loombridge.Message.from_openai(USER)
    assert entries[1].message == loombridge.Message.from_openai(ASSISTANT)
    assert entries[2].step == await live.context.step(recorded.step.id)
    assert entries[3].task is not None
    assert entries[3].task.result == "ok"
    backwards = [each async for each in live.context.conversation(newest_first=True)]
    assert backwards == entries[::-1]
    assert [each async for each in live.context.conversation(session_id="other")] == []


async def test_conversation_goes_on_page_by_page_and_tells_folds(live: loombridge.Client) -> None:
    count = _conversation.ENTRIES_PER_PAGE + 20
    for n in range(count // 2):
        await live.context.append({"role": "assistant", "content": f"Step {n}. " * 50})
        await live.context.record_step("code:grep", {"n": n}, output=f"line {n}\n" * 100)
    assert (await live.context.compact()).batch is not None
    entries = [each async for each in live.context.conversation()]
    assert [each.position for each in entries] == list(range(1, count + 1))
    assert entries[0].fold_batch == 1
    assert entries[-1].fold_batch == 0
    await live.context.undo()
    assert not any([each.fold_batch async for each in live.context.conversation()])


async def test_sessions_are_listed(live: loombridge.Client) -> None:
    for session_id in ("b", "a"):
        await live.context.append(USER, session_id=session_id)
    await live.context.end(session_id="b")
    found = [each async for each in live.context.sessions(include_closed=True)]
    assert [(each.session_id, each.last_position, each.ended, each.closed) for each in found] == [
        ("a", 1, False, False),
        ("b", 1, True, True),
    ]
    assert [each.session_id async for each in live.context.sessions()] == ["a"]
    assert found[0].begin_time <= found[0].update_time


async def test_a_prompt_of_before_comes_back(live: loombridge.Client) -> None:
    await live.context.append(USER)
    sent = await live.context.assemble(goal="one", format="openai", system="You are.")
    step = (await live.context.record_step("code:grep", {"n": 1}, output="found")).step
    later = await live.context.assemble(goal="two", format="openai", system="You are.")
    by_step = await live.context.assemble(as_of_step=step.id)
    by_id = await live.context.assemble(as_of_prompt=later.receipt.prompt_id)
    assert by_step.openai_json == sent.openai_json
    assert by_id.openai_json == later.openai_json
    assert by_step.tokens == sent.tokens
    diff = await live.context.diff_prompts()
    assert (diff.from_prompt_id, diff.to_prompt_id) == (
        sent.receipt.prompt_id,
        later.receipt.prompt_id,
    )
    assert diff.difference is not None
    with pytest.raises(loombridge.PromptGoneError) as gone:
        await live.context.assemble(as_of_prompt="never")
    assert "never" in gone.value.missing


async def test_a_text_is_found_in_prompts(live: loombridge.Client) -> None:
    await live.context.append({"role": "user", "content": "Where is the quince?"})
    first = await live.context.assemble(goal="Find the quince.", system="You are a gardener.")
    second = await live.context.assemble(goal="Rest.", system="You are a gardener.")
    listed = await live.context.find_in_prompts()
    assert [p.prompt_id for p in listed.prompts] == [
        first.receipt.prompt_id,
        second.receipt.prompt_id,
    ]
    assert [p.number for p in listed.prompts] == [1, 2]
    assert listed.prompts[0].tokens == first.tokens
    assert listed.prompts[0].cost == first.receipt.cost
    assert listed.prompts[1].append_only_cost == second.receipt.append_only_cost
    assert listed.prompts[1].expected_cached_tokens == second.receipt.expected_cached_tokens
    made = [p.create_time for p in listed.prompts]
    assert made[0] is not None
    assert made[1] is not None
    assert made[0] <= made[1]
    assert [(p.fold_batch, p.renewals) for p in listed.prompts] == [(0, 0), (0, 0)]
    assert listed.prompts[0].parts["system"] > 0
    assert (listed.origins, listed.losses, listed.unread) == ((), (), ())
    found = await live.context.find_in_prompts("Find the quince")
    assert [place.section for place in found.prompts[0].places] == ["goal"]
    (loss,) = found.losses
    assert (loss.prompt_id, loss.number, loss.section) == (second.receipt.prompt_id, 2, "goal")
    assert (loss.cause, loss.batch) == ("source", None)
    (origin,) = (await live.context.find_in_prompts("Where is the quince?")).origins
    assert (origin.ref, origin.source, origin.part) == ("message_001", "user", "content")
    assert (await live.context.find_in_prompts("quince", session_id="other")).prompts == ()
