"""Runs the Go tests, prints what fails, and then where the time went.

    python3 .ci/gotest.py ARGUMENTS-OF-GO-TEST

The table, which bin/go-test-times.txt keeps, counts CPU seconds of a package's tests and of
the processes that they wait for: wall time depends on what else the machine does. A package
beyond LIMIT is marked.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "bin/go-test-times.txt"
MODULE = "github.com/loom-bridge/loom-bridge/"
# CPU seconds of a package. On cores that others use as well the same work takes up to twice
# as many, so a package beyond it fails nothing.
LIMIT = 60.0
PACKAGES = 12
TESTS = 20

Times = dict[tuple[str, str], float]


def main(arguments: list[str]) -> int:
    """Run the tests and return the status."""
    with tempfile.TemporaryDirectory() as folder:
        go = os.environ.get("GO", "go")
        command = [go, "test", "-json", "-exec", str(ROOT / ".ci/measured"), *arguments]
        environment = os.environ | {"MEASURED_DIR": folder}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as run:
            wall = follow(run.stdout or [])
        cpu = cpu_seconds(Path(folder))
    text = table(wall, cpu)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(text)
    print(text, end="")
    return run.returncode


def follow(lines: Iterable[str]) -> Times:
    """Print what a reader needs of the events; return wall times by package and test.

    That of a package has the empty test.
    """
    said: dict[tuple[str, str], list[str]] = defaultdict(list)  # by what has not ended
    wall: Times = {}
    for line in lines:
        if not line.startswith("{"):
            print(line, end="")
            continue
        event = json.loads(line)
        action, key = event["Action"], (event.get("Package", ""), event.get("Test", ""))
        if action in ("output", "build-output"):
            if key[1]:
                said[key].append(event["Output"])
            elif event["Output"] not in ("PASS\n", "FAIL\n"):
                print(event["Output"], end="", flush=True)
        elif action in ("pass", "fail", "skip"):
            wall[key] = event["Elapsed"]
            # The end of a package also ends its tests that did not end.
            ended = [one for one in said if one == key or (not key[1] and one[0] == key[0])]
            text = "".join(part for one in ended for part in said.pop(one))
            if action == "fail":
                print(text, end="", flush=True)
    return wall


def cpu_seconds(folder: Path) -> dict[str, float]:
    """Return the CPU seconds by package, as .ci/measured has noted them."""
    cpu: dict[str, float] = {}
    for note in folder.iterdir():
        *_, children, place = note.read_text().splitlines()
        parts = re.findall(r"(\d+)m([\d.]+)s", children)
        cpu[MODULE + str(Path(place).relative_to(ROOT))] = sum(
            60 * int(minutes) + float(seconds) for minutes, seconds in parts
        )
    return cpu


def table(wall: Times, cpu: dict[str, float]) -> str:
    """Return the times, the longest first."""
    rows = [f"\n{sum(cpu.values()):.0f} CPU seconds in the tests of {len(cpu)} Go packages"]
    rows.append("   CPU s   wall s  package")
    for package in sorted(cpu, key=lambda package: -cpu[package])[:PACKAGES]:
        mark = f"  TOO LONG: more than {LIMIT:.0f}" if cpu[package] > LIMIT else ""
        name, took = package.removeprefix(MODULE), wall.get((package, ""), 0)
        rows.append(f"{cpu[package]:8.1f} {took:8.1f}  {name}{mark}")
    rows.append("           wall s  test")
    tests = [key for key in wall if key[0] in cpu and key[1] and "/" not in key[1]]
    for package, test in sorted(tests, key=lambda key: -wall[key])[:TESTS]:
        rows.append(f"         {wall[package, test]:8.1f}  {package.removeprefix(MODULE)} {test}")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
