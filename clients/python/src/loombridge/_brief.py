"""How answers are shown at a prompt and in a log: in short."""

import dataclasses
import reprlib
from typing import Any

SHOWN_TEXT = 200
"""Characters of a text in the repr of an answer; longer ones are cut in their middle."""

SHOWN_ITEMS = 5
"""Items of a list or a mapping there."""

SHOWN_DEPTH = 4
"""Levels of lists and mappings within each other there."""


class Brief:
    """A dataclass whose repr has a bounded length, whatever its fields hold."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Name the fields with the beginning and the end of what is long."""
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(self)  # pyright: ignore[reportArgumentType]  # subclasses are dataclasses
        shown = (f"{each.name}={_SHORT.repr(getattr(self, each.name))}" for each in fields)
        return f"{type(self).__qualname__}({', '.join(shown)})"


class _Short(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = SHOWN_TEXT
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = SHOWN_ITEMS
        self.maxlevel = SHOWN_DEPTH

    def repr_instance(self, x: Any, level: int) -> str:
        # The repr of another answer is bounded already, and would be cut once more.
        return repr(x) if isinstance(x, Brief) else super().repr_instance(x, level)

    def repr_bytes(self, x: bytes, _level: int) -> str:
        # reprlib would write out all of it first.
        half = self.maxstring // 4
        return repr(x) if len(x) <= 2 * half else f"{x[:half]!r}...{x[-half:]!r}"


_SHORT = _Short()
