"""Vectors without a model: texts that share letters are near each other."""

from collections import Counter
from typing import Any, cast

import pytest
from langgraph.store.base import Embeddings, IndexConfig

DIMS = 96


class Letters(Embeddings):
    """Counts the letters of a text."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        counts = Counter(ord(letter) % DIMS for letter in text.lower())
        return [float(counts[i]) for i in range(DIMS)]


def near(score: float) -> Any:
    """Return what equals a score but for what single precision drops."""
    return cast("Any", pytest).approx(score, abs=1e-5)


def letters(*fields: str) -> IndexConfig:
    """Return an index by letters; without fields of the whole value."""
    config: IndexConfig = {"dims": DIMS, "embed": Letters()}
    if fields:
        config["fields"] = list(fields)
    return config
