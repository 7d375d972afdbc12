"""An agent explores a repository while its server is killed under it.

It needs no language model: a small planner decides what to look at. The agent acts
through tools, saves what it learns, notifies a second agent by events, and assembles its
prompt after every step; the receipts say what the prompts cost, and what they would cost
with nothing folded. Halfway the server is killed with `kill -9` and started again; at the
end once more. Then everything that was acknowledged is asked for again. The store goes,
unless `--data-dir` says where it stays; then the last line is the command that looks into it.

    python explore_repo.py --server-binary ../../../bin/loom-bridge-server

With `--llm` and OPENAI_API_KEY (and OPENAI_BASE_URL, OPENAI_MODEL) a real model drives
the same loop.
"""

import argparse
import asyncio
import random
import secrets
import shlex
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import _model
import loombridge
from _agent import Agent
from _ledger import Proof, verify
from _listener import Listener
from _model import Model, ModelError
from _planner import Action, Planner
from loombridge import testing

GOAL = "Find out how this repository is built and what its main parts are."

HOUSEKEEPING = 2
"""Steps that it takes to delete the notes and their folder."""

LEAST_STEPS = 10
"""Fewer would leave nothing on one side of the kill."""

TOLD = 6
"""Every n-th step is printed, so that a run fits two screens."""

PACE = 0.1
"""Seconds that a step takes at least, so that one can read along."""

QUESTIONS = (
    ("Who keeps a record of which agent called which tool?", "bridge/audit/doc.go"),
    ("Which package is the directory of agents?", "bridge/agents/doc.go"),
)
"""What memory is asked at the end, and the file that says it. Of a file that the agent has not
read, as in another repository, nothing can be asked; then it is what another file holds."""


@dataclass
class Outcome:
    """How the run went, for the closing table."""

    agent: Agent
    listener: Listener
    seconds: float = 0.0
    proof: Proof = field(default_factory=Proof)
    kills: int = 0
    calls: int = 0
    failed: int = 0

    async def count(self, ctx: loombridge.Client) -> None:
        """Add the calls of tools that the server counted; it begins anew when it starts."""
        status = await ctx.status()
        self.calls += status.tool_calls
        self.failed += status.failed_tool_calls


async def explore(agent: Agent, notes: str, pace: float) -> None:
    """Look at the repository, keeping notes in a scratch file of the workspace."""
    planner = Planner()
    while len(agent.ledger.steps) < agent.steps - HOUSEKEEPING:
        action = planner.next()
        if action is None:
            break
        await step(agent, planner, action)
        await asyncio.sleep(pace)
        if len(agent.ledger.steps) in (agent.steps // 4, 3 * agent.steps // 4):
            text = "".join(f"- {memory.text}\n" for memory in agent.ledger.memories)
            write = {"path": notes, "content": text}
            await step(agent, planner, Action("fs:write_file", write, "Keep notes."))
    for path in (notes, str(Path(notes).parent)):
        await step(agent, planner, Action("fs:delete", {"path": path}, "Leave no trace."))


async def step(agent: Agent, planner: Planner, action: Action) -> None:
    """Act, learn from it, and see what the prompt has become."""
    result = await agent.act(action)
    if result.success:
        finding = planner.learn(action, result.output)
        if finding is not None:
            await agent.remember(finding)
    agent.report(action, result, await agent.prompt())


async def kill_and_restart(srv: testing.Server, why: str) -> None:
    """Kill the server as a power cut would, and start it again."""
    begin = time.monotonic()
    pid = srv.pid
    await srv.kill9()
    print(f"  kill -9   process {pid}, {why}")
    await srv.start()
    print(f"  restart   the server is back after {time.monotonic() - begin:.2f} s")


async def kill_halfway(
    srv: testing.Server, agent: Agent, ctx: loombridge.Client, outcome: Outcome
) -> None:
    """Wait for the middle of the run and kill the server during a step."""
    await agent.halfway.wait()
    await outcome.count(ctx)
    # A step takes some milliseconds; the power fails anywhere in it.
    await asyncio.sleep(random.uniform(0, 0.005))  # noqa: S311
    await kill_and_restart(
        srv, f"with {len(agent.ledger.steps)} steps acknowledged and work under way"
    )


def questions(read: list[str]) -> list[str]:
    """Return what memory can be asked after the agent has read these files."""
    others = [path for path in read if Path(path).suffix]
    asked: list[str] = []
    for (question, path), place in zip(QUESTIONS, (1, -1), strict=True):
        if path in read:
            asked.append(question)
        elif others:
            asked.append(f"What does the file {others[place % len(others)]} hold?")
    return asked


async def ask(ctx: loombridge.Client, question: str) -> None:
    """Ask memory a question and show the best answer."""
    hits = await ctx.memory_query({"query": question, "limit": 1})
    print(f"  question  {question}")
    for hit in hits:
        text = " ".join(hit.record.text.split())
        print(f"  memory    {text if len(text) <= WIDE else text[: WIDE - 1] + '…'}")


LOST = 1
"""The exit code of a run that lost something."""

WIDE = 120
"""Characters of an answer that are shown."""


async def run(options: argparse.Namespace) -> Outcome:
    """Explore, be cut off, go on, and check that nothing is lost."""
    begin = time.monotonic()
    model = Model.from_environment() if options.llm else None
    async with AsyncExitStack() as stack:
        srv = await stack.enter_async_context(
            testing.server(options.server_binary, data_dir=options.data_dir, workspace=options.repo)
        )
        connect = loombridge.connect
        ctx = await stack.enter_async_context(connect(srv.address, agent_id="explorer"))
        other = await stack.enter_async_context(connect(srv.address, agent_id="librarian"))
        print(introduction(options, model, srv))

        agent = Agent(ctx, goal=GOAL, steps=options.steps, every=1 if options.verbose else TOLD)
        if model:
            agent.model, agent.room = model.name, _model.ROOM
        outcome = Outcome(agent, Listener(other))
        listening = asyncio.create_task(outcome.listener.listen())
        killing = asyncio.create_task(kill_halfway(srv, agent, ctx, outcome))
        try:
            if model is None:
                await explore(agent, f"{options.scratch.name}/notes.md", options.pace)
            else:
                await _model.explore(agent, model, print)
            # A model may be content before the middle.
            agent.halfway.set()
            await killing
            await outcome.count(ctx)
            await kill_and_restart(srv, "before everything is asked for again")
            outcome.kills = 2
            outcome.proof = await verify(ctx, agent.ledger)
            for question in questions([memory.path for memory in agent.ledger.memories]):
                await ask(ctx, question)
            if agent.ledger.events:
                await outcome.listener.has_heard(agent.ledger.events[-1], within=30)
            await outcome.count(ctx)
        finally:
            killing.cancel()
            listening.cancel()
            await asyncio.gather(killing, listening, return_exceptions=True)
        outcome.seconds = time.monotonic() - begin
    return outcome


def introduction(options: argparse.Namespace, model: Model | None, srv: testing.Server) -> str:
    """Say what is to be seen."""
    driver = f"the model {model.name}" if model else "a small planner, no language model,"
    return (
        f"An agent explores {options.repo}: {driver} chooses what to look at.\n"
        "All else is real: tools, memory, events, prompts, and two kill -9 of the server.\n"
        f"  server    {srv.address}, store in {srv.data_dir}"
    )


def conclusion(outcome: Outcome, options: argparse.Namespace) -> str:
    """Return a sentence or two on the outcome."""
    ledger = outcome.agent.ledger
    driver = "A language model drove it." if options.llm else "No language model took part."
    share = ledger.billed / max(ledger.append_only, 1)
    return (
        f"Proved: killed {outcome.kills} times with kill -9, the server lost nothing that it had "
        f"acknowledged:\n{len(ledger.steps)} steps, {len(ledger.blobs)} results byte for byte, "
        f"{len(ledger.memories)} memories found by question, {len(ledger.events)} events, each "
        f"delivered once.\nThe prompts cost {share:.0%} of what they would with nothing folded. "
        f"{driver}"
    )


def next_step(options: argparse.Namespace, kept: bool) -> str:
    """Return the command that looks into the store, or what to do to keep one."""
    if not kept:
        return (
            "The store is removed. To keep it and look into it, say where it shall lie:\n"
            "  make demo DEMO_ARGS='--data-dir /tmp/demo'"
        )
    store = shlex.quote(str(options.data_dir))
    files = shlex.quote(f"{options.data_dir}-files")
    binary = shlex.quote(str(testing.find_binary(options.server_binary).resolve()))
    return (
        "The store stays. To see what the agent did, remembers and emitted as files:\n"
        f"  {binary} export --data-dir {store} --agent explorer --out {files}"
    )


def faults(outcome: Outcome) -> list[str]:
    """Return a sentence for everything that was lost; empty when nothing was."""
    found = list(outcome.proof.faults)
    ledger, listener = outcome.agent.ledger, outcome.listener
    if lost := listener.lost(ledger.events):
        found.append(f"events lost: {lost}")
    if again := listener.duplicated():
        found.append(f"events delivered twice: {again}")
    return found


def table(outcome: Outcome) -> str:
    """Return the closing table."""
    ledger, listener, proof = outcome.agent.ledger, outcome.listener, outcome.proof
    lost, again = listener.lost(ledger.events), listener.duplicated()
    rows = [
        ("steps", f"{len(ledger.steps):,}"),
        ("tool calls counted / failed", f"{outcome.calls:,} / {outcome.failed:,}"),
        ("prompt tokens, sum", f"{sum(ledger.prompts):,}"),
        ("largest prompt, tokens", f"{max(ledger.prompts, default=0):,}"),
        ("prompts billed, units of a token", f"{ledger.billed:,.0f}"),
        ("append-only would be billed", f"{ledger.append_only:,.0f}"),
        ("blobs", f"{len(ledger.blobs):,}"),
        ("blobs byte-identical after kill -9", f"{proof.blobs:,}"),
        ("memories saved", f"{len(ledger.memories):,}"),
        ("memories found again", f"{proof.memories:,}"),
        ("events emitted", f"{len(ledger.events):,}"),
        ("events delivered across the kill", f"{len(listener.sequences):,}"),
        ("events lost / duplicated", f"{len(lost)} / {len(again)}"),
        ("seconds", f"{outcome.seconds:.1f}"),
    ]
    line = "-" * 56
    return "\n".join([line, *(f"  {name:<38}{value:>14}" for name, value in rows), line])


def parse(args: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Explore a repository while its server is killed.")
    parser.add_argument("--server-binary", help="default: as loombridge.testing finds it")
    parser.add_argument(
        "--repo", type=Path, default=Path(__file__).resolve().parents[3], help="what to explore"
    )
    parser.add_argument(
        "--data-dir", type=Path, help="an empty folder for the store, which stays; default: none"
    )
    parser.add_argument("--verbose", action="store_true", help="tell of every step")
    parser.add_argument("--pace", type=float, default=PACE, help=f"seconds a step takes ({PACE})")
    parser.add_argument("--llm", action="store_true", help="let a model drive; OPENAI_API_KEY")
    parser.add_argument("--steps", type=int, default=44, help="tool calls at most (44)")
    options = parser.parse_args(args)
    options.repo = options.repo.resolve()
    if not options.repo.is_dir():
        parser.error(f"--repo {options.repo} is no folder")
    if options.data_dir and options.data_dir.exists() and any(options.data_dir.iterdir()):
        parser.error(f"--data-dir {options.data_dir} is not empty")
    if options.steps < LEAST_STEPS:
        parser.error(f"--steps must be at least {LEAST_STEPS}")
    options.scratch = options.repo / f".explore-repo-{secrets.token_hex(4)}"
    return options


def main(args: list[str] | None = None) -> int:
    """Run the demonstration; return 0 when nothing was lost."""
    options = parse(args)
    if options.data_dir is not None:
        return demonstrate(options, keep=True)
    made = Path(tempfile.mkdtemp(prefix="loom-bridge-demo-"))
    options.data_dir = made / "store"
    code = 0
    try:
        code = demonstrate(options, keep=False)
    finally:
        if code != LOST:
            shutil.rmtree(made)
    return code


def demonstrate(options: argparse.Namespace, *, keep: bool) -> int:
    """Run it and tell how it went; a store that has lost something is kept anyhow."""
    try:
        outcome = asyncio.run(run(options))
    except (testing.ServerError, ModelError, loombridge.LoomBridgeError) as err:
        print(f"explore_repo: {err}", file=sys.stderr)
        return 2
    finally:
        # The agent deletes its notes by itself; this is for a run that was cut off.
        shutil.rmtree(options.scratch, ignore_errors=True)
    told = ", ".join(f"{n} on {name}" for name, n in outcome.listener.folders.most_common(6))
    print(f"  librarian heard {len(outcome.listener.sequences)} findings: {told}")
    print(table(outcome))
    lost = faults(outcome)
    for fault in lost:
        print(f"LOST: {fault}")
    if not lost:
        print(conclusion(outcome, options))
    print(next_step(options, keep or bool(lost)))
    return LOST if lost else 0


if __name__ == "__main__":
    sys.exit(main())
