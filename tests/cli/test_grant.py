"""What is granted is what was typed, shown, and said yes to."""

from __future__ import annotations

from typing import Any

from aileron.errors import InvalidRequest
from tests.cli.daemon import DECIDE, ONE, RUN, CommandCase, approval

GRANT: dict[str, Any] = {
    "id": "01GRANT",
    "action": "ship-update",
    "state": "live",
    "suspended": None,
    "predicates": [{"argument": "channel", "kind": "one_of", "given": ["#eng", "#ops\u202e"]}],
    "exact": {"summary": "one\ntwo"},
    "uses": 5,
    "left": 3,
    "not_after": "2026-01-01T08:00:00.000000Z",
    "session_id": None,
    "run_id": RUN,
    "made_at": "2026-01-01T00:00:00.000000Z",
    "made_by": "operator",
    "used_at": None,
    "revoked_at": None,
    "bound": {"the action's file": "sha256:1"},
}


class GrantCase(CommandCase):
    """A daemon with one approval and one grant."""

    def setUp(self) -> None:
        """Both are there."""
        super().setUp()
        self.serve()
        waiting = {**approval()["run"], "arguments": {"channel": "#eng", "summary": "one\ntwo", "share": 2}}
        self.one_waits(run=waiting)
        self.site.answer("POST", DECIDE, {**approval(approved=True), "grant": GRANT})
        self.site.answer("GET", "/v1/grants", {"items": [GRANT]})
        self.site.answer("GET", "/v1/grants/01GRANT", GRANT)

    def approve(self, *words: str) -> tuple[int, str, str]:
        """Approve with these options."""
        return self.as_operator("approval", "approve", RUN, "--yes", *words)


class ApproveTests(GrantCase):
    """C{approval approve --grant}."""

    def test_sent(self) -> None:
        """What is typed arrives: each value of the kind that stands in the call."""
        code, out, _ = self.approve(
            *("--grant", "--uses", "5", "--for", "8h", "--all-sessions"),
            *(
                "--allow",
                "channel=one-of:#eng,#ops",
                "--allow",
                "summary=pattern:v[0-9]=:x",
                "--allow",
                "share=range:1..2.5",
            ),
        )
        self.assertEqual(code, 0)
        (body,) = self.site.bodies("POST", DECIDE)
        grant = body["grant"]
        self.assertEqual((grant["uses"], grant["session"]), (5, False))
        self.assertRegex(grant["not_after"], r"^\d{4}-.*Z$")
        self.assertEqual(
            grant["predicates"],
            [
                {"argument": "channel", "kind": "one_of", "given": ["#eng", "#ops"]},
                {"argument": "summary", "kind": "pattern", "given": "v[0-9]=:x"},
                {"argument": "share", "kind": "range", "given": {"minimum": 1, "maximum": 2.5}},
            ],
        )
        self.assertIn("aileron grant revoke 01GRANT", out)

    def test_shown(self) -> None:
        """Before the answer it is said what will be allowed, loudly where that is anything, and what must stay."""
        out = self.approve("--grant", "--allow", "summary=any", "--allow", "share=equals:2")[1]
        for part in (
            "And from now on, without asking you",
            "up to 1 more calls of this session, until ",
            "    summary: ANY VALUE AT ALL, and none\n",
            "    share: exactly 2\n",
            "channel: exactly  #eng",
            "and no other argument is given",
        ):
            self.assertIn(part, out)

    def test_suggested(self) -> None:
        """What could be allowed of the arguments without much thought is shown with the approval."""
        suggested = [{"argument": "to", "kind": "domain", "given": ["a.org", "b.org"]}]
        self.site.answer("GET", ONE, {**approval(), "suggested": suggested})
        self.assertIn("  --allow to=domain:a.org,b.org\n", self.as_operator("approval", "show", RUN)[1])

    def test_more_kinds(self) -> None:
        """Domains, values as JSON, and ranges open on one side are read."""
        self.approve("--grant", "--allow", "channel=domain:a.org, *.b.org", "--allow", 'share=one-of:[1, 2.0, "3"]')
        self.approve("--grant", "--allow", "share=range:..3")
        given = [each["given"] for body in self.site.bodies("POST", DECIDE) for each in body["grant"]["predicates"]]
        self.assertEqual(given, [["a.org", "*.b.org"], [1, 2.0, "3"], {"maximum": 3}])
        self.assertEqual([type(each) for each in given[1]], [int, float, str])

    def test_no_grant(self) -> None:
        """Without --grant nothing is granted, and its options are refused."""
        self.approve()
        self.assertEqual(self.site.bodies("POST", DECIDE)[0].get("grant"), None)
        for words in (("--uses", "2"), ("--for", "1h"), ("--allow", "a=any"), ("--session",)):
            self.assertEqual(self.approve(*words)[0], 2)
        self.assertEqual(len(self.site.bodies("POST", DECIDE)), 1)

    def test_wrong(self) -> None:
        """What cannot be read is refused before anything is decided."""
        for words in (
            ("--allow", "channel"),
            ("--allow", "channel=like:x"),
            ("--allow", "channel=equals"),
            ("--allow", "channel=any:x"),
            ("--allow", "share=equals:x"),
            ("--allow", "share=range:1-2"),
            ("--for", "soon"),
            ("--uses", "1001"),
        ):
            self.assertEqual(self.approve("--grant", *words)[0], 2, words)
        self.assertEqual(self.site.bodies("POST", DECIDE), [])

    def test_refused(self) -> None:
        """What the daemon finds wrong is told, each fault."""
        refusal = InvalidRequest.listing("This cannot be granted.", ("/grant/predicates/0/given", "must be a pattern"))
        self.site.answer("POST", DECIDE, refusal)
        code, _, told = self.approve("--grant")
        self.assertEqual(code, 1)
        self.assertIn("must be a pattern", told)


class GrantTests(GrantCase):
    """C{grant list}, C{show} and C{revoke}."""

    def test_list(self) -> None:
        """Each with its state and what is left."""
        out = self.as_operator("grant", "list")[1]
        self.assertIn("01GRANT", out)
        self.assertIn("3 of 5", out)
        self.assertIn("all sessions", out)

    def test_nothing(self) -> None:
        """That there are none is said."""
        self.site.answer("GET", "/v1/grants", {"items": []})
        self.assertIn("You have granted nothing.", "".join(self.as_operator("grant", "list")[1:]))

    def test_show(self) -> None:
        """One is shown whole, what would not be seen made visible, and why it allows nothing at the top."""
        out = self.as_operator("grant", "show", "01GRANT")[1]
        self.assertIn('channel: one of "#eng", "#ops\\u202e"', out)
        self.assertIn("summary: exactly  one␊two", out)
        self.site.answer("GET", "/v1/grants/01GRANT", {**GRANT, "suspended": "It was changed."})
        self.assertIn("IT ALLOWS NOTHING NOW: It was changed.", self.as_operator("grant", "show", "01GRANT")[1])

    def test_revoke(self) -> None:
        """One is revoked."""
        self.site.answer("DELETE", "/v1/grants/01GRANT", {**GRANT, "state": "revoked"})
        code, out, _ = self.as_operator("grant", "revoke", "01GRANT")
        self.assertEqual((code, out), (0, "01GRANT is revoked; you are asked again.\n"))
