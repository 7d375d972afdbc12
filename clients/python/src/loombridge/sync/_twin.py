"""What the generated classes have in common: something async, and the loop it lives on."""

import asyncio
import inspect
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sized
from contextlib import suppress
from itertools import islice
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

from loombridge import _background, _client, _stream, _threads, _values

ItemT = TypeVar("ItemT")
TwinT = TypeVar("TwinT", bound="Twin")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

FED_AT_ONCE = 256
"""Items of a caller's generator that are taken at a time, in a separate thread, so that it may
itself use the client."""


class Home:
    """Where the parts of one client live: a client, and the loop that it is on.

    Whatever was made of the client keeps it. When nothing does any longer, the client is
    closed, and at the latest when the program ends.
    """

    def __init__(self, background: _background.Background, client: _client.Client) -> None:
        """Take both over."""
        self.call = background.call
        self.soon = background.soon
        self.close = weakref.finalize(self, background.close, client.close)


class Twin:
    """Holds something async, and runs calls on its event loop."""

    def __init__(self, home: "Home", it: Any) -> None:
        """Made by what returns it."""
        self._home = home
        self._it = it
        self._parts: dict[str, Twin] = {}

    def _await(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method on the loop, and wait for what it gives if that is awaitable."""
        it = self._it

        async def work() -> Any:
            given = getattr(it, name)(*args, **kwargs)
            return await given if inspect.isawaitable(given) else given

        return self._home.call(work)

    def _run(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method on the loop, and return what it gives as it is."""
        it = self._it

        async def work() -> Any:
            return getattr(it, name)(*args, **kwargs)

        return self._home.call(work)

    def _get(self, name: str) -> Any:
        return getattr(self._it, name)

    def _part(self, name: str, kind: "type[TwinT]") -> "TwinT":
        """Return the twin of a part, made once."""
        if (part := self._parts.get(name)) is None:
            part = self._parts[name] = kind(self._home, self._get(name))
        return cast("TwinT", part)

    def _provide(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Call a method that may be a decorator, or return one."""
        given = self._await(name, *args, **kwargs)
        if not inspect.isfunction(given) or given in args:
            return given
        home = self._home

        def decorate(function: FunctionT) -> FunctionT:
            async def work() -> FunctionT:
                return cast("FunctionT", given(function))

            return home.call(work)

        return decorate


class Forgotten(Twin):
    """Something that is forgotten where it lives: that may end a call of gRPC."""

    def __del__(self) -> None:
        """Let go of it on its loop."""
        held = [self.__dict__.pop("_it", None)]
        if (home := self.__dict__.get("_home")) is not None:
            home.soon(held.clear)


def documented(kind: type) -> Callable[[type[TwinT]], type[TwinT]]:
    """Give the methods of a twin the whole text of the methods that they stand for."""

    def document(twin: type[TwinT]) -> type[TwinT]:
        for name, member in vars(twin).items():
            source = getattr(kind, name, None)
            if inspect.isfunction(member) and source is not None:
                member.__doc__ = source.__doc__
        return twin

    return document


def fed(items: Any) -> Any:
    """Return what an async method takes in the place of items that are made one by one."""
    given: object = items
    if isinstance(given, AsyncIterable | Sized) or not isinstance(given, Iterable):
        return items
    return _fed(iter(cast("Iterable[Any]", items)))


async def _fed(items: Iterator[ItemT]) -> AsyncIterator[ItemT]:
    take = _threads.Threads().callee(lambda: list(islice(items, FED_AT_ONCE)))
    while some := await take():
        for each in some:
            yield each


class Iterated(Forgotten, Generic[ItemT]):
    """An iterator over what an asynchronous one gives; `close` ends it, as forgetting does."""

    def __init__(self, home: "Home", it: AsyncIterable[ItemT]) -> None:
        """Made by what returns it."""
        super().__init__(home, it)
        self._ready: Iterator[ItemT] = iter(())

    def __iter__(self) -> Self:
        """Return it itself."""
        return self

    def __next__(self) -> ItemT:
        """Wait for the next item."""
        for item in self._ready:
            return item
        self._ready = iter(self._home.call(lambda: self._some(self._it)))
        for item in self._ready:
            return item
        raise StopIteration

    @staticmethod
    async def _some(it: AsyncIterator[ItemT]) -> list[ItemT]:
        """Return the next item with the ones that came with it; none at the end."""
        try:
            first = await anext(it)
        except StopAsyncIteration:
            return []
        if isinstance(it, _stream.Pages):
            return [first, *it.at_hand()]
        return [first]

    def close(self) -> None:
        """End it; twice is fine."""
        self._ready = iter(())
        with suppress(AttributeError):
            self._await("aclose")


class Listed(Twin, Generic[ItemT]):
    """Something that can be looped over, each time from the beginning."""

    def __iter__(self) -> Iterator[ItemT]:
        """Begin a loop."""
        return Iterated(self._home, self._run("__aiter__"))


class Streamed(Forgotten, Generic[ItemT]):
    """Something that is itself the iterator of what it gives."""

    def __iter__(self) -> Self:
        """Return it itself."""
        return self

    def __next__(self) -> ItemT:
        """Wait for what comes next, as long as it takes."""
        return self.next()

    def next(self, timeout: _values.Seconds | None = None) -> ItemT:
        """Wait for what comes next, for some seconds at most; a wait given up loses nothing.

        Raises:
            TimeoutError: nothing came in time.
            StopIteration: nothing more will come.
        """
        it, seconds = self._it, None if timeout is None else _values.wait("timeout", timeout)

        async def work() -> list[ItemT]:
            # StopIteration can't be raised by what runs on a loop.
            try:
                async with asyncio.timeout(seconds):
                    return [await anext(it)]
            except StopAsyncIteration:
                return []

        for item in self._home.call(work):
            return item
        raise StopIteration


class Entered(Twin):
    """Something that is there at once, and that a `with` block ends."""

    def __enter__(self) -> Self:
        """Return it itself."""
        self._await("__aenter__")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._await("__aexit__", kind, err, trace)


class Root(Entered):
    """The client itself."""

    def close(self) -> None:
        """End every call, handler and tool, the connection and the thread; twice is fine."""
        self._home.close()

    def __enter__(self) -> Self:
        """Return the client itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the client."""
        self.close()


class Made(Twin):
    """The result of an awaitable or context manager: entered at once, ended by a `with` block."""

    def __init__(self, home: "Home", making: Any) -> None:
        """Enter, and wait until it is there."""
        self._making = making
        super().__init__(home, home.call(making.__aenter__))

    def __enter__(self) -> Self:
        """Return it itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        making = self._making
        self._home.call(lambda: making.__aexit__(kind, err, trace))
