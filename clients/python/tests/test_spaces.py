"""Spaces and grants, against a server."""

import pytest

import loombridge
import loombridge.sync
from loombridge.testing import Server


async def test_a_space_is_shared(srv: Server) -> None:
    """What one agent saves to a space another one finds, as far as it was granted."""
    async with (
        loombridge.connect(srv.address, agent_id="py-maker") as maker,
        loombridge.connect(srv.address, agent_id="py-crew-1") as crew,
    ):
        made = await maker.spaces.create("py-team")
        assert (made.space_id, made.access) == ("py-team", "admin")
        with pytest.raises(loombridge.SpaceExistsError):
            await maker.spaces.create("py-team")
        await maker.memory_save("The release is on Friday", space_id="py-team", key="release")
        with pytest.raises(loombridge.AccessDeniedError) as refused:
            await crew.memory_query("when is the release", space_id="py-team")
        assert refused.value.needed == "read"
        with pytest.raises(loombridge.AccessDeniedError):
            await crew.spaces.open("py-team")

        granted = await maker.spaces.grant("py-team", to="py-crew-*", access="read")
        assert (granted.grantee, granted.access) == ("py-crew-*", "read")
        assert granted.granted_by == "py-maker"
        (hit,) = await crew.memory_query("when is the release", space_id="py-team")
        assert (hit.record.text, hit.record.agent_id) == ("The release is on Friday", "py-maker")
        hits = await crew.memory_query(
            "when is the release", owners=["agent:py-crew-1", "space:py-team"]
        )
        assert [str(each.owner) for each in hits] == ["space:py-team"]
        team = await crew.spaces.open("py-team")
        assert (await team.get(key="release")).text == "The release is on Friday"
        assert [each.text async for each in team.list()] == ["The release is on Friday"]
        of = loombridge.connect(srv.address, agent_id="py-maker")
        async with of as ctx:
            assert (await ctx.memory.get(key="release", space_id="py-team")).id == hit.record.id
            listed = [each.id async for each in ctx.memory.list(space_id="py-team")]
            assert listed == [hit.record.id]
            note = await ctx.memory_save("a slip", space_id="py-team", key="slip")
            changed = await ctx.memory.update(key="slip", tags=["t"], space_id="py-team")
            assert changed.version == note.version + 1
            versions = await ctx.memory.versions(key="slip", space_id="py-team")
            assert [each.tags for each in versions] == [("t",), ()]
            passed = await ctx.memory.review(key="slip", approve=True, space_id="py-team")
            assert passed.version == changed.version + 1
            assert (await ctx.memory.archive(key="slip", space_id="py-team")).archived
            (more,) = await ctx.memory.save_many(["one more"], space_id="py-team")
            assert (await ctx.memory.stats(space_id="py-team")).records == 3
            with pytest.raises(loombridge.NoEmbedderError):
                await anext(aiter(ctx.memory.reembed(space_id="py-team")))
            assert await ctx.memory.delete(id=more.id, space_id="py-team") == more.id
            assert await ctx.memory.delete(key="slip", space_id="py-team") == note.id
            with pytest.raises(loombridge.RecordNotFoundError):
                await ctx.memory.get(key="release")
            matching = ctx.memory.delete_matching
            assert await matching("version >= 1", dry_run=True, space_id="py-team") == 1
        with pytest.raises(loombridge.AccessDeniedError):
            await crew.memory.delete(key="release", space_id="py-team")
        lines = [line async for line in team.export_lines()]
        assert len(lines) == 1
        with pytest.raises(loombridge.AccessDeniedError):
            await team.delete(key="release")
        with pytest.raises(loombridge.AccessDeniedError):
            await team.import_lines(lines)
        assert [each.space_id for each in await crew.spaces.list()] == ["py-team"]

        async with team.watch() as watch:
            assert (await anext(watch)).record is not None
            assert (await anext(watch)).caught_up
            await maker.spaces.revoke("py-team", to="py-crew-*")
            with pytest.raises(loombridge.AccessDeniedError):
                await anext(watch)
        with pytest.raises(loombridge.GrantNotFoundError):
            await maker.spaces.revoke("py-team", to="py-crew-*")
        with pytest.raises(loombridge.LastAdminError):
            await maker.spaces.revoke("py-team", to="py-maker")
        assert [each.grantee for each in await maker.spaces.grants("py-team")] == ["py-maker"]
        await maker.spaces.delete("py-team")
        assert await maker.spaces.list() == ()
        with pytest.raises(loombridge.AccessDeniedError):
            await maker.memory_save("too late", space_id="py-team")


async def test_one_owner_is_named(srv: Server) -> None:
    """A space and a person can't both be meant, and one of them must be."""
    async with loombridge.connect(srv.address, agent_id="py-owner") as ctx:
        with pytest.raises(TypeError):
            await ctx.spaces.grant(to="x", access="read")
        with pytest.raises(TypeError):
            await ctx.spaces.grants("a", user_id="b")
        with pytest.raises(loombridge.InvalidRequestError):
            await ctx.memory_save("x", user_id="ann", space_id="team")
        granted = await ctx.spaces.grant(user_id="ann", to="helper", access="write")
        assert granted in await ctx.spaces.grants(user_id="ann")


def test_spaces_without_async(srv: Server) -> None:
    """The client without async has them as well."""
    with loombridge.sync.connect(srv.address, agent_id="py-sync") as ctx:
        ctx.spaces.create("py-sync-space")
        ctx.memory_save("It rains", space_id="py-sync-space", key="weather")
        assert ctx.spaces.open("py-sync-space").get(key="weather").text == "It rains"
        ctx.spaces.delete("py-sync-space")


async def test_owners_are_listed(srv: Server) -> None:
    """The owners of memories come page by page, with counts of what they hold."""
    async with loombridge.connect(srv.address, agent_id="py-owner-2") as ctx:
        await ctx.memory_save("The release is on Friday")
        await ctx.memory_save("The release is on Friday", user_id="py-owner-1")
        found: list[loombridge.MemoryScope] = []
        token = ""
        while True:
            page = await ctx.scopes(prefix="py-owner-", page_size=1, page_token=token)
            found += page.scopes
            token = page.next_page_token
            if not token:
                break
        assert [(each.kind, each.id, each.records) for each in found] == [
            ("agent", "py-owner-2", 1),
            ("user", "py-owner-1", 1),
        ]
        people = await ctx.scopes(prefix="py-owner-", kind="user")
        assert [each.id for each in people.scopes] == ["py-owner-1"]
        with pytest.raises(ValueError, match="kind"):
            await ctx.scopes(kind="topic")  # pyright: ignore[reportArgumentType]


def test_owners_are_listed_without_async(srv: Server) -> None:
    """The synchronous client has the same method."""
    with loombridge.sync.connect(srv.address, agent_id="py-owner-3") as ctx:
        ctx.memory_save("The release is on Friday")
        assert [each.id for each in ctx.scopes(prefix="py-owner-3").scopes] == ["py-owner-3"]
