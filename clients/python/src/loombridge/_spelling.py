"""What a caller meant by a name that is not there."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

ClassT = TypeVar("ClassT", bound=type)

OTHER_WORDS: Mapping[str, tuple[str, ...]] = {
    "args": ("arguments",),
    "budget": ("max_tokens",),
    "content": ("text", "payload", "output"),
    "data": ("metadata", "payload", "text"),
    "examples": ("few_shot", "settings", "prompt"),
    "expires_in": ("ttl",),
    "few_shot": ("settings", "prompt"),
    "filters": ("filter",),
    "functions": ("tools",),
    "input": ("arguments", "query", "text"),
    "instructions": ("system",),
    "k": ("limit",),
    "layout": ("settings", "prompt"),
    "memory": ("text",),
    "message": ("payload", "text"),
    "meta": ("metadata",),
    "n": ("limit",),
    "n_results": ("limit",),
    "params": ("arguments", "parameters"),
    "q": ("query",),
    "result": ("output",),
    "settings": ("prompt",),
    "skills": ("settings", "prompt"),
    "system_prompt": ("system",),
    "threshold": ("min_score",),
    "tool": ("tool_name", "name"),
    "top_k": ("limit",),
    "user": ("user_id",),
    "user_id": ("settings", "prompt"),
    "vector": ("embedding",),
    "where": ("filter",),
}
"""What other libraries call an argument, and what it may be called here."""

CLOSE = 0.8
"""How like two names are that are taken for one, from 0 to 1."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelt nearly so, or that means the same."""
    by_letters = {_letters(each): each for each in known}
    if (same := by_letters.get(_letters(name))) is not None:
        return same
    near = difflib.get_close_matches(_letters(name), by_letters, n=1, cutoff=CLOSE)
    return by_letters[near[0]] if near else None


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was meant, also when another library calls it so."""
    names = list(known)
    others = (word for word in OTHER_WORDS.get(name, ()) if word in names)
    return nearest(name, names) or next(others, None)


def unknown(what: str, names: Iterable[str], known: Iterable[str]) -> str:
    """Return the text of an error about names that are none."""
    known = list(known)
    said = [
        f"{name!r} (did you mean {other!r}?)" if (other := meant(name, known)) else repr(name)
        for name in sorted(names)
    ]
    return f"{what} has no {', '.join(said)}; there is {', '.join(known)}"


class Helpful:
    """Something whose missing attributes are said with the one that was meant."""

    if not TYPE_CHECKING:  # A checker shall still name what is not there.

        def __getattr__(self, name: str) -> NoReturn:
            """Say what was meant by a name that is not here."""
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            place = METHODS.get(name) if name not in known else None
            near = None if name.startswith("_") else nearest(name, known)
            hint = place or near
            said = f": did you mean {hint}?" if hint else ""
            raise AttributeError(
                f"{type(self).__name__} has no {name!r}{said}", name=name, obj=self
            )


METHODS: Mapping[str, str] = {
    "add": "ctx.memory_save",
    "create": "ctx.memory_save",
    "find": "ctx.memory_query",
    "get_all": "ctx.memory.list",
    "insert": "ctx.memory_save",
    "publish": "ctx.emit",
    "put": "ctx.memory_save",
    "query": "ctx.memory_query",
    "recall": "ctx.memory_query",
    "remember": "ctx.memory_save",
    "save": "ctx.memory_save",
    "search": "ctx.memory_query",
    "store": "ctx.memory_save",
}
"""What other libraries call a method, and where it is here."""


def helpful(kind: ClassT) -> ClassT:
    """Make the public methods of a class name the argument that a caller meant."""
    for name, member in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(member):
            setattr(kind, name, _helpful(member))
    return kind


def _helpful(function: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            try:
                work = function(*args, **kwargs)
            except TypeError as err:
                raise _explained(function, kwargs, err) from None
            return await work

        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not kwargs.keys() <= _keywords(function):
            raise _explained(function, kwargs, None)
        return function(*args, **kwargs)

    return called


@functools.cache
def _keywords(function: Callable[..., Any]) -> frozenset[str]:
    parameters = inspect.signature(function).parameters.values()
    return frozenset(each.name for each in parameters if each.kind != each.POSITIONAL_ONLY)


def _explained(
    function: Callable[..., Any], kwargs: Mapping[str, Any], err: TypeError | None
) -> TypeError:
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    names = kwargs.keys() - set(known)
    if names or err is None:
        return TypeError(unknown(f"{function.__name__}()", names, known))
    return err
