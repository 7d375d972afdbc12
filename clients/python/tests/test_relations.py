"""Relations of records, against a server."""

import pytest

import loombridge
import loombridge.sync
from loombridge.testing import Server


async def test_records_are_related(srv: Server) -> None:
    """Relations are made, read, come along with hits, and go with their records.

    Y21, Y22
    """
    async with loombridge.connect(srv.address, agent_id="py-relations") as ctx:
        ann = await ctx.memory_save("Ann lives in the mill by the river")
        oat = await ctx.memory_save("breakfast with oat milk")
        assert await ctx.memory.relate(ann.id, "prefers", oat.id)
        assert not await ctx.memory.relate(ann, "prefers", await ctx.memory.get(id=oat.id))
        tea = await ctx.memory_save("green leaves at noon", relations=[("served_to", ann.id)])
        (saved,) = await ctx.memory.save_many(
            [{"text": "the cat is grey", "relations": [("owned_by", ann.id)]}]
        )
        assert (await ctx.memory.get(id=ann.id)).relations == (("prefers", oat.id),)
        found = await ctx.memory.relations(id=ann.id)
        assert [(r.from_id, r.name, r.to_id) for r in found] == [
            (ann.id, "prefers", oat.id),
            (saved.id, "owned_by", ann.id),
            (tea.id, "served_to", ann.id),
        ]
        assert all(r.create_time for r in found)
        (out,) = await ctx.memory.relations(id=ann.id, direction="out")
        assert out.to_id == oat.id

        hits = await ctx.memory_query("who lives in the mill", related=True)
        assert [hit.record.id for hit in hits] == [ann.id, oat.id, saved.id, tea.id]
        through = hits[1].through
        assert through == loombridge.Through(ann.id, "prefers", outgoing=True)
        (only, came) = await ctx.memory_query(
            "who lives in the mill",
            related=loombridge.Related(direction="in", names=("served_to",), limit=1),
        )
        assert only.through is None
        assert came.record.id == tea.id
        assert came.score == 0
        assert len(await ctx.memory_query("who lives in the mill")) == 1
        with pytest.raises(loombridge.InvalidRequestError):
            await ctx.memory_query("mill", related={"limit": 51})
        with pytest.raises(TypeError):
            await ctx.memory_query("mill", related=7)  # pyright: ignore[reportArgumentType]

        with pytest.raises(loombridge.RecordNotFoundError):
            await ctx.memory.relate(ann.id, "knows", "nobody")
        with pytest.raises(loombridge.InvalidRequestError):
            await ctx.memory.relate(ann.id, "no good", oat.id)
        assert await ctx.memory.unrelate(tea.id, "served_to", ann.id)
        assert not await ctx.memory.unrelate(tea, "served_to", ann)
        with pytest.raises(TypeError, match="to_id must be a str, not int"):
            await ctx.memory.relate(ann, "knows", 7)  # pyright: ignore[reportArgumentType]
        await ctx.memory.delete(id=oat.id)
        (left,) = await ctx.memory.relations(id=ann.id)
        assert left.from_id == saved.id


def test_records_are_related_without_async(srv: Server) -> None:
    """The synchronous client has the same methods."""
    with loombridge.sync.connect(srv.address, agent_id="py-relations-sync") as ctx:
        one, two = ctx.memory_save("the rose is red"), ctx.memory_save("water it on Fridays")
        made = ctx.memory.relate_many([loombridge.Relation(two.id, "cares_for", one.id)])
        assert made == 1
        hits = ctx.memory_query("rose", related=True)
        assert [hit.record.id for hit in hits] == [one.id, two.id]


async def test_records_of_a_space_are_related(srv: Server) -> None:
    """Relations take a space, and a space has their methods."""
    async with loombridge.connect(srv.address, agent_id="py-relations-maker") as ctx:
        await ctx.spaces.create("py-relations")
        one = await ctx.memory_save("the rose is red", space_id="py-relations")
        two = await ctx.memory_save("water it on Fridays", space_id="py-relations")
        assert await ctx.memory.relate(one.id, "needs", two.id, space_id="py-relations")
        space = await ctx.spaces.open("py-relations")
        assert [r.name for r in await space.relations(id=two.id)] == ["needs"]
        hits = await ctx.memory_query("rose", space_id="py-relations", related=True)
        assert [hit.record.id for hit in hits] == [one.id, two.id]
        assert await space.unrelate(one.id, "needs", two.id)
