"""Agents of the A2A SDK call ours, and are called by ours."""

# pyright: basic
# The SDK is typed in part.

import asyncio

import pytest

pytest.importorskip("a2a.client", reason="the A2A SDK is not installed")

import grpc.aio
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.grpc_handler import GrpcHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as a2a
from a2a.types.a2a_pb2_grpc import A2AServiceStub, add_A2AServiceServicer_to_server
from a2a.utils.errors import TaskNotFoundError, UnsupportedOperationError

import loombridge
from conftest import EXAMPLES
from interpreters import run
from loombridge import testing


class Shout(AgentExecutor):
    """An agent of the SDK: it says what it hears, louder."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message
        assert context.task_id
        assert context.context_id
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.add_artifact(parts=[a2a.Part(text=context.get_user_input().upper())])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise AssertionError


def client_of(card: a2a.AgentCard) -> Client:
    config = ClientConfig(
        grpc_channel_factory=grpc.aio.insecure_channel, supported_protocol_bindings=["GRPC"]
    )
    return ClientFactory(config).create(card)


def message(text: str, task: str = "") -> a2a.SendMessageRequest:
    said = a2a.Message(
        message_id="1", task_id=task, role=a2a.ROLE_USER, parts=[a2a.Part(text=text)]
    )
    return a2a.SendMessageRequest(message=said)


async def card_of(address: str, agent: str) -> a2a.AgentCard:
    async with grpc.aio.insecure_channel(address) as channel:
        request = a2a.GetExtendedAgentCardRequest(tenant=agent)
        return await A2AServiceStub(channel).GetExtendedAgentCard(request)


# N16
async def test_the_example(srv: testing.Server) -> None:
    code, output = await run(EXAMPLES / "frameworks" / "a2a_agent.py", LOOM_BRIDGE_ADDR=srv.address)
    assert code == 0, output
    assert output.splitlines() == [
        "card: helper · It speaks up · shouting",
        "artifact: TO BE OR NOT TO BE",
        "TASK_STATE_COMPLETED 6 words",
    ]


# N16
async def test_ours_calls_one_of_the_sdk_for_one_of_the_sdk(srv: testing.Server) -> None:
    theirs = a2a.AgentCard(
        name="shout",
        description="It speaks up",
        version="1",
        capabilities=a2a.AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[a2a.AgentSkill(id="shout", name="shout", description="It shouts", tags=["loud"])],
    )
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    at = a2a.AgentInterface(
        url=f"127.0.0.1:{port}", protocol_binding="GRPC", protocol_version="1.0"
    )
    theirs.supported_interfaces.append(at)
    handler = DefaultRequestHandler(
        agent_executor=Shout(), task_store=InMemoryTaskStore(), agent_card=theirs
    )
    add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    await server.start()
    async with loombridge.connect(srv.address, agent_id="relay") as ctx:

        @ctx.subscribe("agent.relay.a2a.*", event_types=["a2a.message"])
        async def on_task(event: loombridge.Event) -> None:
            heard = client_of(theirs).send_message(message(event.payload["parts"][0]["text"]))
            async for got in heard:
                if got.HasField("artifact_update"):
                    said = got.artifact_update.artifact.parts[0].text
                    await ctx.emit(event.topic, said, type="a2a.artifact")
            await ctx.reply(event)

        await ctx.attach()
        got = [
            each
            async for each in client_of(await card_of(srv.address, "relay")).send_message(
                message("hello")
            )
        ]
    await server.stop(None)
    assert got[0].task.status.state == a2a.TASK_STATE_SUBMITTED
    assert got[1].artifact_update.artifact.parts[0].text == "HELLO"
    assert got[-1].status_update.status.state == a2a.TASK_STATE_COMPLETED


# N16
async def test_what_the_sdk_makes_of_refusals_and_questions(srv: testing.Server) -> None:
    async with loombridge.connect(srv.address, agent_id="asker") as ctx:

        @ctx.subscribe("agent.asker.a2a.*", event_types=["a2a.message"])
        async def on_task(event: loombridge.Event) -> None:
            match event.payload["parts"][0]["text"]:
                case "ask":
                    await ctx.emit(event.topic, "which?", type="a2a.input_required")
                case "raise":
                    raise ValueError("it can't be done")
                case text:
                    await ctx.reply(event, text)

        await ctx.attach()
        client = client_of(await card_of(srv.address, "asker"))
        async with asyncio.timeout(60):
            *_, asked = [each async for each in client.send_message(message("ask"))]
            assert asked.status_update.status.state == a2a.TASK_STATE_INPUT_REQUIRED
            task = asked.status_update.task_id
            *_, done = [each async for each in client.send_message(message("that", task))]
            assert done.status_update.status.message.parts[0].text == "that"
            with pytest.raises(UnsupportedOperationError):
                _ = [each async for each in client.send_message(message("more", task))]
            with pytest.raises(TaskNotFoundError):
                await client.get_task(a2a.GetTaskRequest(id="nope"))
            *_, failed = [each async for each in client.send_message(message("raise"))]
            assert failed.status_update.status.state == a2a.TASK_STATE_FAILED
            assert "it can't be done" in failed.status_update.status.message.parts[0].text
