"""Tests of requirements.py and face.py: python3 .ci/requirements_test.py."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

import face
import requirements

GO = """
func MustStart(tb testing.TB) *servertest.Server { return servertest.Start(tb, nil) }

func (b bench) save(tb testing.TB) {
	_, err := b.Bridge.MemorySave(tb.Context(), nil)
}

func MustBench(tb testing.TB) bench {
	return bench{MustStart(tb)}
}

func TestByHelpers(t *testing.T) {
	MustBench(t).save(t)
}

func TestStartsAndCallsNothing(t *testing.T) {
	MustBench(t)
}

func TestOfAFunction(t *testing.T) {
	// MustBench(t).save(t)
	if Shorten("x") != "" {
		t.Error("not empty")
	}
}

func TestCommand(t *testing.T) {
	err := run(t.Context(), nil)
}
"""

CONFTEST = """
@pytest.fixture
def binary() -> Path: ...

@pytest.fixture
async def live(binary: Path) -> Client: ...

@pytest.fixture
async def fake() -> Fake: ...
"""

PYTHON = """
async def test_live(live: Client) -> None:
    await live.memory_save("x")

async def test_fake(fake: Fake) -> None:
    \"\"\"Nothing of the live binary.\"\"\"
"""


class FaceTest(unittest.TestCase):
    """Which tests go through the face."""

    def setUp(self) -> None:
        """Make a tree of a few tests."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        for path, text in {
            "proto/a.proto": "service A {\n  rpc MemorySave(Q) returns (R);\n}\n",
            "server/a_test.go": GO,
            "context/a_test.go": GO,
            "tests/conftest.py": CONFTEST,
            "tests/test_a.py": PYTHON,
        }.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        self.reach = face.Reach(root)

    def test_go(self) -> None:
        """A test must start a server and call it, by itself or by helpers."""
        for test, want in {
            "TestByHelpers": True,
            "TestStartsAndCallsNothing": False,
            "TestOfAFunction": False,
            "TestCommand": True,
        }.items():
            self.assertIs(self.reach.is_face("server/a_test.go", test), want, test)
            self.assertFalse(self.reach.is_face("context/a_test.go", test), test)

    def test_python(self) -> None:
        """A test must ask for the binary, by itself or by a fixture."""
        self.assertTrue(self.reach.is_face("tests/test_a.py", "test_live"))
        self.assertFalse(self.reach.is_face("tests/test_a.py", "test_fake"))

    def test_typescript(self) -> None:
        """Every test calls the server."""
        self.assertTrue(self.reach.is_face("clients/typescript/test/a.test.ts", "a query"))


class RowsTest(unittest.TestCase):
    """What a row must have."""

    def test_rows(self) -> None:
        """A row has a test through the face, or says why there is none, not both."""
        for inside, tests, through_face, want in (
            (None, ["a.go: TestA"], True, ""),
            ("why", ["a.go: TestA"], False, ""),
            (None, [], False, "no test"),
            (None, ["a.go: TestA"], False, "no test through the face"),
            ("why", ["a.go: TestA"], True, "third column has to go"),
        ):
            row = requirements.Row("what works", inside)
            problems = list(requirements.check_row("A1", row, tests, through_face))
            self.assertEqual(len(problems), int(bool(want)))
            self.assertIn(want, "".join(problems))

    def test_columns(self) -> None:
        """The third column is optional, and says why."""
        name = "A" + "13"  # apart, lest it be taken for the id of a row
        for line, want in {
            f"{name}\twhat works": (name, "what works", None),
            f"{name}\twhat works\tinside: why": (name, "what works", "why"),
        }.items():
            row = requirements.ROW.match(line)
            self.assertEqual(row and row.groups(), want)
        for line in ("id\twhat works", f"{name} what works", f"{name}\twhat works\twhy"):
            self.assertIsNone(requirements.ROW.match(line))


if __name__ == "__main__":
    unittest.main()
