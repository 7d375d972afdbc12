"""How an agent outlives its server: it makes the same call again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import loombridge

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds to wait for a server that went away."""

AGAIN = (
    loombridge.ServerUnreachableError,
    loombridge.ShuttingDownError,
    loombridge.OutcomeUnknownError,
)
"""Errors that leave it unknown whether the call took effect."""


async def insist(call: Callable[[], Awaitable[T]]) -> T:
    """Make a call until a server answers it.

    Only for calls that read or carry a request_id: with one, a call that took
    effect before the server died gives its first answer and does nothing more.
    """
    give_up = time.monotonic() + PATIENCE
    while True:
        try:
            return await call()
        except AGAIN:
            if time.monotonic() > give_up:
                raise
            await asyncio.sleep(0.2)
