"""LangGraph's store on a running server: pip install "loombridge[langgraph]"."""

from loombridge.langgraph import LoomBridgeStore


def main() -> None:
    """Put, search and list items; a graph does the same with `compile(store=store)`."""
    with LoomBridgeStore(agent_id="assistant") as store:
        ann, bob = ("users", "ann"), ("users", "bob")
        store.put(ann, "food", {"text": "Ann likes ripe pears", "since": 2019})
        store.put(ann, "city", {"text": "Ann lives in Lisbon", "since": 2026})
        store.put(bob, "food", {"text": "Bob is allergic to nuts", "since": 2001})
        store.put(bob, "token", {"text": "pears open the door"}, index=False, ttl=60)

        for item in store.search(("users",), query="who eats pears?", limit=1):
            print(f"found:  {'/'.join(item.namespace)} {item.key}: {item.value['text']}")
        for item in store.search(("users",), filter={"since": {"$gte": 2019}}):
            print(f"since:  {item.value['since']} {item.value['text']}")
        store.put(ann, "food", {"text": "Ann prefers figs now", "since": 2026})
        food = store.get(ann, "food")
        print(f"now:    {food.value['text'] if food else 'nothing'}")
        store.delete(bob, "token")
        print(f"spaces: {store.list_namespaces(prefix=('users',))}")


if __name__ == "__main__":
    main()
