"""Filters of memories on the real server."""

import pytest

import loombridge


@pytest.fixture
async def ctx(live: loombridge.Client) -> loombridge.Client:
    """A memory of some builds."""
    for name in ("ci-linux", "ci-mac", "nightly"):
        await live.memory_save(
            f"The build {name} has failed: disk full",
            key=name,
            tags=[f"build-{name}", "*"],
            metadata={"host": f"{name}.example.org", "path": ["/var/log", "/srv/x"]},
        )
    await live.memory.update(key="ci-mac", text="The build ci-mac is fine again", importance=0.9)
    old = await live.memory.get(key="nightly")
    await live.memory_save("The build nightly is gone", key="newest", supersedes=old.id)
    return live


async def keys(ctx: loombridge.Client, filter: str) -> list[str]:  # noqa: A002  the API's word
    """Return the keys of the records that a listing and a query let through."""
    return sorted([each.key async for each in ctx.memory.list(filter=filter)])


ALL = ["ci-linux", "ci-mac", "newest", "nightly"]


CASES: list[tuple[str, list[str]]] = [
    ('key = "ci*"', ["ci-linux", "ci-mac"]),
    ("key = ci*", ["ci-linux", "ci-mac"]),
    ('key = "*i*"', ["ci-linux", "ci-mac", "nightly"]),
    ('key != "ci*"', ["newest", "nightly"]),
    ('key = "ci\\\\*"', []),
    ('tags:"build-ci-*"', ["ci-linux", "ci-mac"]),
    ('tags:"\\\\*"', ["ci-linux", "ci-mac", "nightly"]),
    ('metadata.host = "ci*.org"', ["ci-linux", "ci-mac"]),
    ('metadata.path:"/srv/*"', ["ci-linux", "ci-mac", "nightly"]),
    ('kind = "fact" key = "ci*"', ["ci-linux", "ci-mac"]),
    ('key = "ci*" NOT text:"fine"', ["ci-linux"]),
    ('text = "*disk full"', ["ci-linux", "nightly"]),
    ('text:"disk full"', ["ci-linux", "nightly"]),
    ("version > 1", ["ci-mac"]),
    ("version = 1", ["ci-linux", "newest", "nightly"]),
    ('update_time > "2000"', ["ci-mac"]),
    ("update_time:*", ["ci-mac"]),
    ("superseded_by:*", ["nightly"]),
    ("-superseded_by:*", ["ci-linux", "ci-mac", "newest"]),
    ("", ALL),
]


async def test_filters(ctx: loombridge.Client) -> None:
    for filter, expected in CASES:  # noqa: A001  the API's own word
        assert await keys(ctx, filter) == expected, filter
        found = await ctx.memory_query("build", filter=filter or None, limit=100)
        shown = sorted(hit.record.key for hit in found)
        # A query shows no record that another one has replaced.
        assert shown == [key for key in expected if key != "nightly"], filter


async def test_words_without_a_field_are_refused_with_advice(ctx: loombridge.Client) -> None:
    with pytest.raises(loombridge.InvalidFilterError, match="words to look for belong into the"):
        await keys(ctx, "disk full")
