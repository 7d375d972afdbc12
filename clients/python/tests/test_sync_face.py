"""The synchronous client is what the asynchronous one gives: nothing drifts."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loombridge
from loombridge import sync

GENERATOR = Path(__file__).resolve().parents[3] / ".ci" / "sync_face.py"

REMEDY = "run `make generate-sync` (`make generate` does it, too)"

LOOPS = {"__aiter__": "__iter__", "__anext__": "__next__", "__aenter__": "__enter__"}
"""What a class has, and what its twin has in its place."""


def public(kind: type) -> dict[str, Any]:
    """Return what a class has, and what it inherits here, by name."""
    bases = [base for base in reversed(kind.__mro__) if base.__module__.startswith("loombridge")]
    found = {name: value for base in bases for name, value in vars(base).items()}
    annotated = {name: None for base in bases for name in inspect.get_annotations(base)}
    return {name: value for name, value in (annotated | found).items() if name[0] != "_"}


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    given = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in given]


def differences(kind: type, twin: type) -> Iterator[str]:
    """Yield what a class has and its twin has not, or has otherwise."""
    for name, member in public(kind).items():
        own = getattr(twin, name, None)
        if own is None:
            yield f"{twin.__name__}.{name} is missing: {REMEDY}"
        elif inspect.isfunction(member) and parameters(member) != parameters(own):
            yield f"{twin.__name__}.{name} takes other arguments: {REMEDY}"
    for name, plain in LOOPS.items():
        if hasattr(kind, name) and not hasattr(twin, plain):
            yield f"{twin.__name__}.{plain} is missing: {REMEDY}"


def is_asynchronous(kind: type) -> bool:
    members = {name: value for base in kind.__mro__[:-1] for name, value in vars(base).items()}
    return any(name in members for name in (*LOOPS, "__await__")) or any(
        inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value)
        for name, value in members.items()
        if not name.startswith("_")
    )


PAIRS = [
    (kind, getattr(sync, kind.__name__))
    for kind in map(vars(loombridge).get, loombridge.__all__)
    if inspect.isclass(kind) and hasattr(sync, kind.__name__)
]


# Y30
@pytest.mark.parametrize(("kind", "twin"), PAIRS)
def test_each_method_is_there_with_the_same_arguments(kind: type, twin: type) -> None:
    assert list(differences(kind, twin)) == []


def test_each_class_has_a_twin() -> None:
    kinds = [
        each for each in map(vars(loombridge).get, loombridge.__all__) if inspect.isclass(each)
    ]
    # A base of the client; what `sync.connect`, `sync.local` and `ctx.tool` do at once.
    without = (loombridge.Agent, loombridge.Connecting, loombridge.Local, loombridge.ToolVerb)
    needed = [kind for kind in kinds if is_asynchronous(kind) and kind not in without]
    missing = {kind.__name__ for kind in needed} - {kind.__name__ for kind, _ in PAIRS}
    assert missing == set(), REMEDY
    assert len(PAIRS) > 15


def test_connect_takes_the_same() -> None:
    assert parameters(sync.connect) == parameters(loombridge.connect)
    assert parameters(sync.local) == parameters(loombridge.local)


def test_a_drift_is_told() -> None:
    class Before:
        async def get(self, name: str) -> str:
            return name

    class After(Before):
        async def get(self, name: str, *, as_of: int = 0) -> str:
            return name * as_of

        async def put(self) -> None: ...

    After.__module__ = Before.__module__ = "loombridge.toys"
    assert list(differences(Before, Before)) == []
    assert [each.split(":")[0] for each in differences(After, Before)] == [
        "Before.get takes other arguments",
        "Before.put is missing",
    ]


@pytest.mark.skipif(
    not (Path(sys.executable).parent / "ruff").exists(), reason="it is formatted by ruff"
)
def test_the_generated_modules_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(GENERATOR.parent), *sys.path])
    modules = importlib.import_module(GENERATOR.stem).generated()
    assert len(modules) > 10
    for path, text in modules.items():
        assert path.read_text() == text, f"{path.name} is not current: {REMEDY}"
