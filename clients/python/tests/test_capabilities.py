"""All that the design asks of an agent's hand, in one piece of work through the client."""

from typing import Any

import loombridge
from loombridge import testing
from loombridge.documents import (
    DataOffloader,
    IsolatedContext,
    StepCompactor,
    StepReducer,
    TokenCounter,
)

GOAL = "Say which tables hold prices"
PAGE = "\n".join(f"table_{n:03}: price, volume, the closing value of day {n}" for n in range(200))


async def prompt_text(ctx: loombridge.Client, **options: Any) -> str:
    prompt = await ctx.context.assemble(goal=GOAL, format="openai", max_tokens=60_000, **options)
    return prompt.openai_json


# N01
async def test_one_piece_of_work_uses_every_capability(srv: testing.Server) -> None:
    async with (
        loombridge.connect(srv.address, agent_id="analyst", session_id="s") as ctx,
        loombridge.connect(srv.address, agent_id="helper", session_id="s") as helper,
    ):
        reducer, compactor, offloader = StepReducer(ctx), StepCompactor(ctx), DataOffloader(ctx)

        # Hierarchical actions: what is offered, what can be called, what is a script.
        @helper.tool(level=1)
        async def list_tables() -> str:
            """List the tables."""
            return "prices, volumes"

        @helper.tool(level=3)
        async def explain_plan(query: str) -> str:
            """Explain a query."""
            return f"{query}: one scan"

        await helper.attach()
        levels = {tool.name: tool.level for tool in await ctx.tools.list()}
        assert (levels["fs:read_file"], levels["list_tables"], levels["explain_plan"]) == (1, 1, 3)
        offered = {tool.name for tool in (await ctx.context.assemble()).tools}
        assert "fs:read_file" in offered
        assert "explain_plan" not in offered
        assert (await ctx.tool("explain_plan", {"query": "q"})).output == "q: one scan"

        # Reduction and offloading: a line and a path stay, and every byte can be read back.
        step = await reducer.reduce(
            "fs:read_file", {"path": "tables.txt", "encoding": "utf-8"}, {"content": PAGE}
        )
        assert step.minimal_args == {"path": "tables.txt"}
        assert step.observation == f"Read tables.txt ({len(PAGE)} bytes, text)"
        assert await offloader.read(step.outcome_path) == PAGE.encode()
        assert (await ctx.tool("fs:read_file", {"path": step.id, "limit": 1})).success

        # Compaction: older steps are lines, the newest stand in full, and it is undone.
        for n in range(12):
            await reducer.reduce("db:query", {"table": f"table_{n:03}"}, f"row {n}\n" * 60)
        assert (await compactor.compact(step)).summary.startswith("Read tables.txt")
        text = await compactor.compact_history()
        counter = TokenCounter(ctx)
        before = await prompt_text(ctx, history=loombridge.HistorySettings(policy="append_only"))
        assert await counter.count(text) < await counter.count(before)
        folded = await ctx.context.compact()
        assert folded.batch is not None
        after = await prompt_text(ctx)
        assert await counter.count(after) < await counter.count(before) / 2
        assert "Earlier steps, folded" in after
        assert "Earlier steps, folded" not in before
        await ctx.context.undo(folded.batch)
        again = (await ctx.context.compact(dry_run=True)).batch
        assert again is not None
        assert again.refs == folded.batch.refs

        # Memory tiers: working, session, long-term.
        plan = loombridge.Task("node.planning", task_id="plan", result="tables first")
        await ctx.context.record_step("planner:plan", output="ok", task=plan)
        assert len(await IsolatedContext(ctx).working_memory()) == 5
        for tool in ("query_l1_memory", "query_l2_memory"):
            assert "tables first" in str((await ctx.tool(tool, {})).output)
        await ctx.memory_save("table_007 holds prices", kind="fact")
        found = await ctx.tool("query_l4_memory", {"query": "where are the prices"})
        assert "table_007 holds prices" in str(found.output)

        # Isolation: of all this the other agent has nothing, in the session of the same name.
        other = IsolatedContext(helper)
        assert await other.steps() == ()
        assert not await helper.memory_query("prices tables first")
        for tool in ("query_l1_memory", "query_l2_memory", "query_l3_memory"):
            assert (await helper.tool(tool, {})).output["count"] == 0
        shown = await prompt_text(helper, tools=False)
        assert not any(word in shown for word in ("table_0", "tables.txt", "tables first"))


# N02
async def test_the_client_holds_nothing_that_a_restart_would_lose(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="analyst", session_id="s") as ctx:
        await ctx.context.configure(max_tokens=50_000)
        await ctx.context.append({"role": "user", "content": "Which tables hold prices?"})
        for n in range(20):
            await StepReducer(ctx).reduce("db:query", {"n": n}, f"row {n}\n" * 60)
        await ctx.context.compact()
        await ctx.memory_save("table_007 holds prices")
        before = await prompt_text(ctx)
    await srv.kill9()
    await srv.restart()
    async with loombridge.connect(srv.address, agent_id="analyst", session_id="s") as ctx:
        assert await prompt_text(ctx) == before
        assert (await ctx.memory_query("prices"))[0].record.text == "table_007 holds prices"
        step = await StepReducer(ctx).reduce("db:query", {}, "more")
        assert step.id == "step_021"
