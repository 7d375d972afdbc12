"""Tests of releasable.py, and of signatures: python3 .ci/releasable_test.py."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import releasable
import release

MAKES, CHECKS = (releasable.ROOT / name for name in ("CONTRIBUTING.md", "server/docs/running.md"))
"""The pages that say how a key is made, and how a release is checked."""


def run(*argv: str | Path, cwd: Path) -> int:
    """Return how a command ends that says nothing."""
    return subprocess.run(argv, cwd=cwd, capture_output=True, check=False).returncode


class Scratch(unittest.TestCase):
    """Tests in a folder of their own."""

    def setUp(self) -> None:
        """Make the folder."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Releases(Scratch):
    """Which release came before."""

    def commit(self, tag: str = "") -> None:
        """Commit, and tag that."""
        self.git("commit", "--quiet", "--allow-empty", f"--message=before {tag}")
        if tag:
            self.git("tag", tag)

    def git(self, *argv: str) -> None:
        """Run git."""
        who = ("-c", "user.name=x", "-c", "user.email=x", "-c", "tag.gpgSign=false")
        self.assertEqual(0, run("git", *who, *argv, cwd=self.folder), argv)

    def last(self, version: str) -> str:
        """Return the release before a version."""
        with mock.patch.object(releasable, "ROOT", self.folder):
            return releasable.last(version)

    def test_last(self) -> None:
        """Tags count that HEAD comes from, and name a release, but not its own."""
        self.git("init", "--quiet")
        self.commit()
        self.assertEqual("", self.last("0.1.0"), "without a tag")
        self.commit("v0.1.0")
        self.git("tag", "notes")
        self.assertEqual("", self.last("0.1.0"), "its own")
        self.assertEqual("v0.1.0", self.last("0.2.0"))
        self.git("checkout", "--quiet", "-b", "line")
        self.commit("v0.1.1")
        self.assertEqual("v0.1.1", self.last("0.2.0"))
        self.git("checkout", "--quiet", "-")
        self.commit()
        self.assertEqual("v0.1.0", self.last("0.2.0"), "a release of another line")

    def test_no_store(self) -> None:
        """A version after a release without a store of that one is refused."""
        with (
            mock.patch.object(releasable, "last", return_value="v0.0.9"),
            mock.patch.object(releasable, "protos", return_value=iter(())),
            contextlib.redirect_stdout(io.StringIO()) as said,
        ):
            self.assertEqual(1, releasable.main("0.0.10", "image", "buf"))
        for part in ("has no store of v0.0.9", "VERSION is 0.0.10", "CHANGELOG.md begins with"):
            self.assertIn(part, said.getvalue())


class Signatures(Scratch):
    """What SIGN_KEY does, and what users check by."""

    def setUp(self) -> None:
        """Make a key and a release."""
        super().setUp()
        self.dist, self.signers = self.folder / "dist", self.folder / "dist/release.signers"
        self.dist.mkdir()
        self.key = self.new_key("key")
        (self.dist / "file").write_text("of a release")
        self.sums = release.sums(self.dist)
        public = self.key.with_suffix(".pub").read_text()
        self.signers.write_text(f"{release.NAME} {public}")

    def new_key(self, name: str) -> Path:
        """Make a key as the page says."""
        (line,) = re.findall(r"`(ssh-keygen -t .*?) -f FILE`", MAKES.read_text())
        key = self.folder / name
        self.assertEqual(0, run(*line.split(), "-q", "-N", "", "-f", key, cwd=self.folder))
        return key

    def verified(self) -> bool:
        """Tell whether the line of the page finds the release good."""
        (line,) = re.findall(r"`(sha256sum .*? && ssh-keygen -Y verify .*?)`", CHECKS.read_text())
        return not run("sh", "-c", line, cwd=self.dist)

    def test_signed(self) -> None:
        """A signed release is good, until a byte of it changes."""
        release.sign(self.sums, str(self.key), self.signers)
        self.assertTrue(self.verified())
        (self.dist / "file").write_text("of another")
        self.assertFalse(self.verified(), "another file")
        release.sums(self.dist)
        self.assertFalse(self.verified(), "sums made anew, without a signature")

    def test_strange_key(self) -> None:
        """Nothing is signed by a key that users do not know, and such a signature is not good."""
        with contextlib.suppress(SystemExit):
            release.sign(self.sums, str(self.new_key("other")), self.signers)
            self.fail("it is signed")
        self.assertFalse(self.sums.with_suffix(".sig").exists())
        self.assertFalse(self.verified())

    def test_no_private_key(self) -> None:
        """The repository has no private key of ssh-keygen."""
        head = "BEGIN OPENSSH " + "PRIVATE KEY"
        self.assertEqual(1, run("git", "grep", "--quiet", head, cwd=releasable.ROOT))


if __name__ == "__main__":
    unittest.main()
