"""Runs the Go tests, prints what fails, and then where the time went.

    python3 .ci/gotest.py ARGUMENTS-OF-GO-TEST

A test that failed runs again by itself, AGAIN times: it failed if it fails once more. One that
does not is flaky: what it said is printed at the end, in bin/go-test-flaky.txt too, and is to be
mended. More than FLAKY of them, or a package that ended before its tests did, fail at once.

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
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "bin/go-test-times.txt"
UNSURE = ROOT / "bin/go-test-flaky.txt"
MODULE = "github.com/loom-bridge/loom-bridge/"
# CPU seconds of a package. On cores that others use as well the same work takes up to twice
# as many, so a package beyond it fails nothing.
LIMIT = 60.0
# Seconds between two looks at the processes: what ends in between counts up to the last look.
INTERVAL = 0.2
PACKAGES = 12
TESTS = 20
FLAKY = 3
AGAIN = 3

Key = tuple[str, str]  # a package and its test; the empty test is the package
Times = dict[Key, float]


@dataclass
class Outcome:
    """What became of a run of `go test`."""

    status: int = 0
    wall: Times = field(default_factory=dict)
    failed: dict[Key, str] = field(default_factory=dict)  # what they said
    unended: set[Key] = field(default_factory=set)  # when their package ended


def main(arguments: list[str]) -> int:
    """Run the tests and return the status."""
    cpu: dict[str, float] = {}
    outcome = run(arguments, cpu)
    unsure = alone(outcome)
    status = outcome.status
    if status and unsure:
        flags = [argument for argument in arguments if not argument.startswith("./")]
        again = [again_passes(flags, package, test) for package, test in unsure]
        status = 0 if all(again) else status
    if status:
        print("".join(outcome.failed.values()), end="")
    text = table(outcome.wall, cpu)
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text(text)
    print(text, end="", flush=True)
    report = "" if status else flaky(outcome.failed)
    UNSURE.write_text(report)
    print(report, end="", flush=True)
    return status


def run(arguments: list[str], cpu: dict[str, float]) -> Outcome:
    """Run `go test`, and note the CPU seconds by package."""
    command = [os.environ.get("GO", "go"), "test", "-json", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        ended = threading.Event()
        watch = threading.Thread(target=measure, args=(process.pid, cpu, ended))
        watch.start()
        outcome = follow(process.stdout or [])
        ended.set()
        watch.join()
    outcome.status = process.returncode
    return outcome


def alone(outcome: Outcome) -> list[Key]:
    """Return the tests that may be flaky, none if something else failed or too many did."""
    tests = {(package, test.partition("/")[0]) for package, test in outcome.failed if test}
    known = {package for package, _ in tests}
    whole = {package for package, test in outcome.failed if not test}
    stopped = {package for package, _ in outcome.unended}
    return sorted(tests) if whole <= known and not stopped and len(tests) <= FLAKY else []


def again_passes(flags: list[str], package: str, test: str) -> bool:
    """Run a test by itself, a few times, and say whether it passed each time."""
    print(f"again, {AGAIN} times: {package.removeprefix(MODULE)} {test}", flush=True)
    more = ["-count", str(AGAIN), "-run", f"^{test}$", package]
    return run([*flags, *more], {}).status == 0


def flaky(failed: dict[Key, str]) -> str:
    """Return what failed once and then passed."""
    rows = []
    for (package, test), said in failed.items():
        if test:
            rows.append(f"\nFLAKY, mend it: {package.removeprefix(MODULE)} {test}")
            rows += [f"  | {line}" for line in said.splitlines()]
    return "\n".join(rows) + "\n" if rows else ""


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


def follow(lines: Iterable[str]) -> Outcome:
    """Print what a reader needs of the events, and return the rest."""
    said: dict[Key, list[str]] = defaultdict(list)  # by what has not ended
    running: set[Key] = set()
    outcome = Outcome()
    for line in lines:
        if not line.startswith("{"):
            print(line, end="")
            continue
        event = json.loads(line)
        action, key = event["Action"], (event.get("Package", ""), event.get("Test", ""))
        if action == "run":
            running.add(key)
        elif action in ("output", "build-output"):
            if key[1]:
                said[key].append(event["Output"])
            elif event["Output"] not in ("PASS\n", "FAIL\n"):
                print(event["Output"], end="", flush=True)
        elif action in ("pass", "fail", "skip"):
            outcome.wall[key] = event["Elapsed"]
            running.discard(key)
            # The end of a package also ends its tests that did not end.
            left = [one for one in running if not key[1] and one[0] == key[0]]
            running.difference_update(left)
            outcome.unended.update(left)
            ended = [one for one in said if one == key or (not key[1] and one[0] == key[0])]
            text = "".join(part for one in ended for part in said.pop(one))
            if action == "fail":
                outcome.failed[key] = text
                print(f"failed: {' '.join(key).removeprefix(MODULE)}", flush=True)
    return outcome


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
