"""Grants, limits and pauses: what is allowed or stopped is what was typed, shown, and said yes to."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.approvals.grant import moment_of
from aileron.model.errors import InvalidRequest
from tests.cli.daemon import DECIDE, ONE, RUN, CommandCase, ServedCase, answered, approval

GRANT = answered(
    "grant",
    id="01GRANT",
    suspended=None,
    predicates=[{"argument": "channel", "kind": "one_of", "given": ["#eng", "#ops\u202e"]}],
    exact={"summary": "one\ntwo"},
    uses=5,
    left=3,
    session_id=None,
)


class GrantCase(CommandCase):
    """A daemon with one approval and one grant."""

    def setUp(self) -> None:
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
        """What is typed arrives: each value of the kind that stands in the call, or as JSON; ranges may be open."""
        code, out, _ = self.approve(
            *("--grant", "--uses", "5", "--for", "8h", "--all-sessions", "--allow", "channel=one-of:#eng,#ops"),
            *("--allow", "summary=pattern:v[0-9]=:x", "--allow", "share=range:1..2.5"),
        )
        self.assertEqual(code, 0)
        self.assertIn("aileron grant revoke 01GRANT", out)
        self.approve("--grant", "--allow", "channel=domain:a.org, *.b.org", "--allow", 'share=one-of:[1, 2.0, "3"]')
        self.approve("--grant", "--allow", "share=range:..3")
        grants = [body["grant"] for body in self.site.bodies("POST", DECIDE)]
        self.assertEqual((grants[0]["uses"], grants[0]["session"]), (5, False))
        self.assertRegex(grants[0]["not_after"], r"^\d{4}-.*Z$")
        told = [tuple(each.values()) for grant in grants for each in grant["predicates"]]
        expected = [
            ("channel", "one_of", ["#eng", "#ops"]),
            ("summary", "pattern", "v[0-9]=:x"),
            ("share", "range", {"minimum": 1, "maximum": 2.5}),
            ("channel", "domain", ["a.org", "*.b.org"]),
            ("share", "one_of", [1, 2.0, "3"]),
            ("share", "range", {"maximum": 3}),
        ]
        self.assertEqual(told, expected)
        self.assertEqual([type(each) for each in told[4][2]], [int, float, str])

    def test_shown(self) -> None:
        """Before the answer it is said what will be allowed, and what must stay; what could be is shown."""
        out = self.approve("--grant", "--allow", "summary=any", "--allow", "share=equals:2")[1]
        for part in (
            "Also allowed, without asking you",
            "up to 1 more calls of this session, until ",
            "    summary: ANY VALUE AT ALL, and none\n",
            "    share: exactly 2\n",
            "channel: exactly  #eng",
            "and no other arguments",
        ):
            self.assertIn(part, out)
        suggested = [{"argument": "to", "kind": "domain", "given": ["a.org", "b.org"]}]
        self.site.answer("GET", ONE, {**approval(), "suggested": suggested})
        self.assertIn("  --allow to=domain:a.org,b.org\n", self.as_operator("approval", "show", RUN)[1])

    def test_no_grant(self) -> None:
        """Without --grant nothing is granted, and its options are refused."""
        self.approve()
        self.assertEqual(self.site.bodies("POST", DECIDE)[0].get("grant"), None)
        for words in (("--uses", "2"), ("--for", "1h"), ("--allow", "a=any"), ("--session",)):
            self.assertEqual(self.approve(*words)[0], 2)
        self.assertEqual(len(self.site.bodies("POST", DECIDE)), 1)

    def test_wrong(self) -> None:
        """What cannot be read is refused before anything is decided; what the daemon finds wrong is told."""
        for words in (
            ("--allow", "channel"),
            ("--allow", "channel=like:x"),
            ("--allow", "channel=equals"),
            ("--allow", "channel=any:x"),
            ("--allow", "share=equals:x"),
            ("--allow", "share=equals:NaN"),
            ("--allow", f"share=one-of:{'[' * 5000}"),
            ("--allow", "share=range:1-2"),
            ("--for", "soon"),
            ("--uses", "1001"),
        ):
            self.assertEqual(self.approve("--grant", *words)[0], 2, words)
        self.assertEqual(self.site.bodies("POST", DECIDE), [])
        refusal = InvalidRequest.listing("This cannot be granted.", ("/grant/predicates/0/given", "must be a pattern"))
        self.site.answer("POST", DECIDE, refusal)
        code, _, told = self.approve("--grant")
        self.assertEqual(code, 1)
        self.assertIn("must be a pattern", told)


class GrantTests(GrantCase):
    """C{grant list}, C{show} and C{revoke}."""

    def test_list(self) -> None:
        """Each is listed with its state and what is left, and can be revoked; that there are none is said."""
        out = self.as_operator("grant", "list")[1]
        self.assertIn("01GRANT", out)
        self.assertIn("3 of 5", out)
        self.assertIn("all sessions", out)
        self.site.answer("GET", "/v1/grants", {"items": []})
        self.assertIn("No grants.", "".join(self.as_operator("grant", "list")[1:]))
        self.site.answer("DELETE", "/v1/grants/01GRANT", {**GRANT, "state": "revoked"})
        code, out, _ = self.as_operator("grant", "revoke", "01GRANT")
        self.assertEqual((code, out), (0, "01GRANT is revoked. Such calls need your approval again.\n"))

    def test_show(self) -> None:
        """One is shown whole, what would not be seen made visible, and why it allows nothing at the top."""
        out = self.as_operator("grant", "show", "01GRANT")[1]
        self.assertIn('channel: one of "#eng", "#ops\\u202e"', out)
        self.assertIn("summary: exactly  one↵two", out)
        self.site.answer("GET", "/v1/grants/01GRANT", {**GRANT, "suspended": "It was changed."})
        self.assertIn("Suspended, allows nothing: It was changed.", self.as_operator("grant", "show", "01GRANT")[1])


NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
RUNS = [{"id": RUN, "action": "ship-update", "received_at": "2026-01-01T00:00:00.000000Z"}]


class MomentTests(SynchronousTestCase):
    """C{--not-before}."""

    def test_ahead(self) -> None:
        """So long from now, or a date and time with an offset or in this machine's zone; anything else is refused."""
        for text, ahead in (
            ("+90s", timedelta(seconds=90)),
            ("+30m", timedelta(minutes=30)),
            ("+2h", timedelta(hours=2)),
            ("+1d", timedelta(days=1)),
        ):
            self.assertEqual(moment_of(text, NOW), NOW + ahead)
        self.assertEqual(moment_of("2026-03-01T09:00+01:00", NOW), datetime(2026, 3, 1, 8, 0, tzinfo=UTC))
        self.assertEqual(moment_of("2026-03-01T09:00", NOW), datetime(2026, 3, 1, 9, 0).astimezone(UTC))
        for text in ("", "tomorrow", "+2", "2h", "+-1h", "2026-02-30"):
            self.assertRaises(click.BadParameter, moment_of, text, NOW)

    def test_daylight_saving(self) -> None:
        """A local time that comes twice or not at all is the later of what it can mean; one with an offset is exact."""
        self.addCleanup(time.tzset)
        present = os.environ.get("TZ")
        self.addCleanup(lambda: os.environ.pop("TZ") if present is None else os.environ.update(TZ=present))
        os.environ["TZ"] = "Europe/Berlin"
        time.tzset()
        twice, skipped = moment_of("2026-10-25T02:30", NOW), moment_of("2026-03-29T02:30", NOW)
        self.assertEqual(twice, datetime(2026, 10, 25, 1, 30, tzinfo=UTC))
        self.assertEqual(skipped, datetime(2026, 3, 29, 1, 30, tzinfo=UTC))
        self.assertEqual(moment_of("2026-10-25T02:30+02:00", NOW), datetime(2026, 10, 25, 0, 30, tzinfo=UTC))


class PauseTests(ServedCase):
    def test_pause(self) -> None:
        """What is under way is told, and how to go on; then what is asked anew."""
        pause = {"since": "2026-01-01T00:00:00.000000Z", "by": "o", "reason": None, "session_id": None}
        self.site.answer("POST", "/v1/pause", {"pause": pause, "under_way": RUNS})
        code, out, err = self.as_operator("pause", "--reason", "look")
        self.assertEqual((code, "No run starts until you resume" in out, RUN in out), (0, True, True))
        self.assertIn("aileron resume", err)
        self.assertEqual(self.site.bodies("POST", "/v1/pause"), [{"session": None, "reason": "look"}])
        self.site.answer("POST", "/v1/resume", {"asked_anew": RUNS})
        code, out, _ = self.as_operator("resume", "--session", "S")
        self.assertEqual((code, "Resumed." in out, RUN in out), (0, True, True))
        self.assertEqual(self.site.bodies("POST", "/v1/resume"), [{"session": "S"}])


class CapTests(ServedCase):
    def test_set(self) -> None:
        """What was said is sent, what stands is shown, one is removed by what it is for; too little is refused."""
        item = {"action": "mail", "argument": "to", "per_session": True, "window": "per_hour", "most": 3}
        self.site.answer("POST", "/v1/caps", {"items": [{**item, "set_at": "2026-01-01", "set_by": "o"}]})
        code, out, _ = self.as_operator("cap", "set", "mail", "--per-hour", "3", "--per-session", "--argument", "to")
        self.assertEqual(code, 0)
        self.assertIn("mail    3      an hour  value of to, session  2026-01-01", out)
        sent = {"action": "mail", "per_hour": 3, "per_session": True, "argument": "to"}
        self.assertEqual(self.site.bodies("POST", "/v1/caps"), [sent])
        self.site.answer("DELETE", "/v1/caps", {"items": []})
        code, out, _ = self.as_operator("cap", "remove", "--per-day")
        self.assertEqual((code, out), (0, "No limits of your own.\n"))
        self.assertEqual(self.site.bodies("DELETE", "/v1/caps"), [{"window": "per_day", "per_session": False}])
        for words in (("set", "mail"), ("remove", "mail"), ("set", "--argument", "to", "--per-hour", "1")):
            self.assertEqual(self.as_operator("cap", *words)[0], 2, words)
