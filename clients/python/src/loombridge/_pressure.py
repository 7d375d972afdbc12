"""The rules of the levels of pressure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from loombridge import _settings, _values
from loombridge.v1 import context_pb2 as pb

ScoreRel: TypeAlias = Literal["lexical", "embedding"]
"""How messages are compared with the goal: by shared words, or by vectors of the server's
embedder."""

_REL_ENUM = pb.ScoreRel.DESCRIPTOR


@dataclass(frozen=True, slots=True)
class PressureSettings:
    """The rules of the levels of pressure. What is None stays as it is."""

    thresholds: Sequence[float] | None = None
    """Four pressures over which texts are cut, results shown once, the middle made one
    text, and the better half kept; at first 0.7, 0.8, 0.9 and 0.95."""
    inclusive_thresholds: bool | None = None
    """Let a level begin at its threshold; at first False."""
    renew: float | None = None
    """The pressure from which the window begins anew; at first 1."""
    same_content: bool | None = None
    """Show equal results of calls with other ids once, too; at first True."""
    preview_chars: int | None = None
    """Characters shown of a longer result that can be read by a name, where results are
    shown once; at first 0: all of it."""
    snip_chars: int | None = None
    """Characters that are left of a text; at first 2000."""
    reactive_chars: int | None = None
    """The same after a provider refused a prompt; at first 500."""
    score_lambda: float | None = None
    """How fast messages lose worth with age; at first 0.5."""
    score_tool_result_factor: float | None = None
    """What results of tools are worth beside what was said; at first 1."""
    score_rel: ScoreRel | None = None
    """How messages are compared with the goal; at first `lexical`."""


def to_wire(name: str, value: object) -> pb.PressureSettings:
    """Return rules as the wire has them; what is None is left out."""
    if not isinstance(value, PressureSettings):
        raise TypeError(f"{name} must be a PressureSettings, not {type(value).__name__}")
    result = pb.PressureSettings()
    if value.inclusive_thresholds is not None:
        result.inclusive_thresholds = value.inclusive_thresholds
    if value.same_content is not None:
        result.same_content = value.same_content
    for i, each in enumerate(value.thresholds or ()):
        result.thresholds.append(_values.number(f"{name}.thresholds[{i}]", each))
    if value.preview_chars is not None:
        result.preview_chars = _values.integer(f"{name}.preview_chars", value.preview_chars)
    if value.snip_chars is not None:
        result.snip_chars = _values.integer(f"{name}.snip_chars", value.snip_chars)
    if value.reactive_chars is not None:
        result.reactive_chars = _values.integer(f"{name}.reactive_chars", value.reactive_chars)
    if value.renew is not None:
        result.renew = _values.number(f"{name}.renew", value.renew)
    if value.score_lambda is not None:
        result.score_lambda = _values.number(f"{name}.score_lambda", value.score_lambda)
    if value.score_tool_result_factor is not None:
        result.score_tool_result_factor = _values.number(
            f"{name}.score_tool_result_factor", value.score_tool_result_factor
        )
    if value.score_rel is not None:
        number = _values.enum_number(f"{name}.score_rel", _REL_ENUM, "SCORE_REL_", value.score_rel)
        result.score_rel = cast("pb.ScoreRel", number)
    return result


def of_wire(m: pb.PressureSettings) -> PressureSettings:
    """Return rules as users see them."""
    return PressureSettings(
        thresholds=tuple(m.thresholds) or None,
        inclusive_thresholds=m.inclusive_thresholds if m.HasField("inclusive_thresholds") else None,
        renew=m.renew or None,
        same_content=m.same_content if m.HasField("same_content") else None,
        preview_chars=m.preview_chars if m.HasField("preview_chars") else None,
        snip_chars=m.snip_chars or None,
        reactive_chars=m.reactive_chars or None,
        score_lambda=m.score_lambda or None,
        score_tool_result_factor=m.score_tool_result_factor or None,
        score_rel=cast(
            "ScoreRel | None", _settings.name_or_none(_REL_ENUM, "SCORE_REL_", m.score_rel)
        ),
    )
