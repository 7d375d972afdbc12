"""Installs the wheels as their users do, and runs the README's first program with them.

The environment is new, the folder is empty, and neither the PATH nor a variable leads to a
server: what runs is what pip installed.

Usage: wheel_test.py FOLDER
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(wheels: Path) -> int:
    """Run everything; return the exit code."""
    program = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]
    with tempfile.TemporaryDirectory() as scratch:
        home, work = Path(scratch, "environment"), Path(scratch, "work")
        work.mkdir()
        venv.create(home, with_pip=True)
        env = {k: v for k, v in os.environ.items() if not k.startswith("LOOM_BRIDGE_")}
        env.update(PATH=os.defpath, XDG_RUNTIME_DIR=scratch)

        def run(*argv: str) -> str:
            return subprocess.run(
                [str(home / "bin" / argv[0]), *argv[1:]],
                cwd=work,
                env=env,
                stdout=subprocess.PIPE,
                text=True,
                timeout=300,
                check=True,
            ).stdout

        run("pip", "install", "--quiet", "--find-links", str(wheels), "loombridge[server]")
        versions = {
            run("loom-bridge-server", "--version"),
            run("loombridge-server", "--version"),
            run("python", "-m", "loombridge.server", "--version"),
        }
        said = run("python", "-c", program)
        good = len(versions) == 1 and "Bitcoin closed at 45,000" in said
        print(f"{'ok  ' if good else 'FAIL'} {versions.pop().strip()}, installed by pip: {said!r}")
        return 0 if good and (work / ".loom" / "store").is_dir() else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).absolute()))
