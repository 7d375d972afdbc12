"""The providers by name, in which the benchmark looks them up."""

from memory_bench.memory.base import MemoryProvider

REGISTRY: dict[str, type[MemoryProvider]] = {}
