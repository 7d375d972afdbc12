"""Write the synchronous client from the asynchronous one.

    python .ci/sync_face.py            writes clients/python/src/loombridge/sync/_face
    python .ci/sync_face.py --check    says whether what is there is current

For each class that a user of `loombridge.Client` comes to hold and that has something to
be awaited, there is a class of the same name (its twin) whose methods have the same
parameters. What becomes of a method hangs on its annotations alone:

    async def m() -> T                    def m() -> T
    async def m() -> AsyncIterator[T]     def m() -> Iterator[T], also of a plain method
    def m() -> C, which is iterated       the twin of C, iterated by `for`
    def m() -> C, which is awaited        what `await` gives, at once
    ... and is iterated as well           beside it m_iter() -> the twin of C
    ... and is entered as well            what it gives, which a `with` block ends

A class that fits none of these is an error here, never a method that is missing there.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sync_source import Kind, Module, has_decorator, kind, resolved

CLIENT = Path(__file__).resolve().parent.parent / "clients" / "python"
FACE = CLIENT / "src" / "loombridge" / "sync" / "_face"

COMMAND = "make generate-sync"

HEAD = '''"""Written by .ci/sync_face.py (`{command}`). Do not edit."""

# pyright: reportOverlappingOverload=false, reportInvalidTypeVarUse=false

from __future__ import annotations
'''

HELD = "held"
"""The module of the methods' results: streams, listings, jobs. Each part has its own."""

ROOTS = (("loombridge._client", "Client"),)
"""The classes that everything else is reached from."""

HELD_BESIDE = {"Child"}
"""What is given as well, and neither iterated nor entered."""

ROOT_MEMBERS = {"close"}
"""What `_twin.Root` has itself: it also ends the thread."""


def adapted(doc: str) -> str:
    """Return a docstring as it reads without async."""
    doc = re.sub(r"\basync (?=(for|with|def)\b)", "", doc)
    doc = re.sub(r"\bwith await ", "with ", doc)
    return re.sub(r"`await (?=\w+[.(])|(?<=[ (])await (?=ctx\.)", cut_await, doc)


def brief(doc: str) -> str:
    """Return the first paragraph of a docstring; `_twin.documented` adds the rest."""
    return adapted(doc.partition("\n\n")[0])


def cut_await(found: re.Match[str]) -> str:
    """Return what stands before an `await`."""
    return "`" if found[0].startswith("`") else ""


class Page:
    """What one module holds."""

    def __init__(self) -> None:
        """Begin empty."""
        self.classes: dict[str, str] = {}
        self.std: dict[str, set[str]] = {"collections.abc": {"Iterator"}}
        self.ours: set[str] = {"_spelling"}
        self.met: set[str] = set()


def module_of(each: Kind) -> str:
    """Return the name of the module in which a twin stands."""
    root = (each.owner.name, each.name) in ROOTS
    held = each.awaited or each.iterated or each.entered or each.name in HELD_BESIDE
    return HELD if held and not root else each.name.lower()


class Writer:
    """Writes the twins, each once, as they are met."""

    def __init__(self) -> None:
        """Begin with the roots."""
        self.todo = [kind(*root) for root in ROOTS]
        self.known = {each.name: each for each in self.todo}
        self.bases: dict[str, str] = {}
        self.shadowed: set[str] = set()
        self.page = Page()

    def write(self) -> dict[str, str]:
        """Return the texts of the modules, by name."""
        pages: dict[str, Page] = {}
        while self.todo:
            each = self.todo.pop(0)
            self.page = pages.setdefault(module_of(each), Page())
            self.page.classes[each.name] = self.twin(each)
        texts = {name: self.text_of(page) for name, page in pages.items()}
        names = sorted(self.known)
        texts["__init__"] = "\n".join(
            (
                HEAD.format(command=COMMAND),
                *(f"from {self.place(name)} import {name}" for name in names),
                f"__all__ = {names!r}\n",
            )
        )
        return texts

    def text_of(self, page: Page) -> str:
        """Return the text of a module."""
        lines = [HEAD.format(command=COMMAND)]
        lines += [f"import {each}" for each in sorted(page.std.pop("", set()))]
        for source, names in sorted(page.std.items()):
            lines.append(f"from {source} import {', '.join(sorted(names))}")
        lines.append(f"from loombridge import {', '.join(sorted(page.ours))}")
        lines.append("from loombridge.sync import _twin")
        for each in sorted(page.met - page.classes.keys()):
            lines.append(f"from {self.place(each)} import {each}")
        first = sorted(page.classes, key=lambda each: (each not in self.bases, each))
        return "\n".join([*lines, *(page.classes[each] for each in first)]) + "\n"

    def place(self, name: str) -> str:
        """Return the module that a twin stands in."""
        return f"loombridge.sync._face.{module_of(self.known[name])}"

    # What an annotation means.

    def asynchronous(self, where: Module, node: ast.expr) -> Kind | None:
        """Return the class that an expression names, if it has something to be awaited."""
        found = resolved(where, node)
        if found is None:
            return None
        each = kind(*found)
        return each if each.asynchronous else None

    def met(self, each: Kind) -> str:
        """Return the name of a twin, which is written later if it is not yet."""
        if each.name not in self.known:
            self.known[each.name] = each
            self.todo.append(each)
        self.page.met.add(each.name)
        return each.name

    def text(self, where: Module, node: ast.expr) -> str:
        """Return an expression as it is written here."""
        return ast.unparse(Names(self, where).visit(ast.parse(ast.unparse(node), mode="eval").body))

    # What a method becomes.

    def twin(self, each: Kind) -> str:
        """Return the text of a twin."""
        self.shadowed = {n for n in each.members if hasattr(builtins, n) and n[0] != "_"}
        parent = self.parent(each)
        bases, body = self.base(each) if parent is None else ([self.met(parent)], [])
        for name, (where, member, overloads) in each.members.items() if parent is None else ():
            if name.startswith("_") and name != "__call__":
                continue
            if name in ROOT_MEMBERS and "_twin.Root" in bases:
                continue
            if isinstance(member, ast.AnnAssign):
                body += self.attribute(where, member)
            elif has_decorator(member, "property"):
                body += self.property(where, member)
            elif isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
                body += self.method(each, where, member, overloads)
        decorated = "@_spelling.helpful\n" if issubclass_named(each.it, "Helpful") else ""
        source = f"{each.owner.short}.{each.name}"
        if parent is None:
            self.page.ours.add(each.owner.short)
            decorated += f"@_twin.documented({source})\n"
        doc = indented(docstring(brief(inspect.getdoc(each.it) or "")))
        return f"\n\n{decorated}class {each.name}({', '.join(bases)}):\n{doc}\n" + "\n".join(body)

    def parent(self, each: Kind) -> Kind | None:
        """Return the class that one only names anew: its twin inherits all from the other's."""
        definition = each.owner.classes[each.name]
        if len(definition.body) > 1 or len(definition.bases) != 1:
            return None
        return self.asynchronous(each.owner, definition.bases[0])

    def base(self, each: Kind) -> tuple[list[str], list[str]]:
        """Return the base classes of a twin, and the members it adds for them."""
        bases: list[str] = []
        if each.awaited and each.entered and not each.iterated:
            where, returned = each.returned("__aenter__")
            made = self.asynchronous(where, returned)
            if made is None:
                raise SystemExit(f"{each.name} is entered and gives nothing that is held")
            self.bases[self.met(made)] = each.name
            return ["_twin.Made", made.name], []
        if each.has("__anext__"):
            bases.append(f"_twin.Streamed[{self.text(*each.returned('__anext__'))}]")
        elif each.iterated:
            where, returned = each.returned("__aiter__")
            bases.append(f"_twin.Listed[{self.item(where, returned)}]")
        if (each.owner.name, each.name) in ROOTS:
            bases.append("_twin.Root")
        elif each.entered:
            bases.append("_twin.Entered")
        if issubclass_named(each.it, "Helpful"):
            bases.append("_spelling.Helpful")
        return bases if bases and bases[0].startswith("_twin") else ["_twin.Twin", *bases], []

    def item(self, where: Module, node: ast.expr) -> str:
        """Return what an asynchronous iterator gives."""
        if not isinstance(node, ast.Subscript) or not is_iterator(node):
            raise SystemExit(f"{ast.unparse(node)} is no iterator")
        inner = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) else node.slice
        return self.text(where, inner)

    def attribute(self, where: Module, member: ast.AnnAssign) -> list[str]:
        """Return a property for an attribute that a class declares."""
        assert isinstance(member.target, ast.Name | ast.Attribute)
        name = getattr(member.target, "id", None) or getattr(member.target, "attr", "")
        twin = self.asynchronous(where, member.annotation)
        if twin is None:
            shown, given = self.text(where, member.annotation), f'self._get("{name}")'
        else:
            shown = self.met(twin)
            given = f'self._part("{name}", {shown})'
        doc = documented(where, name, member)
        return [f"    @property\n    def {name}(self) -> {shown}:\n{doc}\n        return {given}\n"]

    def property(self, where: Module, member: ast.FunctionDef) -> list[str]:
        """Return a property for a property."""
        assert member.returns is not None
        shown = self.text(where, member.returns)
        doc = indented(docstring(brief(ast.get_docstring(member) or "")), 8)
        return [
            f"    @property\n    def {member.name}(self) -> {shown}:\n{doc}\n"
            f'        return self._get("{member.name}")\n'
        ]

    def method(
        self,
        each: Kind,
        where: Module,
        member: ast.FunctionDef | ast.AsyncFunctionDef,
        overloads: list[ast.stmt],
    ) -> list[str]:
        """Return the text of a method, and of its second form where it has one."""
        if member.returns is None:
            raise SystemExit(f"{each.name}.{member.name} says not what it returns")
        lines: list[str] = []
        for one in overloads:
            assert isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
            assert one.returns is not None
            shown = self.given(where, one, one.returns)[0]
            given = self.parameters(where, one)
            lines.append(f"    @overload\n    def {one.name}({given}) -> {shown}: ...\n")
            self.page.std.setdefault("typing", set()).add("overload")
        shown, form = self.given(where, member, member.returns)
        passed = arguments(member)
        doc = indented(docstring(brief(ast.get_docstring(member) or "")), 8)
        for name, shown_as, how in self.forms(where, member, shown, form):
            call = how.format(call=f"({', '.join([repr(member.name), *passed])})")
            lines.append(
                f"    def {name}({self.parameters(where, member)}) -> {shown_as}:\n{doc}\n"
                f"        return {call}\n"
            )
        return lines

    def forms(
        self, where: Module, member: ast.FunctionDef | ast.AsyncFunctionDef, shown: str, form: str
    ) -> Iterator[tuple[str, str, str]]:
        """Yield the names, results and bodies of what a method becomes."""
        match form:
            case "plain":
                yield member.name, shown, "self._await{call}"
            case "provide":
                yield member.name, shown, "self._provide{call}"
            case "held":
                yield member.name, shown, f"{shown}(self._home, self._await{{call}})"
            case "stream":
                yield member.name, shown, f"{shown}(self._home, self._run{{call}})"
            case "iterator":
                yield member.name, shown, "_twin.Iterated(self._home, self._run{call})"
            case "both":
                assert member.returns is not None
                twin = self.asynchronous(where, member.returns)
                assert twin is not None
                yield member.name, shown, "self._await{call}"
                name = self.met(twin)
                yield (
                    f"{member.name}_iter",
                    name,
                    f"{name}(self._home, self._run{{call}})",
                )
            case _:
                raise AssertionError(form)

    def given(
        self, where: Module, member: ast.FunctionDef | ast.AsyncFunctionDef, node: ast.expr
    ) -> tuple[str, str]:
        """Return what a method gives here, and the form that its body has."""
        if isinstance(node, ast.BinOp) and "Callable" in ast.unparse(node):
            # The result of an implementation with overloads, which say more.
            self.page.std.setdefault("typing", set()).add("Any")
            return "Any", "provide"
        if isinstance(node, ast.Subscript) and is_iterator(node):
            return f"Iterator[{self.item(where, node)}]", "iterator"
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Coroutine":
            assert isinstance(node.slice, ast.Tuple)
            return self.text(where, node.slice.elts[2]), "plain"
        twin = self.asynchronous(where, node)
        if twin is None:
            return self.text(where, node), "plain"
        if isinstance(member, ast.AsyncFunctionDef):
            return self.met(twin), "held"
        if not twin.awaited or twin.name.endswith("Listing"):
            return self.met(twin), "stream"  # without async a listing is iterated, or a list
        if twin.entered and not twin.iterated:
            return self.met(twin), "stream"
        owner, returned = twin.returned("__await__")
        assert isinstance(returned, ast.Subscript)
        assert isinstance(returned.slice, ast.Tuple)
        result = returned.slice.elts[2]
        if self.asynchronous(owner, result) is not None:
            raise SystemExit(f"{twin.name} gives something that is held, and is not entered")
        return self.text(owner, result), "both" if twin.iterated else "plain"

    def parameters(self, where: Module, member: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        """Return the parameters of a method as they are written here."""
        given = ast.parse(f"def f({ast.unparse(member.args)}): ...").body[0]
        assert isinstance(given, ast.FunctionDef)
        names = Names(self, where)
        return ast.unparse(names.visit(given.args))


class Names(ast.NodeTransformer):
    """Maps the names of one module to names of the written module."""

    def __init__(self, writer: Writer, where: Module) -> None:
        """Know where the names come from."""
        self.writer = writer
        self.where = where

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Open a quoted annotation."""
        if isinstance(node.value, str) and node.value.isidentifier() and node.value[0].isupper():
            return self.visit(ast.parse(node.value, mode="eval").body)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Keep a name of another module of the package; a twin stands for its class."""
        twin = self.writer.asynchronous(self.where, node)
        if twin is not None:
            return ast.Name(self.writer.met(twin))
        if isinstance(node.value, ast.Name):
            source, name = self.where.imports.get(node.value.id, ("", ""))
            if source == "loombridge":
                self.writer.page.ours.add(name)
                return node
            if source == "":
                self.writer.page.std.setdefault("", set()).add(name or node.value.id)
                return node
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Qualify what the module defines, import what it imports."""
        if (twin := self.writer.asynchronous(self.where, node)) is not None:
            return ast.Name(self.writer.met(twin))
        if node.id in self.where.defined:
            self.writer.page.ours.add(self.where.short)
            return ast.Attribute(ast.Name(self.where.short), node.id)
        if node.id in self.where.imports:
            source, name = self.where.imports[node.id]
            self.writer.page.std.setdefault(source, set()).add(name)
            return node
        if node.id in self.writer.shadowed:
            self.writer.page.std.setdefault("", set()).add("builtins")
            return ast.Attribute(ast.Name("builtins"), node.id)
        return node


def is_iterator(node: ast.Subscript) -> bool:
    """Tell whether an annotation is that of an asynchronous iterator."""
    return ast.unparse(node.value) in ("AsyncIterator", "AsyncGenerator", "AsyncIterable")


def issubclass_named(it: type, name: str) -> bool:
    """Tell whether a class has a base of that name."""
    return any(base.__name__ == name for base in it.__mro__)


def arguments(member: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return how a method passes on what it is given."""
    given = member.args
    passed: list[str] = []
    for one in [*given.posonlyargs, *given.args][1:]:
        passed.append(fed(one))
    if given.vararg is not None:
        passed.append(f"*{given.vararg.arg}")
    passed += [f"{one.arg}={fed(one)}" for one in given.kwonlyargs]
    if given.kwarg is not None:
        raise SystemExit(f"{member.name} takes **{given.kwarg.arg}")
    return passed


def fed(one: ast.arg) -> str:
    """Return an argument; what may be made item by item is made in a thread."""
    shown = ast.unparse(one.annotation) if one.annotation is not None else ""
    return f"_twin.fed({one.arg})" if "AsyncIterable[" in shown else one.arg


def docstring(doc: str) -> str:
    """Return a docstring in its quotes."""
    quoted = doc.replace("\\", "\\\\")
    return f'"""{quoted}\n"""' if "\n" in doc else f'"""{quoted}"""'


def indented(text: str, by: int = 4) -> str:
    """Return text, its lines further to the right."""
    return "\n".join(" " * by + line if line else "" for line in text.splitlines())


def documented(where: Module, name: str, member: ast.AnnAssign) -> str:
    """Return what stands under an attribute as its documentation."""
    bodies = [getattr(node, "body", None) for node in ast.walk(where.tree)]
    for body in bodies:
        if not isinstance(body, list):
            continue
        for each, after in itertools.pairwise(body):
            if each is member and isinstance(after, ast.Expr):
                value: Any = getattr(after.value, "value", None)
                if isinstance(value, str):
                    return indented(docstring(adapted(inspect.cleandoc(value))), 8)
    raise SystemExit(f"{where.name}: {name} is not documented")


def generated() -> dict[Path, str]:
    """Return the modules as they shall be, formatted, by the paths where they stand."""
    return {FACE / f"{name}.py": formatted(text) for name, text in Writer().write().items()}


def formatted(text: str) -> str:
    """Return a module as ruff has it."""
    ruff = Path(sys.executable).parent / "ruff"
    config = ["--config", str(CLIENT / "pyproject.toml"), "--stdin-filename", str(FACE / "x.py")]
    fixed = ["check", "--quiet", "--select", "I,F401,RUF022", "--fix", "--exit-zero", *config, "-"]
    for step in (fixed, ["format", *config, "-"]):
        run = subprocess.run(
            [str(ruff), *step], input=text, capture_output=True, text=True, check=True
        )
        text = run.stdout
    return text


def main() -> None:
    """Write what has changed, or say that something has."""
    modules = generated()
    left = [path for path in FACE.glob("*.py") if path not in modules]
    old = [path for path, text in modules.items() if not path.exists() or path.read_text() != text]
    if "--check" in sys.argv:
        if left or old:
            raise SystemExit(f"{(left + old)[0]} is not what it is made from: run {COMMAND}")
        return
    FACE.mkdir(exist_ok=True)
    for path in left:
        path.unlink()
    for path in old:
        path.write_text(modules[path])


if __name__ == "__main__":
    main()
