"""Erasing an agent or a person while the server runs, and what of it a caller sees."""

import asyncio
import json

import pytest

import loombridge
import loombridge.sync
from loombridge import testing


async def test_an_agent_is_erased_and_its_neighbour_stays(srv: testing.Server) -> None:
    async with (
        loombridge.connect(srv.address, agent_id="py-erased", session_id="s") as mine,
        loombridge.connect(srv.address, agent_id="py-stays") as other,
    ):
        await mine.memory_save("pears are allergens")
        await mine.context.append({"role": "user", "content": "remember pears"})
        await other.memory_save("pears are sold here")

        found = await other.admin.erase(agent_id="py-erased", dry_run=True)
        assert found.counts["records"] == 1
        assert found.bytes_state == "unspecified"
        assert (await mine.memory_query("pears"))[0].record.text == "pears are allergens"

        steps = [p async for p in other.admin.erase(agent_id="py-erased")]
        erased = steps[-1].erased
        assert erased is not None
        assert erased.counts == found.counts
        assert erased.entries == found.entries > 0
        assert erased.bytes_state == "reclaimed"
        assert not erased.resumed

        assert not await mine.memory_query("pears")
        assert [hit.record.text for hit in await other.memory_query("pears")] == [
            "pears are sold here"
        ]
        with pytest.raises(loombridge.SubjectNotFoundError):
            await other.admin.erase(agent_id="py-erased")
        await mine.memory_save("apples are fine")  # the id is free
        assert [r.text async for r in mine.memory.list()] == ["apples are fine"]


async def test_whom_to_erase_is_said_once(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="py-erases") as ctx:
        with pytest.raises(ValueError, match="give one of agent_id and user_id"):
            await ctx.admin.erase()
        with pytest.raises(ValueError, match="give one of agent_id and user_id"):
            await ctx.admin.erase(agent_id="a", user_id="b")
        await ctx.memory_save("hers", user_id="py-ann")
        await ctx.memory_save("mine")
        erased = await ctx.admin.erase(user_id="py-ann")
        assert erased.counts["records"] == 1
        assert [r.text async for r in ctx.memory.list()] == ["mine"]


async def test_a_session_and_a_filter(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="py-part", session_id="gone") as ctx:
        await ctx.memory_save("a pear of the session")
        await ctx.memory_save("shared pears", user_id="py-part-ann")
        async with loombridge.connect(srv.address, agent_id="py-part", session_id="stays") as other:
            await other.memory_save("a pear that stays", tags=["x"])
            await other.memory_save("a plum that stays")
        erased = await ctx.admin.erase(agent_id="py-part", session_id="gone", shared="records")
        assert (erased.counts["records"], erased.counts["shared_records"]) == (1, 1)
        certificate = json.loads(erased.certificate)
        assert certificate["subject"]["session"] == "gone"
        assert certificate["left"] == 0
        assert certificate["signature"]
        assert {r.text async for r in ctx.memory.list()} == {
            "a pear that stays",
            "a plum that stays",
        }
        assert not [r async for r in ctx.memory.list(user_id="py-part-ann")]
        erased = await ctx.admin.erase(agent_id="py-part", filter='tags:"x"')
        assert erased.counts["records"] == 1
        assert [r.text async for r in ctx.memory.list()] == ["a plum that stays"]
        with pytest.raises(ValueError, match="shared"):
            await ctx.admin.erase(agent_id="py-part", shared="all")  # type: ignore[arg-type]


def test_without_async(srv: testing.Server) -> None:
    with loombridge.sync.connect(srv.address, agent_id="py-erased-sync") as ctx:
        ctx.memory_save("gone soon")
        erased = ctx.admin.erase(agent_id="py-erased-sync")
        assert erased.counts["records"] == 1
        assert not list(ctx.memory.list())


async def test_erasures_of_one_subject_are_one(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="py-twice") as ctx:
        await ctx.memory_save("once")
        outcomes = await asyncio.gather(
            *(ctx.admin.erase(agent_id="py-twice") for _ in range(3)), return_exceptions=True
        )
        for outcome in outcomes:
            assert isinstance(outcome, loombridge.Erased | loombridge.SubjectNotFoundError)
        assert any(isinstance(outcome, loombridge.Erased) for outcome in outcomes)


async def test_one_step(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="py-step", session_id="s") as ctx:
        for word in ("quinces", "medlars", "sloes"):
            await ctx.context.record_step(
                "own:tool", {"of": f"a question about {word}"}, output=f"an answer about {word}"
            )
        erased = await ctx.admin.erase(agent_id="py-step", session_id="s", step_id="step_002")
        assert erased.counts["steps"] == 1
        assert json.loads(erased.certificate)["subject"]["step"] == 2
        assert [s.id for s in await ctx.context.steps()] == ["step_001", "step_003"]
        prompt = str(await ctx.context.assemble(goal="fruit", max_tokens=8000))
        assert "quinces" in prompt
        assert "sloes" in prompt
        assert "medlars" not in prompt
        with pytest.raises(loombridge.SubjectNotFoundError):
            await ctx.admin.erase(agent_id="py-step", step_id="step_002")
        with pytest.raises(loombridge.InvalidRequestError, match="step_id"):
            await ctx.admin.erase(agent_id="py-step", step_id="2")


def test_one_step_without_async(srv: testing.Server) -> None:
    with loombridge.sync.connect(srv.address, agent_id="py-step-sync", session_id="s") as ctx:
        ctx.context.record_step("own:tool", {}, output="an answer")
        assert ctx.admin.erase(agent_id="py-step-sync", step_id="step_001").counts["steps"] == 1
