"""The asynchronous client as its source has it, for sync_face.py to read."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

UNSEEN = {"Helpful", "Generic", "object", "Coroutine", "Awaitable"}
"""Base classes without own members."""


class Module:
    """The source of one module: what it imports, defines, and where from."""

    def __init__(self, name: str) -> None:
        """Read it."""
        self.name = name
        self.short = name.rpartition(".")[2]
        self.it = importlib.import_module(name)
        self.tree = tree = ast.parse(Path(str(self.it.__file__)).read_text())
        self.classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
        self.imports: dict[str, tuple[str, str]] = {}
        self.defined: set[str] = set(self.classes)
        for each in tree.body:
            if isinstance(each, ast.ImportFrom) and each.module:
                for alias in each.names:
                    self.imports[alias.asname or alias.name] = (each.module, alias.name)
            elif isinstance(each, ast.Import):
                for alias in each.names:
                    self.imports[alias.asname or alias.name] = ("", alias.name)
            elif isinstance(each, ast.Assign):
                self.defined.update(t.id for t in each.targets if isinstance(t, ast.Name))
            elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                self.defined.add(each.target.id)


@cache
def module(name: str) -> Module:
    """Return a module, read once."""
    return Module(name)


class Kind:
    """A class of the asynchronous client, with what it inherits."""

    def __init__(self, owner: Module, name: str) -> None:
        """Look at it."""
        self.owner = owner
        self.name = name
        self.it: type = getattr(owner.it, name)
        bases = [
            base
            for base in reversed(self.it.__mro__)
            if base.__module__.startswith("loombridge") and base.__name__ not in UNSEEN
        ]
        self.members: dict[str, tuple[Module, ast.stmt, list[ast.stmt]]] = {}
        for base in bases:
            where = module(base.__module__)
            for each in where.classes[base.__name__].body:
                self._note(where, each)

    def _note(self, where: Module, each: ast.stmt) -> None:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            for one in ast.walk(each):
                self._note_set(where, one)
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            self.members[each.target.id] = (where, each, [])
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        _, before, overloads = self.members.get(each.name, (where, None, []))
        if has_decorator(each, "overload"):
            self.members[each.name] = (where, each, [*overloads, each])
        else:
            kept = overloads if before in overloads else []
            self.members[each.name] = (where, each, kept)

    def _note_set(self, where: Module, one: ast.AST) -> None:
        """Note an attribute that `__init__` sets; where it is not declared, it must be."""
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
        for target in targets:
            if not isinstance(target, ast.Attribute) or ast.unparse(target.value) != "self":
                continue
            if target.attr.startswith("_") or target.attr in self.members:
                continue
            if not isinstance(one, ast.AnnAssign):
                raise SystemExit(f"{self.name}.{target.attr}: declare it in the class, with a type")
            self.members[target.attr] = (where, one, [])

    def has(self, name: str) -> bool:
        """Tell whether it, or one of its bases here, has a member."""
        return name in self.members

    @property
    def awaited(self) -> bool:
        """It can be awaited."""
        return self.has("__await__")

    @property
    def iterated(self) -> bool:
        """It can be looped over."""
        return self.has("__aiter__")

    @property
    def entered(self) -> bool:
        """It is for `async with`."""
        return self.has("__aenter__")

    @property
    def asynchronous(self) -> bool:
        """It has something to be awaited, or gives what has."""
        if self.awaited or self.iterated or self.entered:
            return True
        return any(
            isinstance(each, ast.AsyncFunctionDef)
            or (isinstance(each, ast.FunctionDef) and self._gives(where, each))
            for name, (where, each, _) in self.members.items()
            if not name.startswith("_")
        )

    def _gives(self, where: Module, each: ast.FunctionDef) -> bool:
        found = each.returns is not None and resolved(where, each.returns)
        return bool(found) and found[1] != self.name and kind(*found).asynchronous

    def returned(self, name: str) -> tuple[Module, ast.expr]:
        """Return what a method's annotation says that it gives."""
        where, each, _ = self.members[name]
        assert isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        if each.returns is None:
            raise SystemExit(f"{self.name}.{name} says not what it returns")
        return where, each.returns


@cache
def kind(owner: str, name: str) -> Kind:
    """Return a class, looked at once."""
    return Kind(module(owner), name)


def resolved(where: Module, node: ast.expr) -> tuple[str, str] | None:
    """Return the module and name of a class of ours that an expression names."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return resolved(where, ast.parse(node.value, mode="eval").body)
    if isinstance(node, ast.Name) and node.id in where.classes:
        return where.name, node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        source, name = where.imports.get(node.value.id, ("", ""))
        if source == "loombridge":
            owner = module(f"loombridge.{name}")
            if node.attr in owner.classes:
                return owner.name, node.attr
    return None


def has_decorator(each: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Tell whether a function is decorated by a name."""
    return any(isinstance(d, ast.Name) and d.id == name for d in each.decorator_list)
