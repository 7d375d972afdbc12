"""Requests and replies of an attached agent, on a fake server."""

import asyncio
import json
from typing import Any

import grpc
import pytest

import loombridge
from fake import Call, Fake, refuse
from fake_attach import NOW, PATIENCE, Attach, Side, until
from loombridge import _rpc
from loombridge.v1 import events_pb2


def requested(fake: Fake) -> Any:
    """Return the last event that was emitted."""
    sent = [each for each in fake.requests if isinstance(each, events_pb2.EmitRequest)]
    return sent[-1] if sent else None


def reply(side: Side, correlation: str, sequence: int = 0, key: str = "correlation_id") -> None:
    side.event(
        "agent.a1.replies",
        sequence,
        id=f"reply-{sequence}",
        headers={key: correlation},
        payload_json='"yes"',
        source="a2",
    )


async def test_a_request_gets_its_reply(
    fake: Fake, agent: loombridge.Client, attach: Attach
) -> None:
    asking = asyncio.create_task(agent.request("math.add", {"a": 1}, headers={"h": "v"}))
    sent = await until(lambda: requested(fake))
    side = await attach.side()
    assert set(side.topics) == {"agent.a1.replies"}
    assert (sent.topic, sent.payload_json) == ("math.add", '{"a":1}')
    assert sent.delivery == events_pb2.DELIVERY_VOLATILE
    assert dict(sent.headers) == {
        "h": "v",
        "reply_to": "agent.a1.replies",
        "correlation_id": sent.event_id,
    }
    reply(side, "somebody else's")
    reply(side, sent.event_id, key="loom.correlation_id")
    answer = await asyncio.wait_for(asking, PATIENCE)
    assert (answer.payload, answer.source) == ("yes", "a2")


async def test_a_requester_does_not_answer_itself(
    fake: Fake, agent: loombridge.Client, attach: Attach
) -> None:
    asking = asyncio.create_task(agent.request("agent.a1.replies"))
    sent = await until(lambda: requested(fake))
    side = await attach.side()
    side.event(
        "agent.a1.replies", 0, id=sent.event_id, headers=dict(sent.headers), payload_json='"echo"'
    )
    reply(side, sent.event_id)
    assert (await asyncio.wait_for(asking, PATIENCE)).payload == "yes"


async def test_a_request_survives_a_break_until_its_timeout(
    fake: Fake, agent: loombridge.Client, attach: Attach
) -> None:
    asking = asyncio.create_task(agent.request("math.add", durable=True, timeout=PATIENCE))
    sent = await until(lambda: requested(fake))
    assert (sent.delivery, sent.request_id) == (events_pb2.DELIVERY_DURABLE, sent.event_id)
    (await attach.side()).end()
    second = await attach.side(2)
    assert second.hello.topics[0].after_sequence == 0
    reply(second, sent.event_id, 1)
    assert (await asking).payload == "yes"


async def test_no_reply(agent: loombridge.Client, attach: Attach) -> None:
    with pytest.raises(loombridge.DeadlineExceededError, match=r"no reply to t within 0\.05 s"):
        await agent.request("t", timeout=0.05)


async def test_a_request_inside_a_handler(
    fake: Fake, agent: loombridge.Client, attach: Attach
) -> None:
    answers: list[Any] = []

    @agent.subscribe("go", at_once=1)
    async def on_go(_event: loombridge.Event) -> None:
        answers.append((await agent.request("math.add")).payload)

    await agent.attach()
    side = await attach.side()
    side.event("go", 1)
    sent = await until(lambda: requested(fake))
    reply(side, sent.event_id)
    await until(lambda: answers == ["yes"])


async def test_a_reply_that_cannot_be_read(
    fake: Fake, agent: loombridge.Client, attach: Attach
) -> None:
    asking = asyncio.create_task(agent.request("t"))
    sent = await until(lambda: requested(fake))
    side = await attach.side()
    side.event(
        "agent.a1.replies", 0, headers={"correlation_id": sent.event_id}, payload_json="9" * 5000
    )
    with pytest.raises(ValueError, match="digits"):
        await asking
    await agent.attach()
    assert len(attach.sides) == 1


@pytest.mark.parametrize(
    ("headers", "topic", "correlation"),
    [
        ({}, "agent.a2.replies", "e1"),
        ({"reply_to": "x", "correlation_id": "c"}, "x", "c"),
        (
            {
                "loom.reply_to": "y",
                "reply_to": "x",
                "loom.correlation_id": "d",
                "correlation_id": "c",
            },
            "y",
            "d",
        ),
    ],
)
async def test_where_a_reply_goes(
    fake: Fake,
    agent: loombridge.Client,
    headers: dict[str, str],
    topic: str,
    correlation: str,
) -> None:
    event = loombridge.Event("e1", "t", 0, "a2", "", NOW, None, headers)
    await agent.reply(event, {"n": 1}, headers={"mine": "1"})
    sent = requested(fake)
    assert (sent.topic, sent.delivery) == (topic, events_pb2.DELIVERY_VOLATILE)
    assert dict(sent.headers) == {
        "mine": "1",
        "correlation_id": correlation,
        "loom.correlation_id": correlation,
    }


async def test_a_reply_is_kept_like_its_request(fake: Fake, agent: loombridge.Client) -> None:
    event = loombridge.Event("e1", "t", 7, "a2", "", NOW, None, {})
    await agent.reply(event)
    assert requested(fake).delivery == events_pb2.DELIVERY_DURABLE
    nobody = loombridge.Event("e1", "t", 0, "", "", NOW, None, {})
    with pytest.raises(ValueError, match="where to reply"):
        await agent.reply(nobody)


async def test_emit_says_type_and_tags(fake: Fake, agent: loombridge.Client) -> None:
    await agent.emit("t", type="kind", tags=["x", "y"])
    assert (requested(fake).type, list(requested(fake).tags)) == ("kind", ["x", "y"])


async def test_an_error_reply_is_the_requests_error(
    fake: Fake, agent: loombridge.Client, attach: Attach
) -> None:
    for payload, text in (('{"error":"the whole text"}', "the whole text"), ("[1]", "short")):
        fake.requests.clear()
        asking = asyncio.create_task(agent.request("t"))
        sent = await until(lambda: requested(fake))
        headers = {"correlation_id": sent.event_id, "error": "short"}
        attach.sides[0].event(
            "agent.a1.replies", 0, headers=headers, payload_json=payload, source="a2"
        )
        with pytest.raises(loombridge.RequestFailedError) as caught:
            await asyncio.wait_for(asking, PATIENCE)
        assert (str(caught.value), caught.value.agent_id) == (text, "a2")


@pytest.mark.parametrize("sequence", [0, 7])
async def test_a_handler_that_raises_has_answered(
    fake: Fake, agent: loombridge.Client, attach: Attach, sequence: int
) -> None:
    @agent.subscribe("math.add")
    def on_add(event: loombridge.Event) -> None:
        raise ValueError(f"no numbers:\n{event.payload}\ud800" + "x" * (1 << 16))

    await agent.attach()
    headers = {"reply_to": "agent.a2.replies", "correlation_id": "c7"}
    attach.sides[0].event("math.add", sequence, payload_json='"a"', headers=headers)
    sent = await until(lambda: requested(fake))
    durable = events_pb2.DELIVERY_DURABLE if sequence else events_pb2.DELIVERY_VOLATILE
    assert (sent.topic, sent.delivery, bool(sent.request_id)) == (
        "agent.a2.replies",
        durable,
        bool(sequence),
    )
    answer = dict(sent.headers)
    assert (answer["correlation_id"], answer["loom.correlation_id"]) == ("c7", "c7")
    assert answer["error"].startswith("no numbers: a?xxx")
    assert len(answer["error"]) <= 1 << 10
    error = json.loads(sent.payload_json)["error"]
    assert error.startswith("no numbers:\na?xxx")
    assert len(error) == 16 << 10


async def test_what_wants_no_reply_gets_none(
    fake: Fake, agent: loombridge.Client, attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    @agent.subscribe("t", at_once=1)
    async def on_event(_event: loombridge.Event) -> None:
        raise ValueError("no")

    await agent.attach()
    attach.sides[0].event("t", 1, headers={"correlation_id": "c"}, source="a2")
    await until(lambda: "failed on an event of t" in caplog.text)
    await asyncio.sleep(0.02)
    assert requested(fake) is None


async def test_an_error_reply_that_is_refused_harms_nobody(
    fake: Fake, agent: loombridge.Client, attach: Attach, caplog: pytest.LogCaptureFixture
) -> None:
    async def refused(_request: Any, call: Call) -> Any:
        await refuse(call, grpc.StatusCode.PERMISSION_DENIED, "not yours")

    fake.on(_rpc.EMIT, refused)

    @agent.subscribe("t", at_once=1)
    async def on_event(_event: loombridge.Event) -> None:
        raise ValueError("no")

    await agent.attach()
    for sequence in (1, 2):
        attach.sides[0].event("t", sequence, headers={"reply_to": "x"})
    await until(lambda: caplog.text.count("no reply to t could be sent: not yours") == 2)
