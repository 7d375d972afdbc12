"""Long-term memory under the names that users of mem0 know: `Memory` and `AsyncMemory`.

    from loombridge.mem0 import Memory

    with Memory("127.0.0.1:50051") as memory:
        memory.add("Ann likes pears", user_id="ann")
        found = memory.search("pears", filters={"user_id": "ann"})["results"]

Methods, arguments and results are as in mem0ai 2.2.1, and the ids of `search` and
`get_all` may also be given as before 2.0, `user_id="ann"`. No model is called, so `infer` is
False unless it is asked for, and then needs `model`, a function as `ctx.memory.extract`
takes one. Memories are records of the kind `mem0` of one agent. A deleted memory has no
history. Filters take no `contains`; `memory_type`, `prompt`, `timestamp`, `expiration_date`,
`rerank` and `from_config` are not there.
"""

from loombridge.mem0._memories import AsyncMemory
from loombridge.mem0._waiting import Memory

__all__ = ["AsyncMemory", "Memory"]
