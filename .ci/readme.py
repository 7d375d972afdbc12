"""Runs the commands of README.md and the pages of the server, as they are printed.

Each line of grpcurl, curl and the server's commands, and each whole Python program
run against a fresh server in the root of the tree. Only the addresses are other
ones, because 50051 may be taken. Not run are lines that want PostgreSQL or a person.
The example of a file of credentials and all examples of settings are used for a
second server, which must answer the health check that needs no token. The flags,
files and targets of make that the pages name must exist.

Usage: readme.py SERVER GRPCURL
"""

import asyncio
import functools
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import loombridge.testing

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "clients/python/examples/README.md",
    *sorted(f"server/docs/{page.name}" for page in ROOT.glob("server/docs/*.md")),
    "server/mcp/README.md",
]
PRINTED_ADDRESS, PRINTED_HTTP = "127.0.0.1:50051", "127.0.0.1:50080"

# What must stand in the answer to each grpcurl line, in their order.
EXPECTED = [
    "createTime",
    "Bitcoin closed at 45,000",
    "# Loom Bridge",
    "sequence",
    '"records"',
    "Goal: Summarise the README",
    "SERVING",
]

HEALTH = "grpc.health.v1.Health/Check"

# What the whole Python programs print, in their order.
PROGRAMS = [
    "Bitcoin closed at 45,000",
    "Ann likes ripe pears",
    "Ann likes figs",
    "allergic to pears",
]

# What the other commands print, in their order, without those that want a person or PostgreSQL.
COMMAND = re.compile(r"(?:bin/)?(?:loom-bridge-server (?!import|&)|curl )")
UNTRIED = re.compile(r"postgres://|approvals watch|--agent assistant|audit verify")
ANSWERS = [
    "Written: ",
    "createTime",
    "Bitcoin closed at 45,000",
    "caughtUp",
    "tier",
    "of it new",
    "exported 1 records",
    "exported 1 sessions",
    'agent "a1"',
    "closing time",
    "Say when",
    "durability",
    "Nothing to change.",
    *["Written: "] * 3,
]
ENDLESS = re.compile(r"curl -N|loom-bridge-server top")

# What the lines of the page about moving here print, in their order.
MOVES = [
    "dry run: imported 1 records",
    "imported 1 records",
    "Ann likes plums",
    "imported 3 records",
]

# Files of other programs, which those lines and programs read.
FOREIGN = {
    "memories.json": '{"results": [{"id": "1", "memory": "Ann likes plums", "user_id": "ann"}]}',
    "agent.af": '{"agents": [{"name": "desk", "block_ids": ["b"]}],'
    '"blocks": [{"id": "b", "label": "human", "value": "Ann is a pilot"}]}',
    "passages.json": '[{"text": "Ann flew to Oslo", "tags": ["travel"]}, {"text": "Ann is back"}]',
}

# Flags in the pages that belong to other programs.
FOREIGN_FLAGS = {"--model-id", "--find-links", "--now", "--ignore-missing"}


def blocks(language: str) -> list[str]:
    """Return the code blocks of the pages in a language."""
    return re.findall(rf"```{language}\n(.*?)```", "\n".join(map(read, PAGES)), re.DOTALL)


def run(what: str, argv: list[str], expected: str, cwd: Path = ROOT, **variables: str) -> bool:
    """Run one command, which may ask for a yes, and say whether it printed what it must."""
    env = {**os.environ, **variables}
    done = subprocess.run(
        argv, cwd=cwd, env=env, input="y\n", capture_output=True, text=True, timeout=60, check=False
    )
    good = done.returncode == 0 and expected in done.stdout
    print(f"{'ok  ' if good else 'FAIL'} {what}")
    if not good:
        print(f"exit {done.returncode}, wanted {expected!r} in:\n{done.stdout}{done.stderr}")
    return good


def begin(what: str, argv: list[str], expected: str, **variables: str) -> bool:
    """Run one command that does not end until it has printed what it must."""
    env = {**os.environ, **variables}
    with subprocess.Popen(
        argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        good = any(expected in line for line in running.stdout or ())
        running.kill()
    print(f"{'ok  ' if good else 'FAIL'} {what}")
    return good


async def fill(address: str) -> None:
    """Store what the commands of the pages show."""
    async with loombridge.connect(address, agent_id="a1") as ctx:
        await ctx.memory_save("The desk has its closing time at six")
        await ctx.context.append({"role": "user", "content": "When does it close?"})
        for goal in ("Look", "Say when the desk closes"):
            await ctx.context.assemble(goal=goal)


def read(page: str) -> str:
    """Return a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def said(*argv: str) -> str:
    """Return what a command prints."""
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout


def help_of(*command: str) -> str:
    """Return the help of a command and of all those below it."""
    own = said(*command, "--help")
    _, _, listed = own.partition("Commands:\n")
    below = [line.split()[0] for line in listed.partition("\n\n")[0].splitlines()]
    return own + "".join(help_of(*command, name) for name in below if name != "help")


def missing(server: str) -> list[str]:
    """Return what the pages name and is not there: flags, files, targets."""
    text = "\n".join(map(read, PAGES))
    helped = said(server, "help", "all") + help_of(server)
    flags = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+(?![\w…-])", text)) - FOREIGN_FLAGS
    known = set(re.findall(r"--[a-z][a-z0-9-]+", helped)) | {"--data"}
    found = [f"flag {flag}" for flag in sorted(flags - known)]
    for page in PAGES:
        links = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", read(page))
        folder = (ROOT / page).parent
        found += [f"file {link} ({page})" for link in links if not (folder / link).exists()]
    targets = set(re.findall(r"^([a-z0-9-]+):", read("Makefile"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z0-9-]+)", text, re.MULTILINE))
    return found + [f"target {name}" for name in sorted(named - targets)]


async def health_with_credentials(server: str, grpcurl: str, line: str, folder: Path) -> bool:
    """Ask a server with the settings and credentials of the pages for its health, without any."""
    credentials = [block for block in blocks("toml") if "[[credential]]" in block]
    # Single lines of settings come before all tables, as TOML wants it.
    parts = [
        re.split(r"^(?=\[)", block, maxsplit=1, flags=re.MULTILINE)
        for block in blocks("toml")
        if block not in credentials
    ]
    lines = [part[0] for part in parts] + [part[1] for part in parts if len(part) > 1]
    settings = folder / "loom.toml"
    settings.write_text("".join(lines), encoding="utf-8")
    callers = folder / "callers.toml"
    callers.write_text("".join(credentials), encoding="utf-8")
    callers.chmod(0o600)
    args = ["--config", str(settings), "--credentials", str(callers)]
    async with loombridge.testing.server(
        server, workspace=folder, data_dir=folder / "second", args=args
    ) as running:
        argv = shlex.split(line.replace(PRINTED_ADDRESS, running.address))
        argv[0] = grpcurl
        return await asyncio.to_thread(run, f"{line} (with credentials)", argv, "SERVING")


async def main(server: str, grpcurl: str) -> int:
    """Run everything; return the exit code."""
    shell = [line for block in blocks("sh") for line in block.splitlines()]
    lines = [line for line in shell if line.startswith("grpcurl ")]
    if len(lines) != len(EXPECTED):
        print(f"The pages have {len(lines)} grpcurl lines, {len(EXPECTED)} are expected")
        return 1
    results: list[bool] = []
    with tempfile.TemporaryDirectory() as data:
        work = Path(data) / "work"
        work.mkdir()
        store = work / ".loom/store"
        for name, text in FOREIGN.items():
            (work / name).write_text(text)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            http = f"127.0.0.1:{free.getsockname()[1]}"
        args = ["--backup-dir", str(Path(data) / "copies"), "--http-addr", http]
        args += ["--backup-interval", "0"]  # one is made here on request, and alone
        async with loombridge.testing.server(
            server, workspace=ROOT, data_dir=store, args=args
        ) as running:
            await fill(running.address)
            for line, expected in zip(lines, EXPECTED, strict=True):
                argv = shlex.split(line.replace(PRINTED_ADDRESS, running.address))
                argv[0] = grpcurl
                results.append(await asyncio.to_thread(run, line[:100], argv, expected))
            there = {"LOOM_BRIDGE_ADDR": running.address, "LOOM_BRIDGE_SERVER": server}
            commands = [line for block in blocks("(?:sh|bash)") for line in block.splitlines()]
            commands = [
                line for line in commands if COMMAND.match(line) and not UNTRIED.search(line)
            ]
            for line, expected in zip(commands, ANSWERS, strict=True):
                argv = shlex.split(line.replace(PRINTED_HTTP, http), comments=True)
                argv[0] = "curl" if argv[0] == "curl" else server
                how = begin if ENDLESS.match(line) else functools.partial(run, cwd=work)
                results.append(await asyncio.to_thread(how, line[:100], argv, expected, **there))
            moves = [block for block in blocks("sh") if "loom-bridge-server import " in block]
            moved = [line for block in moves for line in block.splitlines()]
            for line, expected in zip(moved, MOVES, strict=True):
                argv = [server, *shlex.split(line)[1:]]
                results.append(await asyncio.to_thread(run, line, argv, expected, work, **there))
            whole = ("asyncio.run", PRINTED_ADDRESS)
            programs = [block for block in blocks("python") if any(word in block for word in whole)]
            for program, expected in zip(programs, PROGRAMS, strict=True):
                printed = program.replace(PRINTED_ADDRESS, running.address)
                argv = [sys.executable, "-W", "error", "-c", printed]
                what = f"the Python program that prints {expected!r}"
                # By these, `local` goes to this server too, not to that of the tree's own folder.
                results.append(await asyncio.to_thread(run, what, argv, expected, work, **there))
        health = next(line for line in lines if HEALTH in line)
        results.append(await health_with_credentials(server, grpcurl, health, Path(data)))
    for name in missing(server):
        print(f"FAIL a page names what is not there: {name}")
        results.append(False)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(str(Path(sys.argv[1]).absolute()), *sys.argv[2:])))
