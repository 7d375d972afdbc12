"""Written by .ci/sync_face.py (`make generate-sync`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations

from loombridge import _spelling
from loombridge.sync._face.memory import Memory


@_spelling.helpful
class SpaceMemory(Memory):
    """The records of a space, made by `ctx.spaces.open`: `ctx.memory` for that space."""
