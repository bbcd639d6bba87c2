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
        item = {"id": "ops_1", "browser": True, "started_at": "then", "expires_at": "later"}
        self.site.answer("GET", LOGINS, {"items": [item]})
        self.assertIn("ops_1  browser  then   later", self.as_operator("operator", "list")[1])

    def test_end(self) -> None:
        """One is ended by its id, all by --all; without a word of which nothing is."""
        self.site.answer("DELETE", f"{LOGINS}/ops_1", {"ended": ["ops_1"]})
        self.site.answer("DELETE", LOGINS, {"ended": ["ops_1", "ops_2"]})
        self.assertEqual(self.as_operator("operator", "end", "ops_1")[:2], (0, "Ended: ops_1.\n"))
        self.assertEqual(self.as_operator("operator", "end", "--all")[:2], (0, "Ended: ops_1, ops_2.\n"))
        for wrong in ((), ("ops_1", "--all")):
            self.assertEqual(self.command("operator", "end", *wrong)[0], 2)
