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

The prompts of the cognitive loop (`CognitiveAgent.run` and `run_stream`, strategy ReAct)
are assembled by the server from that log, in the place of what loom-py's own reducer,
offloader and compactor leave: nothing is offloaded into files, old steps are folded
when that pays, and whatever was folded can be read back. The model is asked through the
agent's own provider, in the same form as before. When the server can't assemble a
prompt, the loop goes on with loom-py's own.

Nothing else about the agent changes. Recording happens behind its back: it raises
nothing, and only a prompt waits for it. What cannot be recorded is logged to the logger
`loombridge.loom`. `agent.stop()` sends what is still waiting and closes the connection.

loom-py is not needed to import this module.
"""

from loombridge.loom._attach import attach, with_bridge
from loombridge.loom._bridge import Bridge
from loombridge.loom._run import Run

__all__ = ["Bridge", "Run", "attach", "with_bridge"]
