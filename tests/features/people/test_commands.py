"""C{aileron people}: a name is checked before anything is asked for."""

from __future__ import annotations

from tests.cli.daemon import CommandCase


class PeopleCommandTests(CommandCase):
    """A daemon that must not be asked."""

    def test_bad_name(self) -> None:
        """A name that no account can have is told in words, before a passphrase is asked for."""
        self.serve()
        for name in ("Alice", "al ice", "a.b", "a" * 33, "alice\n", ""):
            code, _, err = self.command("people", "add", name)
            self.assertEqual((2, True), (code, "at most 32 small letters" in " ".join(err.split())), err)
        self.assertEqual([], self.site.bodies("POST", "/v1/people"))
