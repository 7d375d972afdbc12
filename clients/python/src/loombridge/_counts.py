"""What a memory holds, in numbers."""

from dataclasses import dataclass

from loombridge.v1 import memory_pb2 as pb


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The vectors of one model in a memory."""

    name: str
    """The space."""
    dimension: int
    """How many numbers a vector has."""
    vectors: int
    """How many records have one."""


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Counts of one memory."""

    records: int
    """How many there are, those expired or replaced included."""
    unpacked: int
    """How many are not packed into a segment of the index yet."""
    segments: int
    """How many packed pieces the index has."""
    spaces: tuple[EmbeddingSpace, ...]
    """The embedding spaces of the records' vectors."""
    embedder_space: str
    """The space of the server's embedder; empty without one."""
    pending: int
    """How many records wait for a vector of the embedder."""
    archived: int = 0
    """How many records lie in the archive; they count in `records`, too."""


def stats(m: pb.MemoryStats) -> MemoryStats:
    """Return the counts as users see them."""
    return MemoryStats(
        records=m.records,
        unpacked=m.unpacked,
        segments=m.segments,
        spaces=tuple(
            EmbeddingSpace(name=s.name, dimension=s.dimension, vectors=s.vectors) for s in m.spaces
        ),
        embedder_space=m.embedder_space,
        pending=m.pending,
        archived=m.archived,
    )
