"""LangGraph's contract: what is done to both stores must look the same on both."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any, cast

import pytest
import pytest_asyncio

pytest.importorskip(
    "langgraph.store.memory", reason="LangGraph is not part of the lowest environment"
)

from langgraph.store.base import (
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from letters import letters, near
from loombridge import testing
from loombridge.langgraph import LoomBridgeStore, _collection

Act = Callable[[Any], Any]


class AsyncFace:
    """A store by its asynchronous methods, each called on an event loop of its own."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method of that name, run to its end."""
        method = getattr(self._store, f"a{name}")

        def call(*args: Any, **named: Any) -> Any:
            return asyncio.run(method(*args, **named))

        return call


class Both:
    """Both stores, or what each was told by: one acts, and both must show the same."""

    def __init__(self, ours: Any, theirs: Any) -> None:
        self.ours, self.theirs = ours, theirs

    def do(self, act: Act) -> None:
        act(self.ours)
        act(self.theirs)

    def same(self, look: Act) -> Any:
        mine, wanted = look(self.ours), look(self.theirs)
        assert mine == wanted
        return mine

    def fails(self, act: Act, kind: type[Exception]) -> None:
        for store in (self.ours, self.theirs):
            with pytest.raises(kind):
                act(store)

    def put_all(self, *items: tuple[tuple[str, ...], str, dict[str, Any]]) -> None:
        for namespace, key, value in items:
            self.do(lambda store, i=(namespace, key, value): store.put(*i))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(binary: Any) -> AsyncGenerator[testing.Server, None]:
    """One server for all tests here; each uses an agent of its own."""
    async with testing.server(binary) as server:
        yield server


Maker = Callable[..., Both]


@pytest.fixture(params=["sync", "async"])
def make(shared: testing.Server, request: pytest.FixtureRequest) -> Generator[Maker, None, None]:
    """Make both stores with an index or none, by their synchronous or asynchronous face."""
    opened: list[LoomBridgeStore] = []

    def new(index: IndexConfig | None = None) -> Both:
        name: str = cast("Any", request).node.name
        agent = f"{name}/{len(opened)}"
        ours = LoomBridgeStore(shared.address, agent_id=agent, index=index)
        opened.append(ours)
        theirs = InMemoryStore(index=index)
        if request.param == "sync":
            return Both(ours, theirs)
        return Both(AsyncFace(ours), AsyncFace(theirs))

    yield new
    for store in opened:
        store.close()


@pytest.fixture
def both(make: Maker) -> Both:
    """Both stores without an index."""
    return make()


def keys(items: Any) -> list[str]:
    return [item.key for item in items]


def values(items: Any) -> list[dict[str, Any]]:
    return [item.value for item in items]


def shown(item: Any) -> Any:
    return (item.namespace, item.key, item.value) if isinstance(item, Item) else item


def ranked(items: Any) -> list[Any]:
    """Return keys with scores, which may differ in what single precision drops."""
    return [(i.key, None if i.score is None else near(i.score)) for i in items]


VALUES: dict[str, dict[str, Any]] = {
    "empty": {},
    "flat": {"text": "plain", "n": 1, "x": 0.1, "yes": True, "no": False, "none": None},
    "nested": {"a": {"b": [{"c": [1, [2, []]]}, {}]}, "": {"": ""}},
    "numbers": {"big": 2**70, "small": -(2**63), "tiny": 5e-324, "huge": 1.7e308, "minus": -0.5},
    "unicode": {"text": 'naïve 東京 🙂 \u2028 \x00 "quoted" back\\slash\n'},
    "odd keys": {"a.b": 1, "a b": 2, "$eq": 3, "AND": 4, "ключ": 5, "langgraph": {"key": 6}},
    "deep": {"d": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["bottom"]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]},
    "large": {"text": "word " * 30_000, "color": "red"},
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back_equal(both: Both, name: str) -> None:
    both.do(lambda store: store.put(("v",), name, VALUES[name]))
    assert both.same(lambda store: store.get(("v",), name).value) == VALUES[name]
    assert both.same(lambda store: values(store.search(("v",)))) == [VALUES[name]]


def test_put_get_replace_delete(both: Both) -> None:
    assert both.same(lambda store: store.get(("u", "ann"), "food")) is None
    both.do(lambda store: store.put(("u", "ann"), "food", {"likes": "pears"}))
    both.do(lambda store: store.put(("u", "bob"), "food", {"likes": "plums"}))
    both.same(lambda store: shown(store.get(("u", "ann"), "food")))
    assert both.same(lambda store: store.get(("u",), "food")) is None
    both.do(lambda store: store.put(("u", "ann"), "food", {"hates": "figs"}))
    assert both.same(lambda store: store.get(("u", "ann"), "food").value) == {"hates": "figs"}
    both.do(lambda store: store.delete(("u", "ann"), "food"))
    both.do(lambda store: store.delete(("u", "ann"), "food"))
    assert both.same(lambda store: store.get(("u", "ann"), "food")) is None
    assert both.same(lambda store: keys(store.search(("u",)))) == ["food"]
    both.do(lambda store: store.put(("u", "ann"), "food", {"likes": "back"}))
    assert both.same(lambda store: store.get(("u", "ann"), "food").value) == {"likes": "back"}


def test_keys_and_labels_of_any_kind(both: Both) -> None:
    odd = ["a/b", "a.b", '["a"]', "x" * 600, "é", " ", "#1", "*", '"', "\\", "AND"]
    for each in odd:
        both.do(lambda store, k=each: store.put(("keys",), k, {"k": k}))
    both.do(lambda store: store.put(("keys",), 7, {"k": 7}))
    for each in odd:
        assert both.same(lambda store, k=each: store.get(("keys",), k).value) == {"k": each}
    assert both.same(lambda store: store.get(("keys",), 7).key) == "7"
    labels = [each for each in odd if "." not in each]
    for each in labels:
        both.do(lambda store, n=each: store.put(("l", n), "k", {"n": n}))
    for each in labels:
        assert both.same(lambda store, n=each: values(store.search(("l", n)))) == [{"n": each}]
    deep = tuple(f"level {i}" for i in range(80))
    both.do(lambda store: store.put(deep, "k", {"deep": True}))
    assert both.same(lambda store: values(store.search(deep))) == [{"deep": True}]
    assert both.same(lambda store: values(store.search((*deep[:-1], "other")))) == []


BAD = [("a.b",), ("a", ""), (1,), ("a", "nul\x00")]


@pytest.mark.parametrize("namespace", BAD, ids=str)
def test_bad_namespaces_are_refused(both: Both, namespace: Any) -> None:
    acts: list[Act] = [
        lambda store: store.put(namespace, "k", {}),
        lambda store: store.get(namespace, "k"),
        lambda store: store.delete(namespace, "k"),
        lambda store: store.search(namespace),
        lambda store: store.list_namespaces(prefix=namespace),
        lambda store: store.list_namespaces(suffix=namespace),
    ]
    for act in acts:  # the in-memory store takes some of them in older versions
        with pytest.raises(InvalidNamespaceError):
            act(both.ours)


def test_what_put_refuses_a_batch_may_store(both: Both) -> None:
    both.fails(lambda store: store.put((), "k", {}), InvalidNamespaceError)
    both.fails(lambda store: store.put(("langgraph", "x"), "k", {}), InvalidNamespaceError)
    both.do(lambda store: store.batch([PutOp(("langgraph", "x"), "k", {"n": 1})]))
    assert both.same(lambda store: store.get(("langgraph", "x"), "k").value) == {"n": 1}
    assert both.same(lambda store: values(store.search(("langgraph",)))) == [{"n": 1}]
    both.do(lambda store: store.put(("x", "langgraph"), "k", {"n": 2}))
    assert both.same(lambda store: values(store.search(("x", "langgraph"), query="n"))) == [
        {"n": 2}
    ]


def test_search_goes_by_prefix_in_the_order_of_the_first_put(both: Both) -> None:
    both.put_all(
        (("a",), "1", {"n": 1}),
        (("a", "b"), "2", {"n": 2}),
        (("ab",), "3", {"n": 3}),
        (("b", "a"), "4", {"n": 4}),
        (("a", "b", "c"), "5", {"n": 5}),
    )
    both.do(lambda store: store.put(("a",), "1", {"n": 10}))
    assert both.same(lambda store: keys(store.search(("a",)))) == ["1", "2", "5"]
    assert both.same(lambda store: keys(store.search(("a", "b")))) == ["2", "5"]
    assert both.same(lambda store: keys(store.search(()))) == ["1", "2", "3", "4", "5"]
    assert both.same(lambda store: keys(store.search(("zz",)))) == []
    both.do(lambda store: store.delete(("a",), "1"))
    both.same(lambda store: keys(store.search(("a",))))


NEAR = "foo foo/child foo/child/deep foobar foo2 Foo x/foo user_1 userX1 a%b axxb star* starX"
NEAR_EACH_OTHER = [tuple(name.split("/")) for name in f"{NEAR} q?m br[a]et plus+".split()]


def test_a_prefix_means_whole_labels_as_they_are(both: Both) -> None:
    spaces = [*NEAR_EACH_OTHER, ("line",), ("line\n",), (" line",)]
    both.do(lambda store: store.batch([PutOp(n, "k", {}) for n in spaces]))
    for namespace in [*spaces, ("fo",), ("child",), ("star",)]:
        assert both.same(
            lambda store, n=namespace: [i.namespace for i in store.search(n, limit=99)]
        ) == [each for each in spaces if each[: len(namespace)] == namespace]
        both.same(lambda store, n=namespace: store.list_namespaces(prefix=n))
        both.same(lambda store, n=namespace: store.list_namespaces(suffix=n))


def test_search_by_pages(both: Both) -> None:
    both.do(lambda store: store.batch([PutOp(("p",), f"k{i:02}", {"n": i}) for i in range(25)]))
    assert both.same(lambda store: len(store.search(("p",)))) == 10
    for limit, offset in [(5, 0), (5, 5), (10, 20), (10, 25), (10, 90), (0, 0), (100, 3), (1, 24)]:
        both.same(lambda store, n=limit, o=offset: keys(store.search(("p",), limit=n, offset=o)))
        both.same(
            lambda store, n=limit, o=offset: keys(
                store.search(("p",), filter={"n": {"$gte": 10}}, limit=n, offset=o)
            )
        )


COLORS: list[tuple[tuple[str, ...], str, dict[str, Any]]] = [
    (("c",), "1", {"color": "red", "n": 5, "x": 4.5, "on": True, "tags": ["a", "b"]}),
    (("c",), "2", {"color": "green", "n": 7, "x": 3.0, "on": False, "tags": ["a"]}),
    (("c",), "3", {"color": "red", "n": -1, "x": 1e300, "on": 1, "sub": {"a": 1, "b": {"c": 2}}}),
    (("c",), "4", {"color": None, "n": 2**53 + 1, "x": 0, "on": "true", "sub": {"a": 2}}),
    (("c",), "5", {"color": 'say "red"\\', "n": 0, "x": 1, "on": 0, "tags": []}),
    (("c",), "6", {"color": "red", "n": 5.0, "x": -3.25, "big": "word " * 20_000}),
]

FILTERS: list[dict[str, Any]] = [
    {},
    {"color": "red"},
    {"color": "blue"},
    {"color": None},
    {"missing": None},
    {"color": 'say "red"\\'},
    {"n": 5},
    {"n": 5.0},
    {"n": 0},
    {"n": -1},
    {"n": 2**53 + 1},
    {"n": 2**53},
    {"n": True},
    {"n": "5"},
    {"x": 1e300},
    {"x": -3.25},
    {"on": True},
    {"on": False},
    {"on": 1},
    {"on": "true"},
    {"tags": ["a"]},
    {"tags": ("a", "b")},
    {"tags": []},
    {"tags": ["b", "a"]},
    {"sub": {"a": 1}},
    {"sub": {"b": {"c": 2}}},
    {"sub": {}},
    {"color": {"$eq": "red"}},
    {"color": {"$ne": "red"}},
    {"missing": {"$ne": 1}},
    {"n": {"$gt": 5}},
    {"n": {"$gte": 5}},
    {"n": {"$lt": 5}},
    {"n": {"$lte": 5.0}},
    {"n": {"$gt": -1, "$lt": 7}},
    {"n": {"$gte": "5"}},
    {"n": {"$lte": 2**53}},
    {"n": {"$gt": True}},
    {"x": {"$lt": 0.5}},
    {"x": {"$gt": 1e299}},
    {"n": {"$gte": 5, "$ne": 7}, "color": "red"},
    {"sub": {"a": {"$eq": 1}}},
    {"color": "red", "n": {"$eq": 5}, "x": 4.5},
    {"a.b": 1},
    {"AND": 1},
    {"x y": 1},
]


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_filters(both: Both, wanted: dict[str, Any]) -> None:
    both.put_all(*COLORS)
    both.same(lambda store: keys(store.search(("c",), filter=wanted)))


def test_numbers_in_other_clothes_are_compared(both: Both) -> None:
    both.put_all((("n",), "1", {"n": "7"}), (("n",), "2", {"n": 3}), (("n",), "3", {"n": True}))
    for sign in ("$gt", "$gte", "$lt", "$lte"):
        for operand in (0, 1, 3, "3", 7.0, 7.5):
            both.same(
                lambda store, s=sign, o=operand: keys(store.search(("n",), filter={"n": {s: o}}))
            )


def test_unknown_operators_are_refused(both: Both) -> None:
    both.put_all((("c",), "1", {"n": 1}))
    both.fails(lambda store: store.search(("c",), filter={"n": {"$in": [1]}}), ValueError)


def test_filters_of_many_conditions(both: Both) -> None:
    value = {f"field{i}": f"value {i} " + "x" * 60 for i in range(90)}
    both.put_all((("m",), "1", value), (("m",), "2", {**value, "field89": "other"}))
    assert both.same(lambda store: keys(store.search(("m",), filter=value))) == ["1"]


NAMESPACES = [
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
    ("users", "1"),
    ("users", "2", "settings"),
    ("admin", "users", "3"),
    ("x",),
]

LISTINGS: list[dict[str, Any]] = [
    {},
    {"prefix": ("a", "b")},
    {"suffix": ("f",)},
    {"prefix": ("a",), "suffix": ("f",)},
    {"prefix": ("a", "b"), "max_depth": 3},
    {"max_depth": 1},
    {"max_depth": 2},
    {"max_depth": 9},
    {"prefix": ("a", "b"), "limit": 2},
    {"prefix": ("a", "b"), "offset": 2},
    {"limit": 3, "offset": 4},
    {"limit": 3, "offset": 40},
    {"max_depth": 1, "limit": 2, "offset": 1},
    {"prefix": ("a", "*", "f")},
    {"prefix": ("*", "users")},
    {"prefix": ("*", "*", "*", "*")},
    {"suffix": ("*", "f")},
    {"suffix": ("*",)},
    {"suffix": ("users", "*")},
    {"prefix": ("users", "*"), "suffix": ("settings",)},
    {"prefix": ("nowhere",)},
    {"prefix": ("users", "1")},
    {"prefix": ("a", "b", "c", "d", "e")},
]


@pytest.mark.parametrize("asked", LISTINGS, ids=str)
def test_namespaces(both: Both, asked: dict[str, Any]) -> None:
    assert both.same(lambda store: store.list_namespaces(**asked)) == []
    ops = [PutOp(namespace, f"k{i}", {}) for i, namespace in enumerate(NAMESPACES)]
    both.do(lambda store: store.batch(ops))
    both.same(lambda store: store.list_namespaces(**asked))


def test_namespaces_that_repeat_are_found_once(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    # As with hundreds of items in each.
    monkeypatch.setattr(_collection, "LOOK", 3)
    odd = [("a",), ("A",), ("a", "*"), ("a", 'say "b"'), ("\u00e9",), ("e\u0301",), ("a", "b")]
    for i in range(4):
        ops = [PutOp(namespace, f"k{i}", {}) for namespace in [*NAMESPACES, *odd]]
        both.do(lambda store, o=ops: store.batch(o))
    for asked in LISTINGS:
        both.same(lambda store, a=asked: store.list_namespaces(**a))
    for depth in (0, 1, 2, -1):
        both.same(lambda store, d=depth: store.list_namespaces(max_depth=d))


def test_namespaces_of_several_conditions(both: Both) -> None:
    both.do(lambda store: store.batch([PutOp(n, "k", {}) for n in NAMESPACES]))
    conditions = (
        MatchCondition("prefix", ("a",)),
        MatchCondition("prefix", ("*", "b")),
        MatchCondition("suffix", ("*", "i")),
    )
    op = ListNamespacesOp(match_conditions=conditions)
    assert both.same(lambda store: store.batch([op])) == [[("a", "b", "d", "i")]]
    wrong: Any = MatchCondition("infix", ("a",))  # pyright: ignore[reportArgumentType]
    both.fails(lambda store: store.batch([ListNamespacesOp((wrong,))]), ValueError)


def test_a_batch_reads_what_was_there_before_it(both: Both) -> None:
    both.put_all((("b",), "old", {"n": 1}), (("b",), "gone", {"n": 2}))
    ops = [
        PutOp(("b",), "new", {"n": 3}),
        GetOp(("b",), "new"),
        GetOp(("b",), "old"),
        PutOp(("b",), "old", {"n": 4}),
        SearchOp(("b",)),
        PutOp(("b",), "gone", None),
        PutOp(("b",), "old", {"n": 5}),
        ListNamespacesOp(),
        PutOp(("b",), "never", {"n": 6}),
        PutOp(("b",), "never", None),
        GetOp(("b",), "old"),
    ]

    def told(results: list[Any]) -> list[Any]:
        return [
            list(map(shown, cast("list[Any]", each))) if isinstance(each, list) else shown(each)
            for each in results
        ]

    both.same(lambda store: told(store.batch(ops)))
    both.same(lambda store: sorted((i.key, i.value["n"]) for i in store.search(("b",))))
    both.same(lambda store: store.batch([]))
    both.fails(lambda store: store.batch(["no op"]), ValueError)


def test_what_is_found_belongs_to_the_caller(both: Both) -> None:
    value = {"n": [1]}
    both.do(lambda store: store.put(("o",), "k", value))
    item = both.ours.get(("o",), "k")
    item.value["n"].append(2)
    assert both.ours.get(("o",), "k").value == {"n": [1]}


# F08
def test_vectors_rank_and_score_as_cosines(make: Maker) -> None:
    both = make(letters())
    both.put_all(
        (("t",), "1", {"text": "short text"}),
        (("t",), "2", {"text": "longer text document"}),
        (("t",), "3", {"text": "the longest text document of all"}),
        (("t", "deep"), "4", {"description": "something else"}),
        (("z",), "5", {"text": "longer text document"}),
    )
    for query in ("long text", "document", "zebra", "short text", "a" * 3000, "!?", "東京"):
        both.same(lambda store, q=query: ranked(store.search(("t",), query=q)))
        both.same(lambda store, q=query: ranked(store.search((), query=q, limit=2)))
    for query in ("", None):
        assert both.same(
            lambda store, q=query: [i.score for i in store.search(("z",), query=q)]
        ) == [None]


def test_a_replaced_item_has_its_new_vector(make: Maker) -> None:
    both = make(letters("text"))
    both.put_all(
        (("t",), "1", {"text": "zany zebra Xerxes"}),
        (("t",), "2", {"text": "something about dogs"}),
        (("t",), "3", {"text": "text about birds"}),
    )
    assert both.same(lambda store: ranked(store.search(("t",), query="Zany Xerxes")))[0][0] == "1"
    both.do(lambda store: store.put(("t",), "1", {"text": "new text about dogs"}))
    both.same(lambda store: ranked(store.search(("t",), query="Zany Xerxes")))
    both.same(lambda store: ranked(store.search(("t",), query="new text about dogs")))
    both.do(lambda store: store.put(("t",), "4", {"text": "new text about dogs"}, index=False))
    both.same(lambda store: ranked(store.search(("t",), query="new text about dogs", limit=3)))
    found = both.same(lambda store: ranked(store.search(("t",), query="new text about dogs")))
    assert found[-1] == ("4", None)
    both.do(lambda store: store.delete(("t",), "2"))
    both.same(lambda store: ranked(store.search(("t",), query="something about dogs")))


def test_vectors_with_filters_and_pages(make: Maker) -> None:
    both = make(letters("text"))
    colors = ["red", "blue", "green"]
    for i in range(12):
        value = {"text": f"{colors[i % 3]} thing {'o' * i}", "color": colors[i % 3], "n": i}
        both.do(lambda store, k=f"k{i}", v=value: store.put(("t",), k, v))
    asked: list[dict[str, Any]] = [
        {"filter": {"color": "red"}},
        {"filter": {"n": {"$gt": 6}}},
        {"filter": {"n": {"$lte": 3}, "color": "blue"}, "limit": 1},
        {"limit": 5},
        {"limit": 5, "offset": 5},
        {"limit": 5, "offset": 10},
        {"limit": 5, "offset": 50},
        {"limit": 12},
        {"limit": 0},
    ]
    for each in asked:
        both.same(lambda store, a=each: ranked(store.search(("t",), query="red ooo", **a)))


def test_an_item_has_a_vector_for_each_of_its_fields(make: Maker) -> None:
    both = make(letters("one", "two", "four"))
    both.put_all(
        (("t",), "1", {"two": "xxx", "three": "yyy", "four": "zzz"}),
        (("t",), "2", {"one": "uuu", "two": "vvv", "three": "www", "four": "xxx"}),
        (("t",), "3", {"three": "xxx"}),
    )
    for query in ("uuu", "zzz", "www", "xyz", "xxx"):
        both.same(lambda store, q=query: ranked(store.search(("t",), query=q)))
        both.same(lambda store, q=query: ranked(store.search(("t",), query=q, limit=1)))
    scores = [i.score for i in both.ours.search(("t",), query="xxx")]
    assert scores == [scores[0], scores[0], None]


def test_a_put_says_what_is_embedded(make: Maker) -> None:
    both = make(letters("nothing"))
    texts = {"one": "aaa", "two": "bbb", "list": [{"t": "ccc"}, {"t": "ddd"}], "deep": {"n": 7}}
    indexes: list[Any] = [
        ["one"],
        ["one", "two"],
        ["list[*].t"],
        ["list[-1].t", "deep.n"],
        ["{one,two}"],
        False,
        None,
    ]
    for i, index in enumerate(indexes):
        both.do(lambda store, k=str(i), x=index: store.put(("t",), k, texts, index=x))
    for query in ("aaa", "bbb", "ccc", "ddd", "7"):
        found = both.same(
            lambda store, q=query: sorted(ranked(store.search(("t",), query=q)), key=str)
        )
        assert len(found) == len(indexes)


def test_scripts_of_the_world(make: Maker) -> None:
    texts = ["这是中文", "これは日本語です", "이건 한국어야", "Это русский", "यह रूसी है"]
    for both in (make(letters()), make()):
        for i, text in enumerate(texts):
            both.do(lambda store, k=str(i), t=text: store.put(("u", "m"), k, {"text": t}))
        for i, text in enumerate(texts):
            assert both.ours.search(("u", "m"), query=text)[0].key == str(i)


def random_put(rng: random.Random, namespace: tuple[str, ...], number: int) -> PutOp:
    """Return a put; no two have a text in common, which InMemoryStore can't embed at once."""
    words = ["red", "green", "blue", "north", "south"]
    value: dict[str, Any] = {"n": rng.randrange(5), "text": f"{rng.choice(words)} {number}"}
    if rng.random() < 0.4:
        value["more"] = [f"{rng.choice(words)} {number} {i}" for i in range(rng.randrange(4))]
    index: Any = rng.choice([None, None, False, ["text"]])
    return PutOp(namespace, f"k{rng.randrange(6)}", value, index=index)


@pytest.mark.parametrize("seed", [1, 2, 3, 200009])  # the last puts an item twice at once
def test_random_operations_leave_the_same(make: Maker, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311  a test's
    both = make(letters("text", "more[*]") if seed % 2 else None)
    spaces = [("a",), ("a", "b"), ("a", "b", "c"), ("b",)]
    both.put_all(*((namespace, "anchor", {"n": 0}) for namespace in spaces))

    def ranks(items: list[Any]) -> list[Any]:
        # Of equal scores either may come first.
        return sorted((round(i.score, 4) if i.score is not None else 2, i.key) for i in items)

    for step in range(25):
        puts = [random_put(rng, rng.choice(spaces), 10 * step + i) for i in range(rng.randrange(5))]
        # InMemoryStore keeps vectors of what an item was before, unless it is deleted.
        ops = [PutOp(put.namespace, put.key, None) for put in puts]
        both.do(lambda store, o=ops: store.batch(o))
        both.do(lambda store, o=puts: store.batch(o))
        if step % 3 == 0:
            # Of an item that was put twice, the put that stands: the texts of the other one
            # are among what InMemoryStore keeps.
            stand = {(put.namespace, put.key): put for put in puts}.values()
            again = [put for put in stand if put.index is None and "more" not in (put.value or {})]
            both.do(lambda store, o=again: store.batch(o))
        namespace = rng.choice(spaces)
        both.same(lambda store, n=namespace: shown(store.get(n, "k1")))
        both.same(
            lambda store, n=namespace: sorted(map(str, map(shown, store.search(n, limit=99))))
        )
        wanted = rng.choice([{"n": 2}, {"n": {"$gt": 1}}, {"text": {"$ne": "red 1"}}])
        both.same(lambda store, w=wanted: len(store.search((), filter=w, limit=99)))
        both.same(lambda store: store.list_namespaces(max_depth=2))
        if seed % 2:
            both.same(lambda store, n=namespace: ranks(store.search(n, query="red 1", limit=99)))
