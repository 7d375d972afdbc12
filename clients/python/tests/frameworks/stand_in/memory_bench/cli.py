"""The command of the benchmark, as far as it needs no model."""

from memory_bench.memory import REGISTRY


def app() -> None:
    """Say which providers there are."""
    print("memory providers:", *REGISTRY)
