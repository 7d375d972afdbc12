"""Tests of gotest.py: python3 .ci/gotest_test.py."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import gotest

PACKAGE = gotest.MODULE + "memory"

# The go of these tests: its n-th run prints the n-th file and ends with the status in it.
GO = """#!/bin/sh
echo "$@" >> {0}/calls
n=$(wc -l < {0}/calls)
cat {0}/$n.json
exit $(cat {0}/$n.status)
"""


def events(**tests: str) -> str:
    """Return what go says of a package whose tests end so; "hang" does not."""
    rows: list[dict[str, object]] = []
    for test, end in tests.items():
        rows.append({"Action": "run", "Test": test})
        rows.append({"Action": "output", "Test": test, "Output": f"{test} says {end}\n"})
        if end != "hang":
            rows.append({"Action": end, "Test": test, "Elapsed": 1})
    bad = set(tests.values()) - {"pass"}
    rows.append({"Action": "fail" if bad else "pass", "Elapsed": 1})
    return "".join(json.dumps({"Package": PACKAGE, **row}) + "\n" for row in rows)


class GoTest(unittest.TestCase):
    """What becomes of a run."""

    def outcome(self, *runs: str) -> tuple[int, str, list[str]]:
        """Return the status, the report of flaky tests and the calls of go."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for number, said in enumerate(runs, 1):
                (folder / f"{number}.json").write_text(said)
                (folder / f"{number}.status").write_text(str(int('"fail"' in said)))
            go = folder / "go"
            go.write_text(GO.format(folder))
            go.chmod(0o700)
            with (
                mock.patch.dict(os.environ, GO=str(go)),
                mock.patch.multiple(gotest, TABLE=folder / "table", UNSURE=folder / "flaky"),
                contextlib.redirect_stdout(io.StringIO()),
            ):
                status = gotest.main(["-short", "./..."])
            calls = (folder / "calls").read_text().splitlines()
            return status, (folder / "flaky").read_text(), calls

    def test_green(self) -> None:
        """All pass, and nothing runs again."""
        self.assertEqual((0, "", 1), self.counted(events(A="pass")))

    def test_flaky(self) -> None:
        """One fails and passes again: green, and it is named with what it said."""
        status, report, calls = self.outcome(events(A="fail", B="pass"), events(A="pass"))
        self.assertEqual(0, status)
        self.assertIn("FLAKY, mend it: memory A\n  | A says fail", report)
        self.assertEqual(f"test -json -short -count 3 -run ^A$ {PACKAGE}", calls[1])

    def test_red(self) -> None:
        """One fails again."""
        self.assertEqual((1, "", 2), self.counted(events(A="fail"), events(A="fail")))

    def test_many(self) -> None:
        """More fail than may be flaky."""
        said = events(A="fail", B="fail", C="fail", D="fail")
        self.assertEqual((1, "", 1), self.counted(said))

    def test_stopped(self) -> None:
        """A package ended before its tests did, so that others may not have run at all."""
        self.assertEqual((1, "", 1), self.counted(events(A="fail", B="hang")))

    def test_no_test(self) -> None:
        """A package does not build."""
        said = json.dumps({"Package": PACKAGE, "Action": "fail", "Elapsed": 0}) + "\n"
        self.assertEqual((1, "", 1), self.counted(said, events(A="pass")))
        self.assertEqual((1, "", 1), self.counted(events(A="fail").replace("memory", "kv") + said))

    def counted(self, *runs: str) -> tuple[int, str, int]:
        """Return the status, the report and how often go ran."""
        status, report, calls = self.outcome(*runs)
        return status, report, len(calls)


if __name__ == "__main__":
    unittest.main()
