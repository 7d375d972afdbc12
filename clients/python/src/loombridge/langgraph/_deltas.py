"""How one value differs from another, in few bytes: what to copy of it, and what is new."""

import struct
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

BLOCK = 64
"""Bytes that are looked for together."""

SAMPLES = 64
"""Places of a long value that are looked at first, so that one that is new takes no time."""

_COUNT = struct.Struct("<I")
_STEP = struct.Struct("<III")
"""Where to copy from, how many bytes, and how many new ones follow them."""


def delta(old: bytes, new: bytes) -> bytes | None:
    """Return what makes new of old; None if much of new is new.

    It takes time with the bytes that differ, and with the length of old.
    """
    places: dict[bytes, int] = {}
    steps: list[tuple[int, int, bytes]] = []
    most, start, size = len(new) // 4, 0, 0
    begin, copied = _alike(old, 0, new, 0, 0)
    while True:
        start += copied
        end, place = start, len(old)
        if start < len(new):
            if not places and not _is_like(places := _places(old), new):
                return None
            end, place = _again(places, new, start)
        # What stands before a block that was found again may be the same, too.
        while end > start and place > 0 and new[end - 1] == old[place - 1]:
            end, place = end - 1, place - 1
        steps.append((begin, copied, new[start:end]))
        size += _STEP.size + end - start
        if size > most:
            return None
        if end == len(new):
            break
        start = end
        begin, copied = _alike(old, place, new, start, BLOCK)
    packed = [_COUNT.pack(len(steps))]
    packed += [_STEP.pack(place, length, len(fresh)) for place, length, fresh in steps]
    packed += [fresh for _, _, fresh in steps]
    return b"".join(packed)


def apply(old: bytes, changes: Iterable[bytes]) -> bytes:
    """Return what deltas make of old, one after the other.

    What they copy is copied once, however many there are.
    """
    parts = [memoryview(old)]
    for change in changes:
        packed = memoryview(change)
        (count,) = _COUNT.unpack_from(packed)
        place = _COUNT.size + count * _STEP.size
        starts = list(accumulate(map(len, parts), initial=0))
        made: list[memoryview] = []
        for begin, copied, fresh in _STEP.iter_unpack(packed[_COUNT.size : place]):
            number, end = bisect_right(starts, begin) - 1, begin + copied
            while number < len(parts) and starts[number] < end:
                made.append(parts[number][max(begin - starts[number], 0) : end - starts[number]])
                number += 1
            made.append(packed[place : place + fresh])
            place += fresh
        parts = [part for part in made if part]
    return b"".join(parts)


def _places(old: bytes) -> dict[bytes, int]:
    """Return where each block of old is, its first place."""
    starts = range(0, len(old) - BLOCK + 1, BLOCK)
    return {old[start : start + BLOCK]: start for start in reversed(starts)}


def _is_like(places: dict[bytes, int], new: bytes) -> bool:
    """Report whether a good part of new looks like blocks of old."""
    starts = range(0, len(new) - 2 * BLOCK, max(BLOCK, len(new) // SAMPLES))
    found = sum(_again(places, new[start : start + 2 * BLOCK], 0)[0] <= BLOCK for start in starts)
    return found * 2 >= len(starts)


def _again(places: dict[bytes, int], new: bytes, start: int) -> tuple[int, int]:
    """Return where new has a block of old again, from start on, and where old has it."""
    for end in range(start, len(new) - BLOCK + 1):
        if (place := places.get(new[end : end + BLOCK])) is not None:
            return end, place
    return len(new), 0


def _alike(old: bytes, place: int, new: bytes, start: int, known: int) -> tuple[int, int]:
    """Return place, and how many bytes from there on are those of new from start on."""
    most, length, step = min(len(old) - place, len(new) - start), known, BLOCK
    while step and length < most:
        step = min(step, most - length)
        at, other = place + length, start + length
        if old[at : at + step] == new[other : other + step]:
            length, step = length + step, step * 2
        else:
            step //= 2
    return place, length
