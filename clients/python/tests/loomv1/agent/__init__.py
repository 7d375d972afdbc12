"""Agent, its context, its envelope, its client."""

from loomv1.agent.base import Agent
from loomv1.agent.core import BridgeClient, ToolCall, ToolError, ToolResult
from loomv1.agent.event import Envelope, EventContext
from loomv1.agent.tools import tool

__all__ = [
    "Agent",
    "BridgeClient",
    "Envelope",
    "EventContext",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "tool",
]
