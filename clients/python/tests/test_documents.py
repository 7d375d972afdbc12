"""The names of the design documents, on the real server."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

import loombridge
from loombridge import documents, testing
from loombridge.documents import (
    CompactStep,
    DataOffloader,
    IsolatedContext,
    KnowledgeItem,
    StepCompactor,
    StepReducer,
    TokenCounter,
    VectorKnowledgeBase,
)

CONFIG = ("fs:read_file", {"path": "config.json"}, {"content": "x" * 1229})


def test_every_name_is_there() -> None:
    assert all(hasattr(documents, name) for name in documents.__all__)


# A06, A01
async def test_a_reducer_keeps_little_and_loses_nothing(live: loombridge.Client) -> None:
    reducer = StepReducer(live)
    read = await reducer.reduce(*CONFIG, thought="Look at the settings.")
    assert (read.id, read.tool_name, read.minimal_args) == (
        "step_001",
        "fs:read_file",
        {"path": "config.json"},
    )
    assert read.observation == "Read config.json (1229 bytes, JSON)"
    assert await live.context.read_blob(read.outcome_path) == b"x" * 1229
    assert read.thought == "Look at the settings."
    # The rule is found by either name; what fits no rule, or is odd, is no error.
    assert (await reducer.reduce("fs_read_file", {"path": "a"}, {})).tool_name == "fs:read_file"
    odd: list[tuple[str, Any, Any]] = [
        ("fs:read_file", {"path": ["a"]}, {"content": 7}),
        ("web:search", {}, {"results": "none"}),
        ("system:shell", None, {"exit_code": "x"}),
        ("nobody:knows", {"a": 1}, None),
        ("nobody:knows", {"a": 1}, [1, "two"]),
    ]
    for number, (tool, args, result) in enumerate(odd, start=3):
        step = await reducer.reduce(tool, args, result)
        assert (step.id, step.success) == (f"step_{number:03}", True)
    failed = await reducer.reduce("nobody:knows", {}, error="no such table")
    assert (failed.success, failed.error) == (False, "no such table")
    with pytest.raises(loombridge.InvalidRequestError):
        await reducer.reduce("", {}, {})


# B02, B06, B07
async def test_a_compactor_tells_steps_in_lines(live: loombridge.Client) -> None:
    reducer, compactor = StepReducer(live), StepCompactor(live)
    steps = [await reducer.reduce(*CONFIG)]
    for i in range(4):
        steps.append(await reducer.reduce("web:search", {"query": f"q{i}"}, {"results": [i]}))
    line = CompactStep("step_001", "Read config.json (1.2KB)")
    assert await compactor.compact(steps[0]) == line
    assert await compactor.compact("step_001") == line
    lines = [(await compactor.compact(step)).summary for step in steps]

    many = await compactor.compact_many(steps)
    assert many.startswith(
        f"Previous steps:\n  • {lines[0]}\n  • {lines[1]}\n\nRecent steps:\nStep 3:\n"
    )
    assert await compactor.compact_many() == many
    # Three or fewer stand in full alone, the caller's own choice of them, too.
    three = await compactor.compact_many(steps[2:])
    assert three.startswith("Step 3:\n")
    assert many.endswith(three)
    one = await compactor.compact_many([steps[4], "step_001"], keep_recent=1)
    assert one.startswith(f"Previous steps:\n  • {lines[0]}\n\nRecent steps:\nStep 5:\n")

    history = await compactor.compact_history(steps)
    assert history.startswith("Earlier steps:\n• Read config.json (1.2KB)\n• ")
    assert "\n\nRecent steps:\n\nStep 3:\n" in history
    short = await compactor.compact_history(steps, token_budget=1)
    assert short.startswith("Earlier: 2 steps completed\n\nRecent steps:\n\nStep 3:\n")
    assert (await compactor.compact_history(steps[2:])).startswith("Step 3:\n")


async def test_what_a_compactor_refuses(live: loombridge.Client) -> None:
    compactor = StepCompactor(live)
    assert await compactor.compact_many() == ""
    with pytest.raises(loombridge.StepNotFoundError):
        await compactor.compact_many(["step_001"])
    with pytest.raises(loombridge.BlobNotFoundError):
        await compactor.compact("step_001")
    with pytest.raises(ValueError, match="keep_recent must be at least 1, not 0"):
        await compactor.compact_many(keep_recent=0)
    with pytest.raises(ValueError, match="token_budget must be at least 1"):
        await compactor.compact_history(token_budget=-1)
    with pytest.raises(TypeError, match="steps must be a list of str"):
        await compactor.compact_many("step_001")


# D02
@pytest.mark.parametrize(("size", "kept"), [(999, False), (1000, True), (1001, True)])
async def test_data_is_offloaded_from_1000_bytes_on(
    live: loombridge.Client, size: int, kept: bool
) -> None:
    offloader = DataOffloader(live)
    await StepReducer(live).reduce("db:query", {}, "x" * size)
    path = await offloader.maybe_offload("x" * size, "step_001", ext="txt")
    assert path == ("workspace/outputs/step_001.txt" if kept else None)
    if path:
        assert await offloader.read(path) == b"x" * size
    as_json = {"a": "x" * (size - len('{"a":""}'))}
    assert (await offloader.maybe_offload(as_json, "step_009") is not None) == kept


# D03
async def test_data_lies_under_a_path(live: loombridge.Client) -> None:
    offloader = DataOffloader(live)
    rows = {"rows": ["y" * 2000], "n": 9007199254740993}
    step = await StepReducer(live).reduce("db:query", {"sql": "select"}, rows)
    path = await offloader.offload(rows, step.id)
    assert path == "workspace/outputs/step_001.json"
    assert (await live.context.read_blob(path)).json() == rows
    assert len(await live.context.steps()) == 1, "the step's result is not stored again"

    for data, content in [(b"\x00" * 3000, b"\x00" * 3000), ("short", b"short"), ([1], b"[1]")]:
        path = await offloader.offload(data, "step_001", ext="bin")
        assert path != "workspace/outputs/step_001.bin"
        assert await offloader.read(path) == content
    with pytest.raises(loombridge.BlobNotFoundError):
        await offloader.read("workspace/outputs/step_099.json")


async def test_a_context_of_its_own(srv: testing.Server) -> None:
    async with (
        loombridge.connect(srv.address, agent_id="parent", session_id="s") as parent,
        loombridge.connect(srv.address, agent_id="child", session_id="s") as child,
    ):
        own, other = IsolatedContext(parent), IsolatedContext(child, root="work/")
        assert (own.agent_id, own.workspace) == ("parent", "workspace/parent")
        assert (other.agent_id, other.workspace) == ("child", "work/child")
        for i in range(7):
            await StepReducer(parent).reduce("note:think", {"n": i}, "the secret word is plum")
        steps = await own.steps()
        assert [step.id for step in steps] == [f"step_{n:03}" for n in range(1, 8)]
        assert await own.working_memory() == steps[-5:]
        assert await other.steps() == await other.working_memory() == ()
        assert "plum" not in str(await child.context.assemble(goal="what is the secret word"))
        with pytest.raises(loombridge.BlobNotFoundError):
            await child.context.read_blob("step_001")


# G13, P31, N11
@pytest.mark.parametrize(
    ("model", "text", "messages"),
    [("gpt-4o", 2, 3 + (3 + 1 + 2)), ("claude-3-opus", 3, 3 + 2 + 3), ("of-nobody", 3, 4 + 1 + 3)],
)
async def test_a_counter_for_each_model(
    live: loombridge.Client, model: str, text: int, messages: int
) -> None:
    counter = TokenCounter(live, model)
    assert await counter.count("hello world") == text
    assert await counter.estimate_tokens("hello world") == text
    said = {"role": "user", "content": "hello world"}
    assert await counter.count_messages([said]) == messages
    assert await counter.count_messages([loombridge.Message("user", "hello world")]) == messages
    twice = await counter.count_messages([said, said])
    assert twice == 2 * messages - (3 if model == "gpt-4o" else 0)
    assert await counter.count_messages([]) == 0
    # The counter says the same as the prompt that has this message.
    await live.context.append(said)
    prompt = await live.context.assemble(model=model, tools=False)
    assert prompt.parts["history"] + (3 if model == "gpt-4o" else 0) == messages


async def test_a_knowledge_base_of_records(live: loombridge.Client) -> None:
    base = VectorKnowledgeBase(live)
    added = await base.add(
        "Bitcoin closed at 45,000", title="Market", source="desk.md", type="note", request_id="r1"
    )
    assert added == await base.add(
        "Bitcoin closed at 45,000", title="Market", source="desk.md", type="note", request_id="r1"
    )
    await base.add("Pears ripen in autumn")
    await live.memory_save("Bitcoin was mentioned, and this is no knowledge")
    found = await base.query("where did bitcoin close")
    best = KnowledgeItem("Market", "Bitcoin closed at 45,000", "desk.md", "note", found[0].score)
    assert found[0] == best
    assert 0.5 < best.score <= 1
    # What was said around it may come along, but nothing that is no knowledge.
    assert all(item.score < best.score and "Pears" in item.content for item in found[1:])
    assert len(await base.query("bitcoin pears", limit=1)) == 1
    record = await live.memory.get(id=added)
    assert record.kind == "knowledge"


async def test_a_knowledge_base_with_vectors_of_the_callers(live: loombridge.Client) -> None:
    asked: list[str] = []

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0, 0.0] if "fruit" in text or "Pears" in text else [0.0, 1.0] for text in texts]

    base = VectorKnowledgeBase(live, embed, embedding_space="two")
    await base.add("Pears ripen in autumn")
    await base.add("Bitcoin closed at 45,000")
    found = await base.query("fruit")
    assert found[0].content == "Pears ripen in autumn"
    assert asked == ["Pears ripen in autumn", "Bitcoin closed at 45,000", "fruit"]


# G03, G05
async def test_the_context_of_a_task(live: loombridge.Client) -> None:
    base = VectorKnowledgeBase(live)
    await base.add("The desk closes at 17:30", title="Hours", source="desk.md")
    await live.emit("execute", {"session_id": "s1", "parameters": {"content": "Open the desk"}})
    thought = {"session_id": "s1", "parameters": {"content": "The key is in the drawer."}}
    await live.emit("node.thinking", thought)
    counter = TokenCounter(live)
    manager = documents.TaskContextManager(
        counter, system_prompt="You are careful.", knowledge_base=base
    )
    messages = await manager.build_context("When does the desk close?")
    assert messages[0] == {"role": "system", "content": "You are careful."}
    assert messages[-1] == {"role": "user", "content": "When does the desk close?"}
    told = [(each["role"], each["content"]) for each in messages]
    knowledge = ("system", "📚 Knowledge: The desk closes at 17:30\n(Source: desk.md)")
    assert ("user", "Open the desk") in told
    assert ("assistant", "The key is in the drawer.") in told
    assert knowledge in told
    assert told.index(("user", "Open the desk")) < told.index(knowledge) == len(told) - 2
    prompt = await manager.build("When does the desk close?")
    assert prompt.receipt.layout == "task_context"
    assert prompt.tokens <= 4000
    assert prompt.tools, "tools go as a parameter"

    without = documents.TaskContextManager(counter, ["tasks"])
    text = str(await without.build_context("When does the desk close?"))
    assert "17:30" not in text
    assert "Open the desk" in text
    alone = documents.TaskContextManager(counter, [], system_prompt="You are careful.")
    assert "Open the desk" not in str(await alone.build_context("When does the desk close?"))
    small = documents.TaskContextManager(counter, max_tokens=10, system_prompt="long " * 100)
    with pytest.raises(loombridge.ContextOverflowError):
        await small.build_context("When does the desk close?")


async def test_a_step_says_what_a_model_is_to_read(live: loombridge.Client) -> None:
    cases: list[tuple[str, Any]] = [
        ("my:tool", "long " * 800),
        ("my:tool", "short"),
        ("web:get", {}),
    ]
    for tool, output in cases:
        recorded = await live.context.record_step(tool, output=output)
        assert recorded.step.to_observation() == recorded.observation
    with pytest.raises(TypeError, match="takes a client"):
        documents.DataOffloader(cast("Any", "workspace"))


# G14: by messages and by tasks.
@pytest.mark.parametrize("by", ["messages", "tasks"])
async def test_the_newest_stay_in_the_context_of_a_task(live: loombridge.Client, by: str) -> None:
    counter = TokenCounter(live)
    sizes = [100] * 4 + [1400] + [1000] * 3
    for n, size in enumerate(sizes, 1):
        said = f"msg{n}" + " word" * (size - 6)
        if by == "tasks":
            topic = "execute" if n % 2 else "node.thinking"
            await live.emit(topic, {"session_id": "s1", "parameters": {"content": said}})
        else:
            await live.context.append({"role": "user" if n % 2 else "assistant", "content": said})
    manager = documents.TaskContextManager(counter, system_prompt="s" + " word" * 194)
    messages = await manager.build_context("do it")
    assert [each["content"][:4] for each in messages] == ["s wo", "msg6", "msg7", "msg8", "do i"]
    assert await counter.count_messages(messages) <= 4000


async def test_a_small_context_has_room_for_the_newest_message(live: loombridge.Client) -> None:
    for n in range(1, 9):
        role = "user" if n % 2 else "assistant"
        await live.context.append({"role": role, "content": f"msg{n}" + " word" * 40})
    counter = TokenCounter(live)
    seen: list[int] = []
    for budget in range(80, 500, 20):
        manager = documents.TaskContextManager(counter, max_tokens=budget, system_prompt="Go.")
        messages = await manager.build_context("do it")
        kept = [each["content"][:4] for each in messages[1:-1]]
        assert kept == [f"msg{n}" for n in range(9 - len(kept), 9)], "the newest, in order"
        assert await counter.count_messages(messages) <= budget
        seen.append(len(kept))
    assert seen[0] == 1
    assert seen[-1] == 8


async def test_sources_that_are_none_are_refused(live: loombridge.Client) -> None:
    counter = TokenCounter(live)
    with pytest.raises(ValueError, match="sources has 'memories'; there is tasks, events"):
        documents.TaskContextManager(counter, ["memories"])
    with pytest.raises(TypeError, match="sources must be a list of str"):
        documents.TaskContextManager(counter, cast("Any", "tasks"))


# F17, F18
async def test_sources_of_the_context_of_a_task(live: loombridge.Client) -> None:
    for action, content in (
        ("execute", "Open the desk"),
        ("node.thinking", "The key is in the drawer."),
        ("node.planning", "First the drawer."),
    ):
        await live.context.record_step("a:tool", {"n": action})
        parameters = {"content": content, "steps": [content]}
        await live.emit(action, {"session_id": "s1", "parameters": parameters})
    counter = TokenCounter(live)

    async def built(*sources: Any) -> str:
        manager = documents.TaskContextManager(counter, sources)
        return str(await manager.build_context("When?"))

    assert "Open the desk" in await built(documents.MemoryContextSource())
    assert "Open the desk" in await built(documents.MemoryContextSource(["L1", "L2"]), "notes")
    events = documents.EventBusContextSource(["node.thinking", "execute"])
    heard = await built(events)
    assert "Open the desk" in heard
    assert "The key is in the drawer." in heard
    with pytest.raises(loombridge.InvalidRequestError):
        await built(documents.MemoryContextSource(["L9"]))
    with pytest.raises(ValueError, match="sources has 'thoughts'"):
        documents.TaskContextManager(counter, ["thoughts"])


# M01, M10, M12, M17
async def test_prompts_end_with_the_goal_and_vary_as_asked(live: loombridge.Client) -> None:
    rewriter = documents.TodoRewriter(live)
    assert await rewriter.rewrite() == ""
    assert await rewriter.rewrite("Sell the boat") == "Current Goal: Sell the boat"
    plan = [loombridge.PlanItem("wash it", status="done"), loombridge.PlanItem("paint it")]
    await live.context.update_working(goal="Sell the boat", plan=plan)
    block = "Current Goal: Sell the boat\nProgress: 1/2 steps completed\nNext: paint it"
    assert await rewriter.rewrite() == block
    await live.context.append({"role": "user", "content": "Go on."})
    assert await rewriter.rewrite() == block, "of earlier messages nothing is in it"
    manager = documents.ContextEngineeringManager(
        live,
        documents.StructuralVariation(level=0.0),
    )
    prompt = await manager.prepare()
    assert prompt.receipt.layout == "three_phase"
    assert prompt.messages[-1].content.endswith(block)
    assert (await manager.prepare()).messages == prompt.messages
    assert (await manager.prepare()).tools == prompt.tools
    wild = documents.ContextEngineeringManager(
        live, variation=documents.StructuralVariation(level=2.0)
    )
    with pytest.raises(loombridge.InvalidRequestError):
        await wild.prepare()
