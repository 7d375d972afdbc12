"""`loombridge.loom`: the prompts of loom-py's cognitive loop come from the server."""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

import loombridge
from fake import Call, Fake, fake_server, refuse
from loombridge import _rpc, testing
from loombridge.loom import _run, attach
from loombridge.v1 import context_pb2 as pb
from loombridge.v1 import tools_pb2
from loomlog import failing, running
from loomv1 import llm
from loomv1.agent import Agent
from loomv1.cognitive.agent import CognitiveAgent
from loomv1.cognitive.types import CognitiveResult, ThoughtStep
from loomv1.llm import LLMProvider

ACT = 'Thought: I look.\nAction: {"tool": "fs:read_file", "args": {"path": "a.txt"}}'
DONE = "FINAL ANSWER: It is 21."
QUESTION = "What is your next thought, action or final answer?"


class Log:
    """A log by session, and prompts that show all of it."""

    def __init__(self, fake: Fake) -> None:
        self.messages: dict[str, list[pb.Message]] = defaultdict(list)
        self.assembled: list[pb.AssembleRequest] = []
        self.usages: list[pb.ReportUsageRequest] = []
        self.ended: list[str] = []
        self.steps: list[pb.RecordStepRequest] = []
        fake.on(_rpc.APPEND_MESSAGES, self.append)
        fake.on(_rpc.RECORD_STEP, self.record)
        fake.on(_rpc.ASSEMBLE, self.assemble)
        fake.on(_rpc.REPORT_USAGE, self.report)
        fake.on(_rpc.END_SESSION, self.end)

    async def append(self, request: pb.AppendMessagesRequest, _: Call) -> pb.AppendMessagesResponse:
        self.messages[request.session_id] += request.messages
        return pb.AppendMessagesResponse()

    async def record(self, request: pb.RecordStepRequest, _: Call) -> pb.RecordStepResponse:
        self.steps.append(request)
        number = f"step_{len(self.steps):03}"
        call = pb.ModelToolCall(
            id=number, name=request.tool_name, arguments_json=request.arguments_json
        )
        self.messages[request.session_id] += [
            pb.Message(role=pb.ROLE_ASSISTANT, content=request.thought, tool_calls=[call]),
            pb.Message(
                role=pb.ROLE_TOOL,
                tool_call_id=number,
                content=request.output_json if request.success else request.error_message,
            ),
        ]
        step = pb.Step(
            id=number,
            tool_name=request.tool_name,
            minimal_args_json=request.arguments_json,
            observation=f"Did {number}",
            outcome_path=f"workspace/outputs/{number}.txt",
            success=request.success,
        )
        return pb.RecordStepResponse(step=step)

    async def assemble(self, request: pb.AssembleRequest, _: Call) -> pb.AssembleResponse:
        self.assembled.append(request)
        number = len(self.assembled)
        system = pb.Message(role=pb.ROLE_SYSTEM, content=request.system)
        return pb.AssembleResponse(
            messages=[system, *self.messages[request.session_id]],
            receipt=pb.Receipt(prompt_id=f"p{number}", cost=number, append_only_cost=2 * number),
        )

    async def report(self, request: pb.ReportUsageRequest, _: Call) -> pb.ReportUsageResponse:
        self.usages.append(request)
        return pb.ReportUsageResponse()

    async def end(self, request: pb.EndSessionRequest, _: Call) -> pb.EndSessionResponse:
        self.ended.append(request.session_id)
        return pb.EndSessionResponse()


class Provider(LLMProvider):
    """A model of loom-py that says what the test tells it."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.prompts: list[str] = []
        self.asked: list[dict[str, Any]] = []
        self.config = SimpleNamespace(model="deepseek-chat")

    async def post(self, prompt: str, **kwargs: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        self.prompts.append(prompt)
        self.asked.append(kwargs)
        usage = {"prompt_tokens": len(prompt), "completion_tokens": 3}
        return {"text": self.answers.pop(0), "usage": usage}

    async def generate_stream(self, prompt: str, **kwargs: Any) -> AsyncIterator[str]:
        """Yield the answer in two pieces; of a stream this provider counts nothing."""
        self.prompts.append(prompt)
        self.asked.append(kwargs)
        answer = self.answers.pop(0)
        yield answer[:5]
        yield answer[5:]


@pytest.fixture
def log(fake: Fake) -> Log:
    """What the fake server keeps."""
    return Log(fake)


def reader(fake_address: str, answer: Callable[[Any], Any] | None = None) -> Agent:
    """Return an agent that can read."""
    agent = Agent("a", [], address=fake_address)
    agent.client.answers["fs:read_file"] = answer or (lambda _call: '{"content": "21"}')
    return agent


async def test_prompts_are_assembled_from_the_log(fake: Fake, log: Log, tmp_path: Path) -> None:
    agent = reader(fake.address, lambda _call: json.dumps({"content": "line\n" * 600}))
    model = Provider(ACT, "I think about it.", DONE)
    async with running(agent) as bridge:
        cognitive = CognitiveAgent(agent.ctx, model, workspace_path=tmp_path)
        result = await cognitive.run("How warm is it?")
    assert (result.success, result.answer, result.iterations) == (True, "It is 21.", 3)
    session = log.assembled[0].session_id
    output = json.dumps({"content": "line\n" * 600})
    action = 'Action: {"tool": "fs:read_file", "args": {"path": "a.txt"}}'
    told = ["Goal: How warm is it?", "Thought: I look.", action, f"Observation: {output}"]
    assert model.prompts == [
        f"Goal: How warm is it?\n\n{QUESTION}",
        "\n\n".join([*told, QUESTION]),
        "\n\n".join([*told, "I think about it.", QUESTION]),
    ]
    assert model.asked == [{"system": "You act.", "temperature": 0.7}] * 3
    assert log.messages[session][-1].content == DONE
    first = log.assembled[0]
    assert (first.agent_id, first.system, first.model) == ("a", "You act.", "deepseek-chat")
    assert (first.max_tokens, first.without_tools, first.goal) == (_run.MAX_TOKENS, True, "")
    assert not (tmp_path / ".loom").exists()
    (run,) = bridge.runs
    assert (run.goal, run.session_id, run.prompts) == ("How warm is it?", session, 3)
    assert (run.own_prompts, run.cost, run.append_only_cost) == (0, 6, 12)
    assert run.receipt
    assert run.receipt.prompt_id == "p3"


async def test_the_loop_sees_the_steps_of_the_server(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)
    async with running(agent):
        result = await CognitiveAgent(agent.ctx, Provider(ACT, DONE)).run("g")
    step = result.steps[0].reduced_step
    assert (step.id, step.tool_name, step.success) == ("step_001", "fs:read_file", True)
    assert (step.minimal_args, step.observation) == ({"path": "a.txt"}, "Did step_001")
    assert step.outcome_ref == "workspace/outputs/step_001.txt"
    assert str(step.to_compact()) == "• Did step_001"
    assert step.to_dict()["error"] is None
    assert step.to_dict()["timestamp_ms"] == 0


async def test_usage_is_reported_for_each_prompt(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)
    model = Provider(ACT, DONE)
    async with running(agent):
        await CognitiveAgent(agent.ctx, model).run("g")
    assert [(each.prompt_id, each.prompt_tokens) for each in log.usages] == [
        ("p1", len(model.prompts[0])),
        ("p2", len(model.prompts[1])),
    ]
    assert log.usages[0].completion_tokens == 3


class AtOnce(Provider):
    """A model that is asked twice before it answers once."""

    def __init__(self) -> None:
        super().__init__()
        self.both = asyncio.Barrier(2)

    async def post(self, prompt: str, **_kwargs: Any) -> dict[str, Any]:
        await self.both.wait()
        return {"text": DONE, "usage": {"prompt_tokens": len(prompt), "completion_tokens": 3}}


async def test_runs_at_once_each_report_their_own_usage(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)
    model = AtOnce()
    async with running(agent):
        runs = [CognitiveAgent(agent.ctx, model).run(goal) for goal in ("g", "g" * 1000)]
        await asyncio.gather(*runs)
    short, long = sorted(each.prompt_tokens for each in log.usages)
    assert long - short == 999
    assert len({each.prompt_id for each in log.usages}) == 2


async def test_usage_that_is_not_told_is_not_reported(fake: Fake, log: Log) -> None:
    class Silent(Provider):
        async def post(self, prompt: str, **_kwargs: Any) -> dict[str, Any]:
            return {"text": DONE, "usage": {} if "first" in prompt else None}

    agent = reader(fake.address)
    async with running(agent):
        await CognitiveAgent(agent.ctx, Silent()).run("first")
        await CognitiveAgent(agent.ctx, Silent()).run("second")
    assert log.usages == []


async def test_spans_go_where_they_went(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)
    llm.tracer.spans.clear()
    async with running(agent):
        await CognitiveAgent(agent.ctx, Provider(ACT, DONE)).run("g")
    assert [each.name for each in llm.tracer.spans] == ["llm.generate"] * 2
    assert llm.tracer.spans[0].attributes["llm.usage.completion_tokens"] == 3


async def test_a_stream_is_assembled_too(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)
    model = Provider(ACT, DONE)
    async with running(agent) as bridge:
        stream = CognitiveAgent(agent.ctx, model).run_stream("g")
        items = [item async for item in stream]
        assert await bridge.flush()
    assert [type(item) for item in items] == [str, str, ThoughtStep, str, str, CognitiveResult]
    assert "".join(item for item in items[:2] if isinstance(item, str)) == ACT
    assert "Observation: " in model.prompts[1]
    assert log.steps[0].thought == "I look."
    assert log.usages == []
    assert log.ended == [bridge.runs[0].session_id]


async def test_a_stream_that_is_left_ends_its_run(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)
    async with running(agent) as bridge:
        stream: Any = CognitiveAgent(agent.ctx, Provider(ACT, DONE)).run_stream("g")
        async for item in stream:
            assert item
            break
        await stream.aclose()
        # The loop's own stream is closed by Python, soon after.
        async with asyncio.timeout(60):
            while not log.ended:  # noqa: ASYNC110  nothing tells of it
                await asyncio.sleep(0.01)
    assert log.ended == [bridge.runs[0].session_id]
    assert len(log.assembled) == 1


async def test_runs_know_nothing_of_each_other(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)
    model = Provider(ACT, DONE, DONE)
    async with running(agent) as bridge:
        cognitive = CognitiveAgent(agent.ctx, model)
        await cognitive.run("first")
        await cognitive.run("second")
        await agent.ctx.tool("fs:read_file")
    assert model.prompts[2] == f"Goal: second\n\n{QUESTION}"
    sessions = [run.session_id for run in bridge.runs]
    assert log.ended == sessions
    assert len(set(sessions)) == 2
    assert [each.session_id for each in log.steps] == [sessions[0], ""]


async def test_runs_at_once_keep_apart(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)

    class Echo(Provider):
        async def generate(self, prompt: str, **kwargs: Any) -> str:
            await super().generate(prompt, **kwargs)
            goal = prompt.partition("\n")[0].removeprefix("Goal: ")
            if prompt.count("Observation: ") == 3:
                return f"FINAL ANSWER: {goal}"
            return f'Thought: for {goal}\nAction: {{"tool": "fs:read_file", "args": {{}}}}'

    async with running(agent):
        cognitive = CognitiveAgent(agent.ctx, Echo(*["-"] * 40))
        results = await asyncio.gather(*(cognitive.run(f"g{i}") for i in range(8)))
    assert [result.answer for result in results] == [f"g{i}" for i in range(8)]
    thoughts: dict[str, set[str]] = defaultdict(set)
    for step in log.steps:
        thoughts[step.session_id].add(step.thought)
    assert sorted(map(sorted, thoughts.values())) == [[f"for g{i}"] for i in range(8)]


async def test_one_session_goes_on_from_run_to_run(fake: Fake, log: Log) -> None:
    settings = loombridge.HistorySettings(policy="append_only")
    agent = reader(fake.address)
    attach(agent, session_id="chat", max_tokens=4000, history=settings)
    model = Provider(ACT, DONE, DONE)
    async with running(agent):
        cognitive = CognitiveAgent(agent.ctx, model)
        await cognitive.run("first")
        await cognitive.run("second")
    parts = model.prompts[2].split("\n\n")
    assert (parts[0], parts[-3:]) == ("Goal: first", [DONE, "Goal: second", QUESTION])
    assert log.ended == []
    assert {each.session_id for each in log.assembled} == {"chat"}
    assert {each.max_tokens for each in log.assembled} == {4000}
    assert {each.history.policy for each in log.assembled} == {pb.HISTORY_POLICY_APPEND_ONLY}


async def test_prompts_can_be_left_to_loom_py(fake: Fake, log: Log, tmp_path: Path) -> None:
    agent = reader(fake.address, lambda _call: "x" * 5000)
    bridge = attach(agent, prompts=False)
    model = Provider(ACT, DONE)
    async with running(agent):
        await CognitiveAgent(agent.ctx, model, workspace_path=tmp_path).run("g")
    assert log.assembled == []
    assert bridge.runs == ()
    assert model.prompts[0] == "Goal: g\nWhat now?"
    assert (tmp_path / ".loom").exists()
    assert [(each.session_id, each.thought) for each in log.steps] == [("", "")]


async def test_failures_and_words_of_a_person_are_in_the_prompt(fake: Fake, log: Log) -> None:
    agent = reader(fake.address, failing("EXECUTION_ERROR", "Execution failed: disk"))
    write = 'Thought: I write.\nAction: {"tool": "fs:write_file", "args": {"path": "x"}}'
    model = Provider(ACT, write, DONE)
    async with running(agent):
        await CognitiveAgent(agent.ctx, model, lambda *_: False).run("g")
    assert "Observation: Execution failed: disk" in model.prompts[1]
    assert "Observation: Action denied by user" in model.prompts[2]
    assert [each.thought for each in log.steps] == ["I look.", "I write."]


async def test_a_folded_message_can_be_read_by_the_model(fake: Fake, log: Log) -> None:
    asked: list[tools_pb2.ToolRequest] = []

    async def run(request: tools_pb2.ToolRequest, _call: Call) -> tools_pb2.ToolResponse:
        asked.append(request)
        if len(asked) > 1:
            return tools_pb2.ToolResponse(error_message="no such message")
        return tools_pb2.ToolResponse(
            success=True, output_json='{"content":"said"}', step=pb.Step(id="step_009")
        )

    fake.on(_rpc.TOOL, run)
    read = (
        'Thought: What was it?\nAction: {"tool": "fs:read_file", "args": {"path": "message_003"}}'
    )
    agent = reader(fake.address)
    async with running(agent) as bridge:
        result = await CognitiveAgent(agent.ctx, Provider(read, read, DONE)).run("g")
    first, second = (step.observation for step in result.steps)
    assert first
    assert second
    assert (first.output, first.reduced_step.id) == ('{"content": "said"}', "step_009")
    assert second.error == "Tool call failed: no such message"
    assert {each.session_id for each in asked} == {bridge.runs[0].session_id}
    assert asked[0].thought == "What was it?"
    assert log.steps == []


# When things go wrong


async def test_without_a_server_the_loop_makes_its_own_prompts(
    fake: Fake, log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with fake_server() as away:
        address = away.address
    monkeypatch.setattr(_run, "RECORD_SECONDS", 0.2)
    agent = reader(address)
    model = Provider(ACT, ACT, DONE)
    async with running(agent) as bridge:
        result = await CognitiveAgent(agent.ctx, model).run("g")
        assert result.answer == "It is 21."
        assert result.steps[0].reduced_step.observation == 'fs:read_file gave {"content": "21"}'
        assert bridge.runs[0].own_prompts == 3
        async with fake_server(int(address.rpartition(":")[2])) as back:
            later = Log(back)
            assert await bridge.flush(20)
            assert len(later.steps) == 2
    assert model.prompts[0] == "Goal: g\nWhat now?"
    told = [r.getMessage() for r in caplog.records if "own prompts" in r.getMessage()]
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) <= 3
    assert told


async def test_a_gap_in_the_log_never_reaches_a_prompt(fake: Fake, log: Log) -> None:
    async def record(request: pb.RecordStepRequest, call: Call) -> pb.RecordStepResponse:
        if not log.steps:
            log.steps.append(request)
            await refuse(call, grpc.StatusCode.INVALID_ARGUMENT, "no", reason="INVALID_REQUEST")
        return await log.record(request, call)

    fake.on(_rpc.RECORD_STEP, record)
    agent = reader(fake.address)
    model = Provider(ACT, ACT, DONE, DONE)
    async with running(agent) as bridge:
        cognitive = CognitiveAgent(agent.ctx, model)
        await cognitive.run("g")
        await cognitive.run("h")
    assert [(run.prompts, run.own_prompts) for run in bridge.runs] == [(1, 2), (1, 0)]
    assert 'Observation: {"content": "21"}' in model.prompts[1]


async def test_a_prompt_that_is_refused_is_made_by_loom_py(fake: Fake, log: Log) -> None:
    async def assemble(request: pb.AssembleRequest, call: Call) -> pb.AssembleResponse:
        if len(log.assembled) == 1:
            log.assembled.append(request)
            await refuse(
                call, grpc.StatusCode.RESOURCE_EXHAUSTED, "too long", reason="CONTEXT_OVERFLOW"
            )
        return await log.assemble(request, call)

    fake.on(_rpc.ASSEMBLE, assemble)
    agent = reader(fake.address)
    model = Provider(ACT, ACT, DONE)
    async with running(agent) as bridge:
        await CognitiveAgent(agent.ctx, model).run("g")
    run = bridge.runs[0]
    assert (run.prompts, run.own_prompts) == (2, 1)
    assert model.prompts[2].count("Observation: ") == 2


async def test_what_a_model_raises_comes_through(fake: Fake, log: Log) -> None:
    agent = reader(fake.address)
    async with running(agent) as bridge:
        result = await CognitiveAgent(agent.ctx, Provider()).run("g")
        assert await bridge.flush()
    assert (result.success, result.error) == (False, "pop from empty list")
    assert log.ended == [bridge.runs[0].session_id]


async def test_the_loop_of_another_agent_keeps_its_prompts(fake: Fake, log: Log) -> None:
    attached, other = reader(fake.address), reader(fake.address)
    model = Provider(ACT, DONE)
    async with running(attached):
        await CognitiveAgent(other.ctx, model).run("g")
    assert model.prompts[0] == "Goal: g\nWhat now?"
    assert log.assembled == []


def test_wrong_settings_are_found_at_once() -> None:
    with pytest.raises(TypeError, match="history must be a HistorySettings"):
        attach(Agent("a", []), history="ledger")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="max_tokens must be an int"):
        attach(Agent("a", []), max_tokens="8k")  # pyright: ignore[reportArgumentType]


# On the real server


async def test_a_long_run_on_a_real_server_stays_cheap(srv: testing.Server) -> None:
    def report(call: Any) -> str:
        path = json.loads(call.arguments)["path"]
        lines = "\n".join(f"{path}:{n} value {n * 7919} of {path}" for n in range(120))
        return json.dumps({"content": lines})

    agent = reader(srv.address, report)
    acts = [
        f'Thought: Look at {i}.\nAction: {{"tool": "fs:read_file", "args": {{"path": "f{i}"}}}}'
        for i in range(25)
    ]
    model = Provider(*acts, DONE)
    async with running(agent) as bridge:
        cognitive = CognitiveAgent(agent.ctx, model, max_iterations=40)
        result = await cognitive.run("Find the largest value")
        assert await bridge.flush()
        (run,) = bridge.runs
        client = await bridge.client()
        steps = [step async for step in client.context.all_steps(session_id=run.session_id)]
        assert run.receipt
        folded = {ref for fold in run.receipt.folds for ref in fold.each_ref()}
        first = await client.context.read_blob("step_001")
    assert result.answer == "It is 21."
    assert (run.prompts, run.own_prompts, len(steps)) == (26, 0, 25)
    assert [step.thought for step in steps] == [f"Look at {i}." for i in range(25)]
    assert run.cost < run.append_only_cost
    assert "step_001" in folded
    assert b"f0:119 value" in first
    assert result.steps[0].reduced_step.id == "step_001"
    assert max(map(len, model.prompts)) < 26 * len(model.prompts[1])
