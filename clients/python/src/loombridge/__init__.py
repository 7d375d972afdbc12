"""Asynchronous client of Loom Bridge: memory, context, tools and events for agents.

    async with loombridge.connect("127.0.0.1:50051", agent_id="researcher-1") as ctx:
        await ctx.memory_save("Bitcoin closed at 45,000", metadata={"source": "desk"})
        hits = await ctx.memory_query({"query": "Bitcoin price", "limit": 5})

What comes back are frozen dataclasses. What goes wrong is a `LoomBridgeError`, one
subclass per reason. The generated protobuf modules stand in `loombridge.v1`, and
`loombridge.testing` starts a server for tests.
"""

from loombridge._agent import Agent, Listener
from loombridge._client import Client, Status
from loombridge._connect import Connecting, Tls, connect
from loombridge._context import Context
from loombridge._errors import (
    AgentNotOwnedError,
    BlobDamagedError,
    BlobNotFoundError,
    CallCancelledError,
    ClientClosedError,
    ContextOverflowError,
    DeadlineExceededError,
    FieldViolation,
    InternalError,
    InvalidArgumentsError,
    InvalidFilterError,
    InvalidRequestError,
    LoomBridgeError,
    NoEmbedderError,
    OutcomeUnknownError,
    OverloadedError,
    PositionUnknownError,
    RecordExistsError,
    RecordNotFoundError,
    RequestIdReusedError,
    ReservedTopicError,
    ServerUnreachableError,
    ShuttingDownError,
    SlowConsumerError,
    StepNotFoundError,
    StorageFullError,
    StoreFailedError,
    TooLargeError,
    ToolFailedError,
    ToolNotFoundError,
    UnauthenticatedError,
)
from loombridge._events import Emitted, Event, Events, Subscription
from loombridge._memory import Hit, Hits, Memory, Origin, QueryMode, QueryReceipt, Record, Saved
from loombridge._places import QualityOfService
from loombridge._prompt import (
    Message,
    Prompt,
    PromptFormat,
    Role,
    TokenCount,
    ToolCall,
    ToolDefinition,
)
from loombridge._steps import BlobInfo, BlobStream, RecordedStep, Step
from loombridge._tools import ToolFailure, ToolInfo, ToolResult, Tools, ToolVerb
from loombridge._values import JsonValue, Seconds

__all__ = [
    "Agent",
    "AgentNotOwnedError",
    "BlobDamagedError",
    "BlobInfo",
    "BlobNotFoundError",
    "BlobStream",
    "CallCancelledError",
    "Client",
    "ClientClosedError",
    "Connecting",
    "Context",
    "ContextOverflowError",
    "DeadlineExceededError",
    "Emitted",
    "Event",
    "Events",
    "FieldViolation",
    "Hit",
    "Hits",
    "InternalError",
    "InvalidArgumentsError",
    "InvalidFilterError",
    "InvalidRequestError",
    "JsonValue",
    "Listener",
    "LoomBridgeError",
    "Memory",
    "Message",
    "NoEmbedderError",
    "Origin",
    "OutcomeUnknownError",
    "OverloadedError",
    "PositionUnknownError",
    "Prompt",
    "PromptFormat",
    "QualityOfService",
    "QueryMode",
    "QueryReceipt",
    "Record",
    "RecordExistsError",
    "RecordNotFoundError",
    "RecordedStep",
    "RequestIdReusedError",
    "ReservedTopicError",
    "Role",
    "Saved",
    "Seconds",
    "ServerUnreachableError",
    "ShuttingDownError",
    "SlowConsumerError",
    "Status",
    "Step",
    "StepNotFoundError",
    "StorageFullError",
    "StoreFailedError",
    "Subscription",
    "Tls",
    "TokenCount",
    "TooLargeError",
    "ToolCall",
    "ToolDefinition",
    "ToolFailedError",
    "ToolFailure",
    "ToolInfo",
    "ToolNotFoundError",
    "ToolResult",
    "ToolVerb",
    "Tools",
    "UnauthenticatedError",
    "connect",
]
