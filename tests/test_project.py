"""The file by which a project restricts what agents may use in it."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.home.project import find_selection
from aileron.model.errors import InvalidRequest


class ProjectTests(SynchronousTestCase):
    """L{find_selection}."""

    def setUp(self) -> None:
        self.home = Path(self.mktemp()).absolute()
        self.project = self.home / "work" / "shop"
        (self.project / "src").mkdir(parents=True)

    def found(self, directory: Path) -> object:
        """What applies in a directory."""
        return find_selection(str(directory), str(self.home))

    def put(self, text: str, place: Path | None = None) -> Path:
        """Write the file."""
        path = (place or self.project) / ".aileron.toml"
        path.write_text(text)
        return path

    def test_nearest(self) -> None:
        """The nearest file above applies, up to the repository's root; none of the home directory or above it."""
        self.assertIsNone(self.found(self.project))
        self.put("[tools]", self.home)
        self.assertIsNone(self.found(self.project))
        path = self.put('[tools]\nallow = ["effect:read"]\ndeny = ["tag:mail"]\n')
        expected = (str(path), {"allow": ["effect:read"], "deny": ["tag:mail"]})
        self.assertEqual(self.found(self.project / "src"), expected)
        (self.project / "src" / ".git").mkdir()
        self.assertIsNone(self.found(self.project / "src"))

    def test_refused(self) -> None:
        """A file that is not understood is refused: it might have taken something away."""
        for text in (
            "",
            "tools = 1",
            "[tools]\nallow = 'x'",
            "[tools]\nallow = [1]",
            "[tools]\nallow = ['effect:none']",
            "[tools]\nallow = ['a b']",
            "[tools]\nprofile = 'x'",
            "[tools]\n[other]",
            "[tools",
            "[tools]\nallow = [" + "'a'," * 65 + "]",
            "[tools]\n" + "#" * 70_000,
        ):
            path = self.put(text)
            error = self.assertRaises(InvalidRequest, self.found, self.project)
            self.assertIn(str(path), error.message)

    def test_link(self) -> None:
        """A symbolic link is not followed."""
        other = self.home / "other.toml"
        other.write_text("[tools]")
        (self.project / ".aileron.toml").symlink_to(other)
        self.assertRaises(InvalidRequest, self.found, self.project)
