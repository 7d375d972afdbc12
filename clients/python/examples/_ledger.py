"""What the server acknowledged, and the proof that it still has all of it."""

import hashlib
from dataclasses import dataclass, field

import loombridge
from _patience import insist


@dataclass(frozen=True)
class Blob:
    """An offloaded result and the hash its bytes had when it was made."""

    path: str
    step_id: str
    ref: str
    sha256: str


@dataclass(frozen=True)
class Memory:
    """A saved record and a question that should find it."""

    record_id: str
    text: str
    question: str
    path: str = "."


@dataclass
class Ledger:
    """Everything acknowledged, as the agent noted it at the time."""

    steps: list[str] = field(default_factory=list[str])
    blobs: list[Blob] = field(default_factory=list[Blob])
    memories: list[Memory] = field(default_factory=list[Memory])
    events: list[int] = field(default_factory=list[int])
    prompts: list[int] = field(default_factory=list[int])
    billed: float = 0.0
    """What the prompts should cost, in units of one input token."""
    append_only: float = 0.0
    """The same with nothing folded."""


@dataclass
class Proof:
    """What was found again, and a sentence for each thing that was not."""

    blobs: int = 0
    memories: int = 0
    faults: list[str] = field(default_factory=list[str])


def sha256(data: bytes) -> str:
    """Return the SHA-256 of data, in hex."""
    return hashlib.sha256(data).hexdigest()


async def verify(ctx: loombridge.Client, ledger: Ledger) -> Proof:
    """Ask the server for everything in the ledger again."""
    proof = Proof()
    recorded = [step.id async for step in ctx.context.all_steps()]
    if recorded != ledger.steps:
        proof.faults.append(f"the log has the steps {recorded}, not {ledger.steps}")
    for blob in ledger.blobs:
        proof.blobs += await _verify_blob(ctx, blob, proof)
    for memory in ledger.memories:
        proof.memories += await _verify_memory(ctx, memory, proof)
    return proof


async def _verify_blob(ctx: loombridge.Client, blob: Blob, proof: Proof) -> bool:
    faults: list[str] = []
    for name in (blob.path, blob.step_id, blob.ref):
        try:
            data = await insist(lambda name=name: ctx.context.read_blob(name))
        except loombridge.LoomBridgeError as err:
            faults.append(f"{name} can't be read: {err}")
            continue
        if sha256(data) != blob.sha256:
            faults.append(f"{name} has other bytes than when it was made")
    proof.faults += faults
    return not faults


async def _verify_memory(ctx: loombridge.Client, memory: Memory, proof: Proof) -> bool:
    hits = await insist(lambda: ctx.memory_query({"query": memory.question, "limit": 5}))
    found = [hit.record for hit in hits if hit.record.id == memory.record_id]
    if not found:
        proof.faults.append(f"no memory answers {memory.question!r}")
    elif found[0].text != memory.text:
        proof.faults.append(f"the memory {memory.record_id} has another text")
    else:
        return True
    return False
