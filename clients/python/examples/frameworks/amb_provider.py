"""Runs the Agent Memory Benchmark (AMB) on a server, with the arguments of its command `amb`.

In a checkout of the benchmark, with the key of the model that answers and judges:

    GEMINI_API_KEY=... uv run --with "loombridge[server]" python amb_provider.py \
        run --dataset locomo --split locomo10 --memory loom-bridge

Each user of a dataset is a person, whose memory has a record for each message, or for each
document without messages. A run that ingests begins with empty memories. The server is that of
the run's folder, which is started, unless LOOM_BRIDGE_ADDR names another.
"""

import contextlib
import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory_bench.memory import REGISTRY
from memory_bench.memory.base import MemoryProvider
from memory_bench.models import Document

import loombridge
import loombridge.sync

RUN = "loom-bridge-run"
"""The file of a run's folder that says which memories are its own."""

TEXT_CHARS = 60_000
"""Characters that a record has at most; a longer text is several."""


class LoomBridgeProvider(MemoryProvider):
    """A `MemoryProvider` of the benchmark."""

    name = "loom-bridge"
    description = "Loom Bridge: what was said as it was said, found by words and vectors."
    kind = "local"
    concurrency = 8

    def __init__(self) -> None:
        """Start nothing yet."""
        self._open = contextlib.ExitStack()
        self._run = ""
        self._ctx: loombridge.sync.Client

    def prepare(
        self, store_dir: Path, unit_ids: set[str] | None = None, reset: bool = True
    ) -> None:
        """Connect, to memories that are empty unless the run goes on with what is there."""
        self.cleanup()
        store_dir.mkdir(parents=True, exist_ok=True)
        run = store_dir / RUN
        if reset or not run.exists():
            run.write_text(uuid.uuid4().hex)
        self._run = run.read_text()
        self._ctx = self._open.enter_context(loombridge.sync.local(store_dir, agent_id="amb"))

    def cleanup(self) -> None:
        """Disconnect, and end the server if it was started."""
        self._open.close()

    def ingest(self, documents: list[Document]) -> None:
        """Save what documents say. The same document again adds nothing."""
        for document in documents:
            at = moment(document.timestamp)
            about = {"document": document.id, "timestamp": document.timestamp}
            drafts = [
                loombridge.RecordDraft(text=text, kind="message", event_time=at, metadata=about)
                for text in texts(document)
            ]
            if drafts:
                user = self._user(document.user_id)
                request = uuid.uuid5(uuid.NAMESPACE_OID, f"{user}|{document.id}").hex
                self._ctx.memory.save_many(drafts, user_id=user, request_id=request)

    def retrieve(
        self,
        query: str,
        k: int = 10,
        user_id: str | None = None,
        query_timestamp: str | None = None,
    ) -> tuple[list[Document], dict[str, Any] | None]:
        """Return what answers a query, the best first."""
        hits = self._ctx.memory_query(query, limit=k, user_id=self._user(user_id), mode="hybrid")
        found: list[Document] = []
        for hit in hits:
            said, when = hit.record.metadata["document"], hit.record.metadata["timestamp"]
            text = f"[{when}] {hit.text}" if when else hit.text
            found.append(Document(id=said, content=text, user_id=user_id, timestamp=when))
        return found, None  # What else is given stands in prompts in the place of the documents.

    def _user(self, user_id: str | None) -> str:
        return f"{self._run}|{user_id or ''}"


def texts(document: Document) -> list[str]:
    """Return what a document says: each message, with who says it, or else its text."""
    messages: Any = document.messages
    if not messages and document.content.lstrip().startswith("["):
        with contextlib.suppress(ValueError):
            messages = json.loads(document.content)
    said = [document.content]
    if messages and all(isinstance(each, dict) for each in messages):
        said = [message(each) for each in messages]
    parts = [text[at : at + TEXT_CHARS] for text in said for at in range(0, len(text), TEXT_CHARS)]
    return [text for text in parts if text.strip()]


def message(given: dict[str, Any]) -> str:
    """Return what a message says, by whom, as LongMemEval or LoCoMo have it; it may be nothing."""
    text = given.get("content") or given.get("text") or ""
    if caption := given.get("blip_caption"):
        text = f"{text} [image: {caption}]"
    return f"{given.get('role') or given.get('speaker')}: {text}" if text else ""


def moment(timestamp: str | None) -> datetime | None:
    """Return a time in UTC; None: it is none that ISO 8601 knows."""
    with contextlib.suppress(ValueError):
        at = datetime.fromisoformat(timestamp or "")
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    return None


REGISTRY["loom-bridge"] = LoomBridgeProvider

if __name__ == "__main__":
    from memory_bench.cli import app

    app()
