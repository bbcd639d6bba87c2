"""The page of the passkeys."""

from __future__ import annotations

from aileron.testing import SoftwareAuthenticator
from aileron.values import PasskeyRule

from .case import ADDRESS, WebCase, read


class PasskeysPageTests(WebCase):
    """What it shows."""

    def text(self) -> str:
        """The page's text."""
        heard = self.fragment("/settings/passkeys")
        self.assertEqual(heard.status, 200)
        return read(heard.text).text

    def test_none(self) -> None:
        """Where there is none it says so, and that none is needed."""
        self.assertIn("There is no passkey yet.", self.text())
        self.assertIn("No approval needs one.", self.text())

    def test_listed(self) -> None:
        """Each is listed by its name, made visible, with what needs one."""
        passkeys = self.deps.passkeys
        made = SoftwareAuthenticator(ADDRESS).made(passkeys.offer())
        passkeys.confirm(passkeys.propose("<b>My\u202e key", made))
        passkeys.require(PasskeyRule(False, ("post", "mail-*")))
        shown = self.text()
        self.assertIn("<b>My\\u202e key", shown)
        self.assertIn("Approvals of these actions need one: post, mail-*.", shown)
        self.assertNotIn("There is no passkey yet.", shown)
        passkeys.require(PasskeyRule(everything=True))
        self.assertIn("Every approval needs one.", self.text())
