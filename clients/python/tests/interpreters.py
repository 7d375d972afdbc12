"""Runs examples in interpreters of their own, with warnings as errors."""

import asyncio
import json
import os
import sys
from pathlib import Path

from conftest import EXAMPLES


async def run(*command: str | Path, **env: str) -> tuple[int, str]:
    """Run an example with warnings as errors; return its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-W",
        "error",
        *map(str, command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **env},
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


SEVERAL = """
import contextlib, io, json, runpy, sys

told = []
for command in json.loads(sys.argv[1]):
    sys.argv, out, code = command, io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            runpy.run_path(command[0], run_name="__main__")
        except SystemExit as end:
            code = end.code or 0
            if isinstance(code, str):
                code = print(code) or 1
    told.append((code, out.getvalue()))
print(json.dumps(told))
"""
"""Runs examples one after the other: most of the time of one is the start of Python."""


async def run_each(*commands: list[str], **env: str) -> list[tuple[int, str]]:
    """Run examples in one interpreter; return the exit code and output of each."""
    named = [[str(EXAMPLES / name), *arguments] for name, *arguments in commands]
    code, output = await run("-c", SEVERAL, json.dumps(named), PYTHONPATH=str(EXAMPLES), **env)
    assert code == 0, output
    return [(code, text) for code, text in json.loads(output)]
