"""Wrong arguments are refused before anything travels, with a text that says why."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, cast

import pytest

import loombridge
from fake import Fake
from loombridge import _rpc
from loombridge.v1 import events_pb2, memory_pb2

NAIVE = datetime(2026, 1, 2)
LONE = "\ud800"
LOOP: list[Any] = []
LOOP.append(LOOP)

Use = Callable[[Any], Awaitable[Any]]

CASES: list[tuple[str, type[Exception], str, Use]] = [
    ("text no str", TypeError, "text must be a str, not bytes", lambda c: c.memory_save(b"x")),
    ("text none", TypeError, "text must be a str, not None", lambda c: c.memory_save(None)),
    ("surrogate", ValueError, "text is not valid Unicode", lambda c: c.memory_save(LONE)),
    ("tags a str", TypeError, "tags must be a list", lambda c: c.memory_save("t", tags="ab")),
    ("tag no str", TypeError, r"tags\[1\] must be", lambda c: c.memory_save("t", tags=["a", 1])),
    (
        "metadata a list",
        TypeError,
        "metadata must be a mapping",
        lambda c: c.memory_save("t", metadata=[1]),
    ),
    (
        "metadata with a datetime",
        TypeError,
        "metadata is not JSON: datetime has no JSON form",
        lambda c: c.memory_save("t", metadata={"at": NAIVE}),
    ),
    (
        "metadata with NaN",
        ValueError,
        "metadata is not JSON",
        lambda c: c.memory_save("t", metadata={"x": float("nan")}),
    ),
    (
        "metadata in itself",
        ValueError,
        "metadata is not JSON",
        lambda c: c.memory_save("t", metadata={"x": LOOP}),
    ),
    (
        "metadata with a surrogate",
        ValueError,
        "metadata is not valid Unicode",
        lambda c: c.memory_save("t", metadata={"x": LONE}),
    ),
    (
        "lines a text",
        TypeError,
        "lines must be a file that is open",
        lambda c: c.sessions.import_lines("{}"),
    ),
    (
        "line no str",
        TypeError,
        "lines must be a str, not bytes",
        lambda c: c.sessions.import_lines([b"{}"]),
    ),
    ("server no str", TypeError, "to must be a str", lambda c: c.workspace.move(to=7)),
    ("ttl zero", ValueError, "ttl must be more than zero", lambda c: c.memory_save("t", ttl=0)),
    ("ttl text", TypeError, "ttl must be a number", lambda c: c.memory_save("t", ttl="1h")),
    (
        "ttl and moment",
        ValueError,
        "one of ttl, expire_time and sliding_ttl",
        lambda c: c.memory_save("t", ttl=1, expire_time=datetime.now(UTC)),
    ),
    (
        "moment without zone",
        ValueError,
        "event_time needs a time zone",
        lambda c: c.memory_save("t", event_time=NAIVE),
    ),
    (
        "moment no datetime",
        TypeError,
        "expire_time must be a datetime",
        lambda c: c.memory_save("t", expire_time=1.5),
    ),
    (
        "importance text",
        TypeError,
        "importance must be a number",
        lambda c: c.memory_save("t", importance="high"),
    ),
    (
        "origin unknown",
        ValueError,
        "origin must be one of 'user', 'agent', 'tool', 'web', not 'robot'",
        lambda c: c.memory_save("t", origin="robot"),
    ),
    (
        "embedding infinite",
        ValueError,
        "embedding must be finite",
        lambda c: c.memory_save("t", embedding=[float("inf")]),
    ),
    ("no query", TypeError, "query is missing", lambda c: c.memory_query()),
    ("query none", TypeError, "query is missing", lambda c: c.memory_query({"limit": 5})),
    (
        "query with an unknown key",
        TypeError,
        r"the query has no 'top_k' \(did you mean 'limit'\?\); there is query, limit",
        lambda c: c.memory_query({"query": "x", "top_k": 3}),
    ),
    (
        "limit twice",
        TypeError,
        "limit is given twice",
        lambda c: c.memory_query({"query": "x", "limit": 3}, limit=4),
    ),
    ("limit a bool", TypeError, "limit must be an int", lambda c: c.memory_query("x", limit=True)),
    (
        "limit too big",
        ValueError,
        "limit is out of range",
        lambda c: c.memory_query("x", limit=1 << 40),
    ),
    (
        "owners a str",
        TypeError,
        "owners must be a list",
        lambda c: c.memory_query("x", owners="user:ann"),
    ),
    (
        "owner of no kind",
        ValueError,
        "agent:<id>, user:<id> or space:<id>, not 'ann'",
        lambda c: c.memory_query("x", owners=["ann"]),
    ),
    (
        "owner of no name",
        ValueError,
        "agent:<id>, user:<id> or space:<id>",
        lambda c: c.memory_query("x", owners=["user:"]),
    ),
    (
        "owner no str",
        TypeError,
        r"owners\[0\] must be an Owner or a str",
        lambda c: c.memory_query("x", owners=[1]),
    ),
    (
        "tiers of text",
        TypeError,
        "tiers must be an int",
        lambda c: c.memory_query("x", tiers=["l4"]),
    ),
    (
        "half-life zero",
        ValueError,
        "recency_half_life must be more than zero",
        lambda c: c.memory_query("x", recency_half_life=0),
    ),
    ("mode unknown", ValueError, "mode must be one of", lambda c: c.memory_query("x", mode="best")),
    ("name no str", TypeError, "name must be a str", lambda c: c.tool(7)),
    (
        "arguments a list",
        TypeError,
        "arguments must be a mapping",
        lambda c: c.tool("fs:stat", ["path"]),
    ),
    ("payload a set", TypeError, "payload is not JSON", lambda c: c.emit("t", {1, 2})),
    (
        "header no str",
        TypeError,
        r"headers\['n'\] must be a str",
        lambda c: c.emit("t", headers={"n": 1}),
    ),
    ("timeout zero", ValueError, "timeout must be more", lambda c: c.status(timeout=0)),
    ("record unnamed", ValueError, "either id or key", lambda c: c.memory.get()),
    ("update unnamed", ValueError, "either id or key", lambda c: c.memory.update(text="t")),
    ("update of nothing", ValueError, "nothing to change", lambda c: c.memory.update(id="a")),
    (
        "update clears what it can't",
        ValueError,
        "clear can't name text; it takes author,",
        lambda c: c.memory.update(id="a", clear=["text"]),
    ),
    (
        "update gives and clears",
        ValueError,
        "tags can't be given and cleared",
        lambda c: c.memory.update(id="a", tags=["x"], clear=("tags",)),
    ),
    (
        "update clears a str",
        TypeError,
        "clear must be a list",
        lambda c: c.memory.update(id="a", clear="tags"),
    ),
    (
        "version a bool",
        TypeError,
        "expected_version must be an int",
        lambda c: c.memory.delete(id="a", expected_version=True),
    ),
    (
        "draft unknown",
        TypeError,
        r"records\[0\] has no 'txt' \(did you mean 'text'\?\); there is text, id,",
        lambda c: c.memory.save_many([{"txt": "t"}]),
    ),
    (
        "draft without text",
        TypeError,
        r"records\[1\] has no text",
        lambda c: c.memory.save_many(["t", {"key": "k"}]),
    ),
    ("record twice", ValueError, "either id or key", lambda c: c.memory.get(id="a", key="b")),
    ("format", ValueError, "format must be one of", lambda c: c.context.assemble(format="xml")),
    ("role", ValueError, "role must be one of", lambda c: c.context.append({"role": "boss"})),
    ("no role", TypeError, "role must be a str", lambda c: c.context.append({"content": "x"})),
    (
        "message a str",
        TypeError,
        r"messages\[0\] must be a Message or a mapping, not str",
        lambda c: c.context.append("hello"),
    ),
    (
        "empty limit",
        ValueError,
        "limit must be at least 1",
        lambda c: c.context.read_blob("b", limit=0),
    ),
]


@pytest.mark.parametrize(("kind", "text", "use"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
async def test_wrong_argument_is_refused_here(
    fake: Fake, ctx: loombridge.Client, kind: type[Exception], text: str, use: Use
) -> None:
    with pytest.raises(kind, match=text):
        await use(ctx)
    assert fake.requests == []


@pytest.mark.parametrize(
    ("topics", "kind", "text"),
    [
        (["a", "b"], TypeError, "topics must be a mapping"),
        ({"a": "7"}, TypeError, "after_sequence of a must be an int"),
        ({1: None}, TypeError, "topic must be a str"),
    ],
)
async def test_wrong_topics(
    ctx: loombridge.Client, topics: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        ctx.events.subscribe(topics)


async def test_json_keeps_every_digit_both_ways(fake: Fake, ctx: loombridge.Client) -> None:
    big = 2**63 + 1
    record = memory_pb2.Record(id="r1", metadata_json=f'{{"n":{big}}}')
    fake.on(_rpc.MEMORY_SAVE, memory_pb2.MemorySaveResponse(id="r1"))
    fake.on(_rpc.GET_RECORD, record)
    await ctx.memory_save("t", metadata={"n": big, "name": "Zoë"})
    assert fake.requests[0].metadata_json == f'{{"n":{big},"name":"Zoë"}}'
    assert (await ctx.memory.get(id="r1")).metadata == {"n": big}


async def test_any_mapping_and_sequence_is_json(fake: Fake, ctx: loombridge.Client) -> None:
    fake.on(_rpc.EMIT, events_pb2.EmitResponse())
    await ctx.emit("t", MappingProxyType({"a": (1, 2), "b": range(2)}))
    assert fake.requests[0].payload_json == '{"a":[1,2],"b":[0,1]}'


@pytest.mark.parametrize("ttl", [90, 90.0, timedelta(minutes=1, seconds=30)])
async def test_spans_are_seconds_or_timedelta(
    fake: Fake, ctx: loombridge.Client, ttl: float | timedelta
) -> None:
    fake.on(_rpc.MEMORY_SAVE, memory_pb2.MemorySaveResponse())
    await ctx.memory_save("t", ttl=ttl)
    assert fake.requests[0].ttl.ToTimedelta() == timedelta(seconds=90)


async def test_query_takes_a_mapping_a_string_or_keywords(
    fake: Fake, ctx: loombridge.Client
) -> None:
    fake.on(_rpc.MEMORY_QUERY, memory_pb2.MemoryQueryResponse())
    await ctx.memory_query({"query": "price", "limit": 5, "mode": "lexical"})
    await ctx.memory_query("price", limit=5, mode="lexical")
    await ctx.memory_query(query="price", limit=5, mode="lexical")
    first, *others = fake.requests
    assert first == memory_pb2.MemoryQueryRequest(
        agent_id="a1",
        query="price",
        limit=5,
        mode=memory_pb2.QUERY_MODE_LEXICAL,
    )
    assert others == [first, first]


def test_connect_refuses_what_it_cannot_use() -> None:
    wrong = cast("Any", loombridge.connect)
    for address in ("", "localhost", ":50051", "http://host:1", "host:port", "host:70000"):
        with pytest.raises(ValueError, match="address must be"):
            wrong(address, agent_id="a")
    with pytest.raises(TypeError, match="agent_id"):
        wrong("h:1")
    with pytest.raises(ValueError, match="agent_id must not be empty"):
        wrong("h:1", agent_id="")
    with pytest.raises(TypeError, match="session_id must be a str"):
        wrong("h:1", agent_id="a", session_id=7)
    with pytest.raises(ValueError, match="timeout must be more than zero"):
        wrong("h:1", agent_id="a", timeout=-1)
