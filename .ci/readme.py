"""Runs what README.md tells a newcomer to type, as it is printed.

Each grpcurl line and the first Python program run against a fresh server in
the root of the tree. Only the address is another one, because 50051 may be
taken.

Usage: readme.py SERVER GRPCURL
"""

import asyncio
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import loombridge.testing

ROOT = Path(__file__).resolve().parent.parent
PRINTED_ADDRESS = "127.0.0.1:50051"

# What must stand in the answer to each grpcurl line, in their order.
EXPECTED = [
    "createTime",
    "Bitcoin closed at 45,000",
    "# Loom Bridge",
    "sequence",
    "Goal: Summarise the README",
]


def blocks(language: str) -> list[str]:
    """Return the code blocks of README.md in a language."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def run(what: str, argv: list[str], expected: str) -> bool:
    """Run one command and say whether it printed what it must."""
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    good = done.returncode == 0 and expected in done.stdout
    print(f"{'ok  ' if good else 'FAIL'} {what}")
    if not good:
        print(f"exit {done.returncode}, wanted {expected!r} in:\n{done.stdout}{done.stderr}")
    return good


async def main(server: str, grpcurl: str) -> int:
    """Run everything; return the exit code."""
    shell = [line for block in blocks("sh") for line in block.splitlines()]
    lines = [line for line in shell if line.startswith("grpcurl ")]
    if len(lines) != len(EXPECTED):
        print(f"README.md has {len(lines)} grpcurl lines, {len(EXPECTED)} are expected")
        return 1
    results: list[bool] = []
    with tempfile.TemporaryDirectory() as data:
        store = Path(data) / "store"
        async with loombridge.testing.server(server, workspace=ROOT, data_dir=store) as running:
            for line, expected in zip(lines, EXPECTED, strict=True):
                argv = shlex.split(line.replace(PRINTED_ADDRESS, running.address))
                argv[0] = grpcurl
                results.append(await asyncio.to_thread(run, line[:100], argv, expected))
            program = blocks("python")[0].replace(PRINTED_ADDRESS, running.address)
            argv = [sys.executable, "-W", "error", "-c", program]
            expected = "Bitcoin closed at 45,000"
            results.append(await asyncio.to_thread(run, "the first Python program", argv, expected))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
