"""mem0's synchronous memory: the asynchronous one, on an event loop in a separate thread."""

import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from loombridge import _background, _connect, _extract, _values
from loombridge.mem0 import _memories


class Memory:
    """mem0's `Memory`: the same methods, arguments and results; see `AsyncMemory`.

    Any thread may use it, also where an event loop runs.
    """

    def __init__(
        self,
        server: str | None = None,
        *,
        agent: str = _memories.AGENT,
        model: _extract.Model | None = None,
        token: str | None = None,
        tls: _connect.Tls | bool | None = None,
        timeout: _values.Seconds = 30.0,
    ) -> None:
        """Keep the settings; the first call connects. See `AsyncMemory`."""
        self._it = _memories.AsyncMemory(
            server, agent=agent, model=model, token=token, tls=tls, timeout=timeout
        )
        self._background = _background.Background("loombridge-mem0", "the memory")
        self._end = weakref.finalize(self, self._background.close, self._it.close)

    def add(
        self,
        messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = False,
    ) -> dict[str, Any]:
        """Keep messages as memories: each as it stands, or what the model makes of them."""
        return self._background.call(
            lambda: self._it.add(
                messages,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                metadata=metadata,
                infer=infer,
            )
        )

    def search(
        self,
        query: str,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        top_k: int = _memories.TOP_K,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
        threshold: float | None = _memories.THRESHOLD,
    ) -> dict[str, Any]:
        """Find memories, the best first."""
        return self._background.call(
            lambda: self._it.search(
                query,
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                top_k=top_k,
                limit=limit,
                filters=filters,
                threshold=threshold,
            )
        )

    def get(self, memory_id: str) -> dict[str, Any] | None:
        """Return a memory, None if the id is unknown."""
        return self._background.call(lambda: self._it.get(memory_id))

    def get_all(
        self,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        top_k: int = _memories.TOP_K,
        limit: int | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return memories, in the order in which they were added."""
        return self._background.call(
            lambda: self._it.get_all(
                user_id=user_id,
                agent_id=agent_id,
                run_id=run_id,
                top_k=top_k,
                limit=limit,
                filters=filters,
            )
        )

    def update(
        self,
        memory_id: str,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        data: str | None = None,
    ) -> dict[str, str]:
        """Change the text of a memory, and members of its metadata; the others stay."""
        return self._background.call(lambda: self._it.update(memory_id, text, metadata, data=data))

    def delete(self, memory_id: str) -> dict[str, str]:
        """Delete a memory, and its history."""
        return self._background.call(lambda: self._it.delete(memory_id))

    def delete_all(
        self,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
    ) -> dict[str, str]:
        """Delete all memories of a user, an agent or a run, and the messages they come from."""
        return self._background.call(lambda: self._it.delete_all(user_id, agent_id, run_id))

    def history(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the history of a memory, oldest first; empty for a deleted one."""
        return self._background.call(lambda: self._it.history(memory_id))

    def reset(self) -> None:
        """Delete all memories of the agent, whosever they are."""
        self._background.call(self._it.reset)

    def close(self) -> None:
        """End the connection and the thread; twice is fine."""
        self._end()

    def __enter__(self) -> Self:
        """Return it itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the connection."""
        self.close()
