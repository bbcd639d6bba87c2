"""Passkeys, from the terminal."""

from __future__ import annotations

from tests.cli.daemon import PASSPHRASE, CommandCase

PASSKEYS = "/v1/operator/passkeys"
RULE = {"everything": False, "actions": ["post", "mail-*"]}


class PasskeysTests(CommandCase):
    """What counts, and what needs it."""

    def setUp(self) -> None:
        """Serve."""
        super().setUp()
        self.serve()

    def test_list(self) -> None:
        """Each is listed by its name, and what needs one is said."""
        item = {"id": "key-1", "name": "Mine", "made_at": "then", "count": 3}
        self.site.answer("GET", PASSKEYS, {"items": [item], "rule": RULE})
        shown = self.as_operator("operator", "passkey", "list")[1]
        self.assertIn("Mine", shown)
        self.assertIn("Approvals of these actions need a passkey: post, mail-*.", shown)

    def test_require(self) -> None:
        """Names, or all; one of both."""
        self.site.answer("POST", f"{PASSKEYS}/rule", {"items": [], "rule": RULE})
        self.assertEqual(self.as_operator("operator", "passkey", "require", "post", "mail-*")[0], 0)
        self.assertIn(RULE, [each.body for each in self.site.asked])
        for wrong in ((), ("post", "--all")):
            self.assertEqual(self.command("operator", "passkey", "require", *wrong)[0], 2)

    def test_add(self) -> None:
        """What counts is confirmed by the words that the person types."""
        added = {"id": "key-1", "name": "Mine", "made_at": "then", "count": 0}
        self.site.answer("POST", f"{PASSKEYS}/confirm", added)
        self.typed = ["baby engage", PASSPHRASE]
        self.assertIn("The passkey Mine counts from now on.", self.command("operator", "passkey", "add")[1])
        self.assertIn({"words": "baby engage"}, [each.body for each in self.site.asked])

    def test_reset(self) -> None:
        """All are forgotten."""
        self.site.answer("DELETE", PASSKEYS, {"items": [], "rule": {"everything": False, "actions": []}})
        self.assertEqual(
            self.as_operator("operator", "passkey", "reset")[:2],
            (0, "No passkey counts any more, and no approval needs one.\n"),
        )
