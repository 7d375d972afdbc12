"""A memory block of LlamaIndex whose messages are records of long-term memory.

    from loombridge.llama_index import LoomBridgeMemoryBlock

    block = LoomBridgeMemoryBlock("127.0.0.1:50051", user_id="ann")
    memory = Memory.from_defaults(session_id="s1", memory_blocks=[block], token_limit=8_000)
    await agent.run("What did I say about pears?", memory=memory)

What no longer fits the short-term memory is saved; what fits a question stands in its prompt,
of whichever session it is. Install it with `pip install "loombridge[llama-index]"`.
"""

from collections.abc import Callable
from typing import Any, Unpack, cast

try:
    from llama_index.core.base.llms.types import ChatMessage, TextBlock
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.utils import get_tokenizer  # pyright: ignore[reportUnknownVariableType]
    from pydantic import Field, PrivateAttr
except ModuleNotFoundError as err:
    if (err.name or "").partition(".")[0] not in ("llama_index", "pydantic"):
        raise
    raise ImportError(
        'loombridge.llama_index needs LlamaIndex: pip install "loombridge[llama-index]"'
    ) from err

from loombridge import _client, _loops, _records

__all__ = ["LoomBridgeMemoryBlock"]

AGENT = "llama-index"
"""The default owner of the records."""

KIND = "llama_index.message"
"""The kind of a message's record."""

ASKED = 5
"""Messages that a question is made of: the last ones, as in LlamaIndex's own block."""

QUESTION_CHARS = 4_000
"""Characters of it."""


class LoomBridgeMemoryBlock(_loops.Adapter, BaseMemoryBlock[str]):
    """A `BaseMemoryBlock` of LlamaIndex; close it, or use it in an `async with` block.

    Any thread and any event loop may use it, and several processes the same memory.
    """

    name: str = Field(default="LongTermMemory", description="The name of the memory block.")

    _max_tokens: int = PrivateAttr()
    _user_id: str | None = PrivateAttr()
    _loop: _loops.Loop = PrivateAttr()
    _end: Any = PrivateAttr()

    def __init__(
        self,
        server: _client.Client | str | None = None,
        *,
        agent_id: str | None = None,
        user_id: str | None = None,
        max_tokens: int = 1_000,
        name: str = "LongTermMemory",
        priority: int = 1,
        **connection: Unpack[_loops.Connection],
    ) -> None:
        """Keep the settings; the first call connects.

        Args:
            server: `host:port` or `unix:/path`; default: the environment variable
                LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051. Or a client, which stays open.
            agent_id: whose memory the messages are in; default `llama-index`, or the client's.
            user_id: keep them in that person's memory instead, which all agents share.
            max_tokens: how much of what is found stands in a prompt at most.
            name: how prompts call the block.
            priority: how late it is shortened where a prompt is too long; 0 for never.
            **connection: `token`, `tls` and `timeout`, as of `loombridge.connect`.
        """
        super().__init__(name=name, priority=priority)
        self._max_tokens = max_tokens
        self._user_id = user_id
        self._open(server, agent_id, AGENT, connection)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """Return what is known of the last messages, a line for each record."""
        question = "\n".join(map(_text, (messages or [])[-ASKED:]))[-QUESTION_CHARS:].strip()

        async def find(ctx: _client.Client) -> str:
            hits = await ctx.memory_query(
                question, user_id=self._user_id, max_tokens=self._max_tokens, limit=100
            )
            return "\n".join(" ".join(hit.text.split()) for hit in hits)

        return await self._loop.acall(find) if question else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Save messages, together or not at all."""
        drafts = [draft for message in messages for draft in _drafts(message)]

        async def save(ctx: _client.Client) -> None:
            await ctx.memory.save_many(drafts, user_id=self._user_id)

        if drafts:
            await self._loop.acall(save)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Leave out the lines that fit worst, until so many tokens are gone."""
        tokens, lines = cast("Callable[[str], list[object]]", get_tokenizer()), content.splitlines()
        left = len(tokens(content)) - tokens_to_truncate
        while lines and len(tokens("\n".join(lines))) > left:
            lines.pop()
        return "\n".join(lines) or None


def _text(message: ChatMessage) -> str:
    return "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock))


def _drafts(message: ChatMessage) -> list[_records.RecordDraft]:
    """Return the record of a message; none where it has no text."""
    # The base class puts it there, and LlamaIndex's own block takes it out again.
    session = message.additional_kwargs.pop("session_id", None)
    text = _text(message).strip()
    if not text:
        return []
    about = {"llama_index": {"role": str(message.role.value)}}
    return [_records.RecordDraft(text=text, kind=KIND, session_id=session, metadata=about)]
