"""Loom Bridge for an agent written with loom-py, in two lines.

from loombridge.loom import attach

attach(agent)

From then on the `ctx` that loom-py hands to the agent's handlers has `memory_save`
and `memory_query`, as `loombridge.Client` has them, and every tool call of the agent
becomes a step in its log on the server:

- a call by `ctx.tool`, wherever in the agent it is made;
- a call of loom-py's cognitive loop, also one that it runs in Python by itself or
  that a person refuses;
- a call by others of the tools that the agent provides.

Nothing else about the agent changes. Recording happens behind its back: it delays no
call and raises nothing. Steps that cannot be recorded are told to the logger
`loombridge.loom`. `agent.stop()` sends what is still waiting and closes the connection.

loom-py is not needed to import this module.
"""

from loombridge.loom._attach import attach, with_bridge
from loombridge.loom._bridge import Bridge

__all__ = ["Bridge", "attach", "with_bridge"]
