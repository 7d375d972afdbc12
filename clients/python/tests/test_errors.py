"""Errors: a subclass per reason, with fields, raised from the RPC's own error."""

import asyncio
import pickle
from collections.abc import AsyncGenerator
from typing import Any

import grpc
import pytest

import loombridge
from fake import Call, Fake, refuse
from loombridge import _reasons, _rpc
from loombridge.v1 import admin_pb2, errors_pb2


def reasons() -> list[str]:
    enum = errors_pb2.ErrorReason.DESCRIPTOR
    return [v.name.removeprefix("ERROR_REASON_") for v in enum.values if v.number != 0]


def test_every_reason_has_its_own_public_class() -> None:
    classes = [_reasons.BY_REASON[reason] for reason in reasons()]
    assert len(set(classes)) == len(classes)
    assert set(_reasons.BY_REASON) == set(reasons())
    for kind in classes:
        assert issubclass(kind, loombridge.LoomBridgeError)
        assert kind is not loombridge.LoomBridgeError
        assert getattr(loombridge, kind.__name__) is kind


@pytest.mark.parametrize("reason", reasons())
async def test_reason_on_the_wire_becomes_its_class(
    fake: Fake, ctx: loombridge.Client, reason: str
) -> None:
    async def answer(_request: Any, call: Call) -> Any:
        await refuse(
            call, grpc.StatusCode.FAILED_PRECONDITION, "why", reason=reason, metadata={"k": "v"}
        )

    fake.on(_rpc.MEMORY_SAVE, answer)
    with pytest.raises(_reasons.BY_REASON[reason], match="why") as caught:
        await ctx.memory_save("text")
    assert caught.value.reason == reason
    assert caught.value.code == "FAILED_PRECONDITION"
    assert caught.value.metadata == {"k": "v"}
    assert caught.value.__cause__ is None, "the sentence that helps stands alone"


async def test_violations_come_with_the_error(fake: Fake, ctx: loombridge.Client) -> None:
    async def answer(_request: Any, call: Call) -> Any:
        await refuse(
            call,
            grpc.StatusCode.INVALID_ARGUMENT,
            "server: invalid request: text is required",
            reason="INVALID_REQUEST",
            violations=[("text", "is required"), ("tags[0]", "is empty")],
        )

    fake.on(_rpc.MEMORY_SAVE, answer)
    with pytest.raises(loombridge.InvalidRequestError) as caught:
        await ctx.memory_save("")
    assert caught.value.violations == (
        loombridge.FieldViolation("text", "is required"),
        loombridge.FieldViolation("tags[0]", "is empty"),
    )
    assert str(caught.value) == "server: invalid request: text is required; tags[0] is empty"


async def test_overflow_names_the_largest_part(fake: Fake, ctx: loombridge.Client) -> None:
    async def answer(_request: Any, call: Call) -> Any:
        await refuse(
            call,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "too long",
            reason="CONTEXT_OVERFLOW",
            metadata={
                "part": "history",
                "part_tokens": "9000",
                "total_tokens": "9100",
                "max_tokens": "8192",
            },
        )

    fake.on(_rpc.ASSEMBLE, answer)
    with pytest.raises(loombridge.ContextOverflowError) as caught:
        await ctx.context.assemble(goal="go")
    err = caught.value
    assert (err.part, err.part_tokens, err.total_tokens, err.max_tokens) == (
        "history",
        9000,
        9100,
        8192,
    )


def test_details_that_are_missing_or_odd_are_empty() -> None:
    overflow = loombridge.ContextOverflowError("x", metadata={"part_tokens": "many"})
    assert (overflow.part, overflow.part_tokens, overflow.max_tokens) == ("", 0, 0)
    assert loombridge.ToolNotFoundError("x").nearest == ""
    assert loombridge.ToolNotFoundError("x", metadata={"nearest": "fs:stat"}).nearest == "fs:stat"
    assert loombridge.InvalidArgumentsError("x").schema is None
    assert loombridge.InvalidArgumentsError("x", metadata={"schema": "{cut"}).schema is None
    told = loombridge.InvalidArgumentsError("x", metadata={"schema": '{"type":"object"}'})
    assert told.schema == {"type": "object"}


async def test_reason_of_a_newer_server_is_the_base_class(
    fake: Fake, ctx: loombridge.Client
) -> None:
    async def answer(_request: Any, call: Call) -> Any:
        await refuse(call, grpc.StatusCode.ABORTED, "new", reason="BRAND_NEW")

    fake.on(_rpc.EMIT, answer)
    with pytest.raises(loombridge.LoomBridgeError) as caught:
        await ctx.emit("topic")
    assert type(caught.value) is loombridge.LoomBridgeError
    assert caught.value.reason == "BRAND_NEW"


async def test_deadline_of_the_client(fake: Fake, ctx: loombridge.Client) -> None:
    async def answer(_request: Any, _call: Call) -> Any:
        await asyncio.sleep(60)

    fake.on(_rpc.GET_STATUS, answer)
    with pytest.raises(loombridge.DeadlineExceededError):
        await ctx.status(timeout=0.05)


async def test_no_server_says_what_to_do() -> None:
    with pytest.raises(loombridge.ServerUnreachableError) as caught:
        await loombridge.connect("127.0.0.1:1", agent_id="a", wait=0)
    assert "Is one running there" in str(caught.value)
    assert "loom-bridge-server --addr 127.0.0.1:1" in str(caught.value)


def test_errors_survive_pickling() -> None:
    err = loombridge.InvalidRequestError(
        "m",
        reason="INVALID_REQUEST",
        code="INVALID_ARGUMENT",
        metadata={"a": "b"},
        violations=[loombridge.FieldViolation("f", "d")],
    )
    again = pickle.loads(pickle.dumps(err))  # noqa: S301  our own bytes
    assert vars(again) == vars(err)


async def test_a_server_of_another_api(fake: Fake, ctx: loombridge.Client) -> None:
    async def answer(_request: Any, call: Call) -> Any:
        text = "unknown service loombridge.v1.AdminService"
        await refuse(call, grpc.StatusCode.UNIMPLEMENTED, text)

    fake.on(_rpc.GET_STATUS, answer)
    with pytest.raises(loombridge.WrongAddressError) as caught:
        await ctx.status()
    assert f"{fake.address} does not serve loombridge.v1" in str(caught.value)
    assert "attach(agent, address=..., token=...)" in str(caught.value)
    assert caught.value.__cause__ is None


async def test_an_older_server_says_its_version(fake: Fake, ctx: loombridge.Client) -> None:
    async def unknown(_request: Any, call: Call) -> Any:
        text = "unknown service loombridge.v1.SharingService"
        await refuse(call, grpc.StatusCode.UNIMPLEMENTED, text)

    async def hidden(_request: Any, call: Call) -> Any:
        await refuse(call, grpc.StatusCode.PERMISSION_DENIED, "who are you?", reason="NOT_ADMIN")

    async def reembedded(_request: Any, call: Call) -> AsyncGenerator[Any, None]:
        await refuse(call, grpc.StatusCode.UNIMPLEMENTED, "unknown method Reembed")
        yield

    fake.on(_rpc.GET_STATUS, admin_pb2.GetStatusResponse(version="0.0.9"))
    fake.on(_rpc.CREATE_SPACE, unknown)
    fake.on_stream(_rpc.REEMBED, reembedded)
    with pytest.raises(loombridge.ServerTooOldError) as caught:
        await ctx.spaces.create("team")
    assert str(caught.value) == (
        f"the server at {fake.address} is version 0.0.9, and too old for this call: "
        "unknown service loombridge.v1.SharingService"
    )
    assert caught.value.code == "UNIMPLEMENTED"
    with pytest.raises(loombridge.ServerTooOldError, match="unknown method Reembed"):
        await anext(aiter(ctx.memory.reembed()))
    fake.on(_rpc.GET_STATUS, hidden)
    with pytest.raises(loombridge.ServerTooOldError, match="a version that it does not tell"):
        await ctx.spaces.create("team")
