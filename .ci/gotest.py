"""Runs the Go tests, prints what fails, and then where the time went.

    python3 .ci/gotest.py ARGUMENTS-OF-GO-TEST

The table, which bin/go-test-times.txt keeps, counts CPU seconds of a package's tests and of
the processes that they wait for: wall time depends on what else the machine does. A package
beyond LIMIT is marked. What `go test` knows from an earlier run costs nothing and is not in it.
"""

import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "bin/go-test-times.txt"
MODULE = "github.com/loom-bridge/loom-bridge/"
# CPU seconds of a package. On cores that others use as well the same work takes up to twice
# as many, so a package beyond it fails nothing.
LIMIT = 60.0
# Seconds between two looks at the processes: what ends in between counts up to the last look.
INTERVAL = 0.2
PACKAGES = 12
TESTS = 20

Times = dict[tuple[str, str], float]


def main(arguments: list[str]) -> int:
    """Run the tests and return the status."""
    command = [os.environ.get("GO", "go"), "test", "-json", *arguments]
    cpu: dict[str, float] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        ended = threading.Event()
        watch = threading.Thread(target=measure, args=(run.pid, cpu, ended))
        watch.start()
        wall = follow(run.stdout or [])
        ended.set()
        watch.join()
    text = table(wall, cpu)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(text)
    print(text, end="")
    return run.returncode


def measure(go: int, cpu: dict[str, float], ended: threading.Event) -> None:
    """Note the CPU seconds by package of what go runs, until it has ended.

    The tests are looked at from outside: with `-exec`, go keeps no result.
    """
    packages: dict[str, str] = {}  # by process
    while not ended.wait(INTERVAL):
        for child in Path(f"/proc/{go}/task").glob("*/children"):
            for process in text_of(child).split():
                folder = Path("/proc", process)
                if process not in packages:
                    # go starts tests where they lie and says so; some of them move on.
                    variables = dict(
                        v.partition("=")[::2] for v in text_of(folder / "environ").split("\0")
                    )
                    test = text_of(folder / "cmdline").split("\0")[0].endswith(".test")
                    packages[process] = name_of(variables.get("PWD", "")) if test else ""
                # Behind the name in brackets: utime, stime, cutime and cstime.
                ticks = text_of(folder / "stat").rpartition(")")[2].split()[11:15]
                if packages[process] and ticks:
                    cpu[packages[process]] = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def name_of(place: str) -> str:
    """Return the package that lies in a folder, empty for one elsewhere."""
    return MODULE + str(Path(place).relative_to(ROOT)) if Path(place).is_relative_to(ROOT) else ""


def text_of(path: Path) -> str:
    """Return the text of a file of a process, empty if the process has ended."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


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


def table(wall: Times, cpu: dict[str, float]) -> str:
    """Return the times, the longest first."""
    rows = [
        f"\n{sum(cpu.values()):.0f} CPU seconds in the tests of the {len(cpu)} Go packages that ran"
    ]
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
