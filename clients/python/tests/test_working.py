"""What an agent is at: what the call sends, and what holds on the real server."""

from typing import Any, cast

import pytest

import loombridge
from fake import Fake
from loombridge import _rpc
from loombridge.v1 import prompt_pb2 as pb


async def test_what_is_sent(fake: Fake, ctx: loombridge.Client) -> None:
    plan = pb.Plan(items=[pb.PlanItem(text="write", status=pb.PLAN_STATUS_PENDING)])
    fake.on(
        _rpc.UPDATE_WORKING,
        pb.Working(goal="g", plan=plan, active_skills=["a"]),
    )
    seen = await ctx.context.update_working(
        goal="g", plan=["write"], activate=["a"], deactivate=["b"], request_id="q"
    )
    assert seen == loombridge.Working("g", loombridge.Plan((loombridge.PlanItem("write"),)), ("a",))
    assert fake.requests[0] == pb.UpdateWorkingRequest(
        agent_id="a1",
        session_id="s1",
        goal="g",
        plan=plan,
        activate=["a"],
        deactivate=["b"],
        request_id="q",
    )


async def test_nothing_and_an_empty_one_are_told_apart(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.UPDATE_WORKING, pb.Working())
    await ctx.context.update_working()
    await ctx.context.update_working(goal="", plan=[])
    left, taken = fake.requests
    assert (left.HasField("goal"), left.HasField("plan")) == (False, False)
    assert (taken.HasField("goal"), taken.HasField("plan")) == (True, True)


async def test_it_is_kept_by_the_server(live: loombridge.Client) -> None:
    await live.context.configure(
        prompt=loombridge.PromptSettings(skills=[loombridge.Skill("flying", text="Flap.")])
    )
    items = [loombridge.PlanItem("look", "done"), loombridge.PlanItem("leap", "in_progress")]
    said = await live.context.update_working(goal="Fly", plan=items, activate=["flying"])
    assert said == loombridge.Working("Fly", loombridge.Plan(tuple(items)), ("flying",))
    assert await live.context.update_working() == said
    with pytest.raises(loombridge.InvalidRequestError, match="nobody's"):
        await live.context.update_working(goal="Swim", activate=["nobody's"])
    assert await live.context.update_working(goal="") == loombridge.Working(
        "", said.plan, ("flying",)
    )


# H16
async def test_steps_of_a_done_item_fold_together(live: loombridge.Client) -> None:
    async def work(name: str) -> None:
        for i in range(3):
            text = "\n".join(f"src/{name}_{i}/part_{n}.go: func {name}{i}_{n}()" for n in range(60))
            await live.context.record_step("code:grep", {"path": f"{name}{i}"}, output=text)

    async def plan(write: str, test: str) -> None:
        items = [("write it", write), ("test it", test)]
        await live.working.update(
            plan=[loombridge.PlanItem(text, cast(Any, status)) for text, status in items]
        )

    await work("look")
    await plan("in_progress", "pending")
    await work("write")
    await plan("done", "in_progress")
    await work("test")
    compacted = await live.context.compact()
    assert [next(iter(f.each_ref())) for f in compacted.folds] == [
        "step_001",
        "step_004",
        "step_007",
    ]
    prompt = await live.context.assemble(goal="Go on")
    texts = [str(m.content) for m in prompt.messages if "olded" in str(m.content)]
    named = [text for text in texts if "\nPlan item done: write it\n" in text]
    assert len(named) == 1
    assert all(f"write{i}" in named[0] for i in range(3))
    assert "look0" not in named[0]
    assert "test0" not in named[0]
    assert "test it" not in "".join(texts)


# H03, H15, H18, P33, P34
async def test_notes_and_events(live: loombridge.Client) -> None:
    said = await live.working.update(
        goal="Fly",
        goal_progress="half",
        scratchpad="mind the gap",
        add_questions=["Where?"],
        add_evidence=[loombridge.Evidence("wiki", "Up is up.", title="Up", score=0.5)],
    )
    assert (said.dashboard.goal_progress, said.scratchpad) == ("half", "mind the gap")
    assert (said.questions, said.citations) == (("Where?",), ("wiki",))
    assert said.evidence == (loombridge.Evidence("wiki", "Up is up.", "Up", 0.5),)
    said = await live.working.signal(
        loombridge.EventSignal("fire", "it burns", urgency="critical"),
        loombridge.EventSignal("rain", "it rains", type="weather", delta_h=0.3),
        loombridge.EventSignal("calm", "nothing", delta_h=0.1),
    )
    assert said.dashboard.interrupt_requested
    assert [(e.summary, e.urgency) for e in said.pending_events] == [
        ("it burns", "critical"),
        ("it rains", "low"),
    ]
    said = await live.working.acknowledge("fire", "replan")
    assert not said.dashboard.interrupt_requested
    assert [(d.event_id, d.decision) for d in said.decisions] == [("fire", "replan")]
    with pytest.raises(loombridge.WorkingTooLargeError):
        await live.working.update(scratchpad="word " * 4100)
    assert await live.working.get() == said


# H01, H21, H26
async def test_a_prompt_gives_way(live: loombridge.Client) -> None:
    await live.context.configure(
        loombridge.HistorySettings(preset="partitioned", literal=True),
        prompt=loombridge.PromptSettings(tools=loombridge.ToolSelection(none=True)),
    )
    said = [loombridge.Message("user", f"{n}: " + "word " * 500) for n in range(12)]
    await live.context.append(*said)
    whole = await live.context.assemble(goal="Win", max_tokens=100_000)
    parts = whole.receipt.partitions
    assert parts.system + parts.memory + parts.skill + parts.history + parts.working == (
        whole.tokens - 3
    )
    tight = int(whole.tokens / 0.75)
    snipped = await live.context.assemble(goal="Win", max_tokens=tight)
    assert snipped.receipt.batch is not None
    assert snipped.receipt.batch.level == "snip"
    assert await live.context.report_overflow() == "reactive"
    short = await live.context.assemble(goal="Win", max_tokens=tight)
    assert short.tokens < snipped.tokens / 2
    with pytest.raises(loombridge.ContextOverflowError):
        await live.context.report_overflow()


# M18
async def test_a_playbook_is_approved(live: loombridge.Client) -> None:
    await live.memory_save(
        "how to fly", key="flying", kind="playbook", metadata={"status": "draft", "name": "fly"}
    )
    record = await live.memory.update(key="flying", metadata={"status": "approved"}, merge=True)
    assert record.metadata == {"status": "approved", "name": "fly"}
    record = await live.memory.update(key="flying", metadata={"status": "rejected"})
    assert record.metadata == {"status": "rejected"}


# P44
async def test_a_session_that_went_well_becomes_a_draft(live: loombridge.Client) -> None:
    await live.context.update_working(goal="fly to Rome")
    await live.context.record_step("seats:book", {"seat": "1a"}, output="booked")
    assert await live.context.end(reward=0.9, task_type="travel") == 1
    drafts = [each async for each in live.memory.list(filter='kind = "playbook"')]
    assert [each.metadata["status"] for each in drafts] == ["draft"]
    assert drafts[0].metadata["trigger"] == {"task_types": ["travel"]}
    with pytest.raises(loombridge.InvalidRequestError):
        await live.context.end(reward=2)


# H28, P36, P37, P38
async def test_a_window_begins_anew(live: loombridge.Client) -> None:
    await live.context.configure(loombridge.HistorySettings(preset="partitioned"))
    said = await live.working.update(
        goal="Fly", goal_progress="half", plan=["look", loombridge.PlanItem("leap", "done")]
    )
    for i in range(12):
        await live.context.append(loombridge.Message("user", f"Feather {i}."))
    done = await live.context.renew(request_id="r")
    assert done.renewed
    assert done.snapshot is not None
    assert (done.snapshot.sprint, done.snapshot.working) == (1, said)
    assert "look" in done.snapshot.handoff
    assert await live.context.renew(request_id="r") == loombridge.Renewal(
        renewed=False, snapshot=done.snapshot
    )
    prompt = await live.context.assemble()
    assert prompt.receipt.sprint == 1
    assert any(m.content == done.snapshot.handoff for m in prompt.messages)
    assert await live.working.get() == said
    assert await live.context.snapshot() == done.snapshot
    assert [each async for each in live.context.snapshots()] == [done.snapshot]
    with pytest.raises(loombridge.SnapshotNotFoundError):
        await live.context.snapshot(2)
    await live.context.configure(
        loombridge.HistorySettings(policy="append_only"), session_id="other"
    )
    with pytest.raises(loombridge.NoRenewalError):
        await live.context.renew(session_id="other")


# L08
async def test_a_task_that_is_done_is_folded(live: loombridge.Client) -> None:
    for name in ("t1", "t2"):
        await live.emit("execute", {"task_id": name})
        for n in range(3):
            await live.context.record_step("my.tool", output=f"{name} found {n}: " + "words " * 200)
        if name == "t1":
            fold = await live.context.complete_task("t1", "Nothing is open in May.")
            assert (fold.batch, fold.refs, fold.problem) == (1, ("step_001..step_003",), "")
            assert fold.after_tokens < fold.before_tokens
    assert (await live.context.task("t1")).task.result == "Nothing is open in May."
    text = str((await live.context.assemble(format="openai")).openai())
    assert "[Subtask t1] Nothing is open in May. → step_001..step_003" in text
    assert "t1 found" not in text
    assert "t2 found 2" in text
    failed = await live.context.complete_task("t2", error="no time", steps=["step_005"])
    assert failed.refs == ("step_005",)
    await live.context.undo()
    await live.context.undo()
    text = str((await live.context.assemble(format="openai")).openai())
    assert "Subtask" not in text
    assert "t1 found 0" in text
    with pytest.raises(loombridge.RecordExistsError):
        await live.context.complete_task("t1", "Something else.")
    with pytest.raises(loombridge.AgentNotFoundError):
        await live.context.complete_task("nothing", "x")
