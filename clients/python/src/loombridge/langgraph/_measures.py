"""How near two vectors are: what `distance_type` of an index names."""

import math
from collections.abc import Callable, Mapping, Sequence
from operator import mul, sub
from typing import TypeAlias

Vector: TypeAlias = Sequence[float]
Measure: TypeAlias = Callable[[Vector, Vector], float]
"""Returns how near two vectors are: the more, the nearer."""


def cosine(a: Vector, b: Vector) -> float:
    """Return how near two vectors are, from -1 to 1; 0 when one has no direction."""
    length = math.sqrt(inner_product(a, a) * inner_product(b, b))
    return inner_product(a, b) / length if length > 0 else 0.0


def inner_product(a: Vector, b: Vector) -> float:
    """Return the product of two vectors."""
    return sum(map(mul, a, b))


def negative_distance(a: Vector, b: Vector) -> float:
    """Return the distance of two vectors, below zero."""
    return -math.hypot(*map(sub, a, b))


BY_NAME: Mapping[str, Measure] = {
    "cosine": cosine,
    "inner_product": inner_product,
    "l2": negative_distance,
}
"""The measures, as LangGraph's stores on databases name them."""
