"""The operator's own logins, from the terminal."""

from __future__ import annotations

from tests.cli.daemon import CommandCase

LOGINS = "/v1/operator/sessions"


class LoginsTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()

    def test_list(self) -> None:
        """Each is listed with where it is and until when it lasts."""
        item = {"id": "ops_1", "browser": True, "started_at": "then", "used_at": "now", "expires_at": "later"}
        items = [{**item, "yours": False}, {**item, "id": "ops_2", "browser": False, "yours": True}]
        self.site.answer("GET", LOGINS, {"items": items})
        shown = [line.split() for line in self.as_operator("operator", "list")[1].splitlines()[1:]]
        self.assertEqual(shown[0], ["ops_1", "browser", "then", "now", "later"])
        self.assertEqual(shown[1], ["ops_2", "this", "command", "then", "now", "later"])

    def test_end(self) -> None:
        """One is ended by its id, all by --all; without a word of which nothing is."""
        self.site.answer("DELETE", f"{LOGINS}/ops_1", {"ended": ["ops_1"]})
        self.site.answer("DELETE", LOGINS, {"ended": ["ops_1", "ops_2"]})
        self.assertEqual(self.as_operator("operator", "revoke", "ops_1")[:2], (0, "Ended: ops_1.\n"))
        self.assertEqual(self.as_operator("operator", "revoke", "--all")[:2], (0, "Ended: ops_1, ops_2.\n"))
        for wrong in ((), ("ops_1", "--all")):
            self.assertEqual(self.command("operator", "revoke", *wrong)[0], 2)
