"""What a prompt is asked to be made of, and the account of it that comes back."""

import json
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Annotated, Any, cast

import pytest
from google.protobuf.duration_pb2 import Duration

import loombridge
from fake import Fake
from loombridge import (
    CacheMark,
    Example,
    Injection,
    InjectionLimits,
    PromptDifference,
    PromptSection,
    PromptSettings,
    Skill,
    SourceSettings,
    ToolDefinition,
    ToolSelection,
    _rpc,
    _working,
)
from loombridge.v1 import context_pb2 as pb
from loombridge.v1 import prompt_pb2

ALL = PromptSettings(
    layout="task_context",
    system="You are careful.",
    tool_rendering="text",
    tools=ToolSelection(none=True, levels=(1, 2), names=("fs:*",)),
    runtime_position="prepend",
    sources=SourceSettings(
        exclude=("events",),
        memory_layers=("L1", "L2"),
        user_memories=5,
        knowledge=4,
        knowledge_timeout=timedelta(milliseconds=250),
        event_actions=("node.thinking",),
    ),
    few_shot=(Example("2+2", "4"),),
    skills=(Skill("review", "Reads code", "Look twice.", ("fs:read_file",), active=True),),
    agents_md="Use tabs.",
    user_id="ann",
    limits=InjectionLimits(total=9000, sections={"knowledge": 400}),
    variation=0.0,
    injections=(
        Injection("desk", "The desk is closed.", "system", "stable", 90, 100, "desk"),
        Injection("now", "It is late."),
    ),
    max_output_tokens=1000,
)

ALL_ON_THE_WIRE = prompt_pb2.PromptSettings(
    layout=prompt_pb2.PROMPT_LAYOUT_TASK_CONTEXT,
    system="You are careful.",
    tool_rendering=prompt_pb2.TOOL_RENDERING_TEXT,
    tools=prompt_pb2.ToolSelection(none=True, levels=[1, 2], names=["fs:*"]),
    runtime_position=prompt_pb2.RUNTIME_POSITION_PREPEND,
    sources=prompt_pb2.SourceSettings(
        exclude=["events"],
        memory_layers=["L1", "L2"],
        user_memories=5,
        knowledge=4,
        knowledge_timeout=Duration(nanos=250_000_000),
        event_actions=["node.thinking"],
    ),
    few_shot=[prompt_pb2.Example(input="2+2", output="4")],
    skills=[
        prompt_pb2.Skill(
            name="review",
            description="Reads code",
            text="Look twice.",
            tools=["fs:read_file"],
            active=True,
        )
    ],
    agents_md="Use tabs.",
    user_id="ann",
    limits=prompt_pb2.InjectionLimits(total=9000, sections={"knowledge": 400}),
    variation=0.0,
    injections=[
        prompt_pb2.Injection(
            name="desk",
            content="The desk is closed.",
            phase=prompt_pb2.INJECTION_PHASE_SYSTEM,
            cache=prompt_pb2.CACHE_STRATEGY_STABLE,
            priority=90,
            max_tokens=100,
            xml_tag="desk",
        ),
        prompt_pb2.Injection(
            name="now", content="It is late.", phase=prompt_pb2.INJECTION_PHASE_RUNTIME
        ),
    ],
    max_output_tokens=1000,
)


async def test_every_setting_goes_out_and_comes_back(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.CONFIGURE_SESSION, pb.ConfigureSessionResponse(prompt=ALL_ON_THE_WIRE))
    held = await ctx.context.configure(prompt=ALL)
    assert fake.requests[0] == pb.ConfigureSessionRequest(
        agent_id="a1", session_id="s1", prompt=ALL_ON_THE_WIRE
    )
    assert held.prompt == ALL
    # No field of the message is without a place here.
    set_here = {field.name for field, _ in ALL_ON_THE_WIRE.ListFields()}
    assert set_here == {field.name for field in prompt_pb2.PromptSettings.DESCRIPTOR.fields}


async def test_what_is_not_set_is_not_sent(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.CONFIGURE_SESSION, pb.ConfigureSessionResponse())
    fake.on(_rpc.ASSEMBLE, pb.AssembleResponse())
    assert (await ctx.context.configure(prompt=PromptSettings())).prompt == PromptSettings()
    assert fake.requests[-1].HasField("prompt")
    await ctx.context.configure()
    assert not fake.requests[-1].HasField("prompt")
    await ctx.context.assemble(settings=PromptSettings(limits=InjectionLimits()))
    sent = fake.requests[-1].settings
    assert sent == prompt_pb2.PromptSettings(limits=prompt_pb2.InjectionLimits())
    await ctx.context.assemble()
    assert fake.requests[-1] == pb.AssembleRequest(agent_id="a1", session_id="s1")


async def test_only_a_call_that_changes_nothing_is_made_again(
    fake: Fake, ctx: loombridge.Client
) -> None:
    repeated: list[bool] = []
    call = ctx.context._transport.call  # pyright: ignore[reportPrivateUsage]

    async def noted(*args: Any, repeatable: bool = True, **kwargs: Any) -> Any:
        repeated.append(repeatable)
        return await call(*args, repeatable=repeatable, **kwargs)

    ctx.context._transport.call = noted  # type: ignore[method-assign]  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    fake.on(_rpc.CONFIGURE_SESSION, pb.ConfigureSessionResponse())
    await ctx.context.configure()
    await ctx.context.configure(prompt=PromptSettings(user_id="ann"))
    await ctx.context.configure(prompt=PromptSettings(user_id="ann"), request_id="r1")
    assert repeated == [True, False, True]


async def test_settings_and_injections_of_one_call(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.ASSEMBLE, pb.AssembleResponse())
    await ctx.context.assemble(
        turn_id="t7",
        format="anthropic",
        settings=PromptSettings(layout="react", injections=[Injection("a", "A", "system")]),
        injections=[Injection("b", "B", "user_context", cache="session")],
    )
    assert fake.requests[0] == pb.AssembleRequest(
        agent_id="a1",
        session_id="s1",
        turn_id="t7",
        format=pb.PROMPT_FORMAT_ANTHROPIC,
        settings=prompt_pb2.PromptSettings(
            layout=prompt_pb2.PROMPT_LAYOUT_REACT,
            injections=[
                prompt_pb2.Injection(
                    name="a", content="A", phase=prompt_pb2.INJECTION_PHASE_SYSTEM
                ),
                prompt_pb2.Injection(
                    name="b",
                    content="B",
                    phase=prompt_pb2.INJECTION_PHASE_USER_CONTEXT,
                    cache=prompt_pb2.CACHE_STRATEGY_SESSION,
                ),
            ],
        ),
    )


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("neutral", pb.PROMPT_FORMAT_UNSPECIFIED),
        ("openai", pb.PROMPT_FORMAT_OPENAI_CHAT),
        ("openai_responses", pb.PROMPT_FORMAT_OPENAI_RESPONSES),
        ("anthropic", pb.PROMPT_FORMAT_ANTHROPIC),
        ("gemini", pb.PROMPT_FORMAT_GEMINI),
    ],
)
async def test_formats(
    fake: Fake, ctx: loombridge.Client, name: loombridge.PromptFormat, number: int
) -> None:
    fake.on(_rpc.ASSEMBLE, pb.AssembleResponse())
    await ctx.context.assemble(format=name)
    assert fake.requests[0].format == number


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where."}},
    "required": ["city"],
    "additionalProperties": False,
}
FORECAST = ToolDefinition("forecast", "Tell the weather.", SCHEMA)


async def forecast(city: Annotated[str, "Where."]) -> str:
    """Tell the weather."""
    return city


FORMS: list[tuple[str, loombridge.CallerTool]] = [
    ("definition", FORECAST),
    ("function", forecast),
    (
        "OpenAI Chat",
        {
            "type": "function",
            "function": {
                "name": "forecast",
                "description": "Tell the weather.",
                "parameters": SCHEMA,
            },
        },
    ),
    (
        "OpenAI Responses",
        {
            "type": "function",
            "name": "forecast",
            "description": "Tell the weather.",
            "parameters": SCHEMA,
            "strict": None,
        },
    ),
    (
        "Anthropic",
        {
            "type": "custom",
            "name": "forecast",
            "description": "Tell the weather.",
            "input_schema": SCHEMA,
        },
    ),
    ("Gemini", {"name": "forecast", "description": "Tell the weather.", "parameters": SCHEMA}),
    ("MCP", {"name": "forecast", "description": "Tell the weather.", "inputSchema": SCHEMA}),
    (
        "served",
        loombridge.ToolInfo(
            "forecast", "Tell the weather.", SCHEMA, 1, False, "web", False, "other"
        ),
    ),
]


@pytest.mark.parametrize("tool", [tool for _, tool in FORMS], ids=[name for name, _ in FORMS])
async def test_the_callers_own_tools_in_every_form(
    fake: Fake, ctx: loombridge.Client, tool: loombridge.CallerTool
) -> None:
    fake.on(_rpc.ASSEMBLE, pb.AssembleResponse())
    await ctx.context.assemble(tools=[tool])
    (sent,) = fake.requests[0].tools
    assert not fake.requests[0].without_tools
    assert (sent.name, sent.description) == ("forecast", "Tell the weather.")
    assert json.loads(sent.parameters_schema_json) == SCHEMA


async def test_tools_on_and_off(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.ASSEMBLE, pb.AssembleResponse())
    await ctx.context.assemble(tools=True)
    await ctx.context.assemble(tools=False)
    await ctx.context.assemble(tools=[])
    await ctx.context.assemble(tools=[ToolDefinition("stop")])
    assert [request.without_tools for request in fake.requests] == [False, True, False, False]
    assert [len(request.tools) for request in fake.requests] == [0, 0, 0, 1]
    assert fake.requests[3].tools[0].parameters_schema_json == ""


NO_TOOLS: list[tuple[Any, type[Exception], str]] = [
    ("fs:read_file", TypeError, "served tools are chosen by settings"),
    ({"name": "a"}, TypeError, "a list of tools"),
    ([7], TypeError, r"tools\[0\] must be a ToolDefinition, a mapping or a function, not int"),
    (["fs:read_file"], TypeError, r"tools\[0\] .* not str; served tools are chosen by settings"),
    ([dict], TypeError, r"tools\[0\] must be a ToolDefinition"),
    ([{"description": "x"}], TypeError, r"tools\[0\].name must be a str, not None"),
    ([{"name": "a", "parametres": {}}], ValueError, "did you mean 'parameters'"),
    ([{"name": "a", "strict": True}], ValueError, "'strict' that has no place here"),
    ([{"name": "a", "parameters": {}, "input_schema": {}}], ValueError, "more than one schema"),
    ([{"type": "web_search_20250305", "name": "a"}], ValueError, "the provider's own"),
    ([{"name": "a", "parameters": "{}"}], TypeError, r"parameters must be a mapping"),
    ([ToolDefinition("a", parameters={"x": {1}})], TypeError, "is not JSON"),
]


@pytest.mark.parametrize(("tools", "error", "text"), NO_TOOLS)
async def test_what_is_no_tool_is_refused_before_it_is_sent(
    fake: Fake, ctx: loombridge.Client, tools: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        await ctx.context.assemble(tools=tools)
    assert fake.requests == []


def wrong(**fields: Any) -> PromptSettings:
    return PromptSettings(**fields)


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"layout": "react"}, TypeError, "settings must be of type PromptSettings, not dict"),
        (loombridge.HistorySettings(), TypeError, "settings must be of type PromptSettings"),
        (wrong(layout="partitoned"), ValueError, "settings.layout must be one of"),
        (wrong(tool_rendering="xml"), ValueError, "'parameter', 'text', not 'xml'"),
        (wrong(runtime_position="end"), ValueError, "'append', 'prepend'"),
        (wrong(system=b"x"), TypeError, "settings.system must be a str, not bytes"),
        (wrong(tools=["fs:*"]), TypeError, "settings.tools must be of type ToolSelection"),
        (wrong(tools=ToolSelection(names="fs:*")), TypeError, "names must be a list of str"),
        (wrong(tools=ToolSelection(levels=cast("Any", 1))), TypeError, "levels must be a list"),
        (wrong(few_shot=[("a", "b")]), TypeError, r"few_shot\[0\] must be of type Example"),
        (wrong(skills="review"), TypeError, "skills must be a list, not str"),
        (wrong(sources=SourceSettings(knowledge=0)), ValueError, "must not be 0: None leaves it"),
        (wrong(sources=SourceSettings(knowledge_timeout=0)), ValueError, "more than zero"),
        (wrong(limits=InjectionLimits(sections={"a": cast("Any", "1")})), TypeError, "an int"),
        (wrong(variation=float("nan")), ValueError, "must be finite"),
        (wrong(max_output_tokens=1.5), TypeError, "max_output_tokens must be an int"),
        (wrong(injections=["a"]), TypeError, r"injections\[0\] must be of type Injection"),
        (wrong(injections=[Injection("a", "b", cast("Any", "end"))]), ValueError, "phase must be"),
        (
            wrong(injections=[Injection("a", "b", cache=cast("Any", "ever"))]),
            ValueError,
            "'stable', 'session', 'dynamic'",
        ),
    ],
)
async def test_settings_that_fit_no_type_are_refused_before_they_are_sent(
    fake: Fake, ctx: loombridge.Client, settings: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        await ctx.context.assemble(settings=settings)
    assert fake.requests == []


async def test_what_was_meant_is_said(ctx: loombridge.Client) -> None:
    call = cast("Callable[..., Any]", ctx.context.assemble)
    with pytest.raises(TypeError, match=r"did you mean 'settings'\?"):
        await call(setting=PromptSettings())
    with pytest.raises(TypeError, match=r"did you mean 'injections'\?"):
        await call(injection=[])
    with pytest.raises(TypeError, match=r"did you mean 'as_of_step'\?"):
        await call(as_of_steps="step_001")
    with pytest.raises(TypeError, match=r"did you mean 'system'\?"):
        await call(system_prompt="x")
    for name in ("layout", "skills", "few_shot", "user_id"):
        with pytest.raises(TypeError, match=rf"'{name}' \(did you mean 'settings'\?\)"):
            await call(**{name: "x"})
        with pytest.raises(TypeError, match=rf"'{name}' \(did you mean '(prompt|settings)'\?\)"):
            await cast("Callable[..., Any]", ctx.context.configure)(**{name: "x"})
    with pytest.raises(TypeError, match="history must be a HistorySettings, not PromptSettings"):
        await ctx.context.configure(cast("Any", PromptSettings()))


async def test_a_prompt_of_before(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.ASSEMBLE, pb.AssembleResponse())
    await ctx.context.assemble(as_of_step="step_004")
    await ctx.context.assemble(as_of_prompt="p3", session_id="s2")
    assert fake.requests == [
        pb.AssembleRequest(agent_id="a1", session_id="s1", as_of_step_id="step_004"),
        pb.AssembleRequest(agent_id="a1", session_id="s2", as_of_prompt_id="p3"),
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"goal": "x"},
        {"format": "openai"},
        {"tools": False},
        {"tools": [ToolDefinition("a")]},
        {"settings": PromptSettings()},
        {"injections": [Injection("a", "b")]},
        {"history": loombridge.HistorySettings()},
        {"max_tokens": 100},
        {"turn_id": "t"},
        {"dry_run": True},
        {"as_of_prompt": "p3"},
    ],
    ids=lambda given: next(iter(given)),
)
async def test_a_prompt_of_before_is_as_it_was_sent(
    fake: Fake, ctx: loombridge.Client, given: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"as it was sent|either as_of_step or as_of_prompt"):
        await ctx.context.assemble(as_of_step="step_004", **given)
    assert fake.requests == []


async def test_the_whole_account_of_a_prompt(fake: Fake, ctx: loombridge.Client) -> None:
    answer = pb.AssembleResponse(
        cache_marks=[
            prompt_pb2.CacheMark(what="stable", message_index=-2, block_index=1, tokens=900)
        ],
        receipt=pb.Receipt(
            layout=prompt_pb2.PROMPT_LAYOUT_THREE_PHASE,
            sections=[
                prompt_pb2.SectionInfo(
                    name="knowledge",
                    tokens=80,
                    before_tokens=900,
                    max_tokens=100,
                    outcome=prompt_pb2.SECTION_OUTCOME_CUT,
                    reason="over its cap",
                    refs=["r1"],
                    left_out=["r2"],
                ),
                prompt_pb2.SectionInfo(
                    name="history", outcome=prompt_pb2.SECTION_OUTCOME_SHOWN, tokens=7
                ),
            ],
            difference=prompt_pb2.PromptDifference(section="plan", byte=4000, message_index=3),
            calls=40,
            faults=1,
        ),
    )
    fake.on(_rpc.ASSEMBLE, answer)
    prompt = await ctx.context.assemble()
    receipt = prompt.receipt
    assert prompt.cache_marks == (CacheMark("stable", -2, 1, 900),)
    knowledge = PromptSection(
        name="knowledge",
        tokens=80,
        before_tokens=900,
        max_tokens=100,
        outcome="cut",
        reason="over its cap",
        refs=("r1",),
        left_out=("r2",),
    )
    assert receipt.layout == "three_phase"
    assert receipt.section("knowledge") == knowledge
    assert receipt.section("goal") is None
    assert receipt.difference == PromptDifference("plan", 4000, 3)
    assert (receipt.calls, receipt.faults) == (40, 1)
    answer.receipt.ClearField("difference")
    assert (await ctx.context.assemble()).receipt.difference is None


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        ALL.system = "x"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_a_plan_in_its_forms() -> None:
    items = [loombridge.PlanItem("read", "done"), loombridge.PlanItem("write")]
    wire = prompt_pb2.Plan(
        items=[
            prompt_pb2.PlanItem(text="read", status=prompt_pb2.PLAN_STATUS_DONE),
            prompt_pb2.PlanItem(text="write", status=prompt_pb2.PLAN_STATUS_PENDING),
        ]
    )
    assert _working.plan_to_wire("plan", items) == wire
    assert _working.plan_to_wire("plan", loombridge.Plan(items)) == wire
    assert _working.plan_to_wire("plan", [items[0], "write"]) == wire
    seen = _working.working(prompt_pb2.Working(goal="g", plan=wire, active_skills=["a"]))
    assert seen == loombridge.Working("g", loombridge.Plan(tuple(items)), ("a",))
    for wrong_plan, text in [
        ("read", "plan must be a Plan or a list of items, not str"),
        ([7], r"plan\[0\] must be a PlanItem or a str, not int"),
    ]:
        with pytest.raises(TypeError, match=text):
            _working.plan_to_wire("plan", wrong_plan)
    with pytest.raises(ValueError, match="'pending', 'in_progress', 'done', 'failed'"):
        _working.plan_to_wire("plan", [loombridge.PlanItem("a", cast("Any", "open"))])
