"""Copies the checkpoints of another checkpointer of LangGraph.

    python -m loombridge.langgraph checkpoints.db --agent helper --dry-run
    python -m loombridge.langgraph postgresql://user@host/database --agent helper

Ends with 0 when all are copied, with 1 when the source or the server is at fault, and with 2 for
wrong arguments. What is there already stays, so the same command goes on after an end in between.
"""

import argparse
import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from importlib import import_module
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from loombridge.__main__ import TOKEN_VARIABLE
from loombridge.langgraph import Copied, LoomBridgeSaver, copy_checkpoints

POSTGRESQL = ("postgresql://", "postgres://")
"""With what the address of a database begins."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Copy, say how many, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m loombridge.langgraph",
        description="Copy the checkpoints of LangGraph's SQLite or PostgreSQL checkpointer.",
        epilog=f"A server with credentials is shown the token in {TOKEN_VARIABLE}. "
        "No graph may run on the source meanwhile.",
    )
    parser.add_argument("source", help="file of a SqliteSaver, or postgresql://user@host/database")
    parser.add_argument("--agent", help="agent whose memory gets them; default: langgraph")
    parser.add_argument("--user", help="person whose memory gets them, instead")
    parser.add_argument(
        "--addr", help="host:port or unix:/path; default: LOOM_BRIDGE_ADDR, or else 127.0.0.1:50051"
    )
    parser.add_argument("--dry-run", action="store_true", help="only count them")
    given = parser.parse_args(arguments)
    try:
        target = LoomBridgeSaver(
            given.addr,
            agent_id=given.agent,
            user_id=given.user,
            token=os.environ.get(TOKEN_VARIABLE),
        )
    except ValueError as err:
        parser.error(str(err))
    try:
        with target, _opened(given.source) as source:
            done = Copied()
            for done in copy_checkpoints(source, target, dry_run=given.dry_run):
                if sys.stderr.isatty():
                    print(f"\r{done.threads} threads", end="", file=sys.stderr)
    except ImportError as err:
        print(f"{err}: pip install langgraph-checkpoint-sqlite or -postgres", file=sys.stderr)
        return 1
    except Exception as err:  # Each kind of database has its own errors.
        print(f"{given.source}: {err}", file=sys.stderr)
        return 1
    said = "would be copied" if given.dry_run else "were copied"
    print(f"{done.copied} checkpoints of {done.threads} threads {said}; {done.known} were there")
    return 0


def _opened(source: str) -> AbstractContextManager[BaseCheckpointSaver[Any]]:
    """Open a checkpointer.

    Raises:
        ImportError: its package is not installed.
        sqlite3.Error: the file has no checkpoints, or is none.
    """
    name = "PostgresSaver" if source.startswith(POSTGRESQL) else "SqliteSaver"
    package = import_module(f"langgraph.checkpoint.{name.removesuffix('Saver').lower()}")
    if name == "SqliteSaver":
        # Its saver makes a file that is missing, and tables in that of another program.
        address = f"{Path(source).resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as file:
            file.execute("SELECT 1 FROM checkpoints LIMIT 1")
    return getattr(package, name).from_conn_string(source)


if __name__ == "__main__":
    sys.exit(main())
