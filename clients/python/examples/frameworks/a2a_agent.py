"""An agent that clients of A2A call: pip install loombridge "a2a-sdk[grpc]"."""

# pyright: basic
# The SDK is typed in part.

import asyncio
import os

import grpc.aio
from a2a.client import ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a
from a2a.types.a2a_pb2_grpc import A2AServiceStub

import loombridge

ADDRESS = os.environ.get("LOOM_BRIDGE_ADDR", "127.0.0.1:50051")


async def ask(agent: str, text: str) -> None:
    """Give an agent a task, as an agent of another maker does."""
    async with grpc.aio.insecure_channel(ADDRESS) as channel:
        request = a2a.GetExtendedAgentCardRequest(tenant=agent)
        card = await A2AServiceStub(channel).GetExtendedAgentCard(request)
        print("card:", card.name, "·", card.description, "·", card.skills[0].name)
        config = ClientConfig(
            grpc_channel_factory=lambda _: channel, supported_protocol_bindings=["GRPC"]
        )
        said = a2a.Message(message_id="1", role=a2a.ROLE_USER, parts=[a2a.Part(text=text)])
        client = ClientFactory(config).create(card)
        async for got in client.send_message(a2a.SendMessageRequest(message=said)):
            if got.HasField("artifact_update"):
                print("artifact:", got.artifact_update.artifact.parts[0].text)
            if got.HasField("status_update"):
                status = got.status_update.status
                print(a2a.TaskState.Name(status.state), *(p.text for p in status.message.parts))


async def main() -> None:
    """Serve tasks, and give one."""
    async with loombridge.connect(ADDRESS, agent_id="helper") as ctx:

        @ctx.subscribe("agent.helper.a2a.*", event_types=["a2a.message"])
        async def on_task(event: loombridge.Event) -> None:
            text = event.payload["parts"][0]["text"]
            await ctx.emit(event.topic, text.upper(), type="a2a.artifact")
            await ctx.reply(event, f"{len(text.split())} words")

        await ctx.attach(metadata={"description": "It speaks up"}, capabilities=["shouting"])
        await ask("helper", "to be or not to be")


if __name__ == "__main__":
    asyncio.run(main())
