"""Pausing and limits, and moments that are said in the terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.approvals.grant import moment_of
from tests.cli.daemon import RUN, CommandCase

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
RUNS = [{"id": RUN, "action": "ship-update", "received_at": "2026-01-01T00:00:00.000000Z"}]


class MomentTests(SynchronousTestCase):
    """C{--not-before}."""

    def test_ahead(self) -> None:
        """So long from now."""
        for text, ahead in (
            ("+90s", timedelta(seconds=90)),
            ("+30m", timedelta(minutes=30)),
            ("+2h", timedelta(hours=2)),
            ("+1d", timedelta(days=1)),
        ):
            self.assertEqual(moment_of(text, NOW), NOW + ahead)

    def test_moments(self) -> None:
        """A date and time, with an offset or in the zone of this machine."""
        self.assertEqual(moment_of("2026-03-01T09:00+01:00", NOW), datetime(2026, 3, 1, 8, 0, tzinfo=UTC))
        self.assertEqual(moment_of("2026-03-01T09:00", NOW), datetime(2026, 3, 1, 9, 0).astimezone(UTC))

    def test_nonsense(self) -> None:
        """Anything else is refused."""
        for text in ("", "tomorrow", "+2", "2h", "+-1h", "2026-02-30"):
            self.assertRaises(click.BadParameter, moment_of, text, NOW)


class BrakeCase(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()


class PauseTests(BrakeCase):
    def test_pause(self) -> None:
        """What is under way is told, and how to go on."""
        pause = {"since": "2026-01-01T00:00:00.000000Z", "by": "o", "reason": None, "session_id": None}
        self.site.answer("POST", "/v1/pause", {"pause": pause, "under_way": RUNS})
        code, out, err = self.as_operator("pause", "--reason", "look")
        self.assertEqual((code, "Nothing more begins" in out, RUN in out), (0, True, True))
        self.assertIn("aileron resume", err)
        self.assertEqual(self.site.bodies("POST", "/v1/pause"), [{"session": None, "reason": "look"}])

    def test_resume(self) -> None:
        """What is asked anew is told."""
        self.site.answer("POST", "/v1/resume", {"asked_anew": RUNS})
        code, out, _ = self.as_operator("resume", "--session", "S")
        self.assertEqual((code, "Resumed." in out, RUN in out), (0, True, True))
        self.assertEqual(self.site.bodies("POST", "/v1/resume"), [{"session": "S"}])


class CapTests(BrakeCase):
    def test_set(self) -> None:
        """What was said is sent, and what stands is shown."""
        item = {"action": "mail", "argument": "to", "per_session": True, "window": "per_hour", "most": 3}
        self.site.answer("POST", "/v1/caps", {"items": [{**item, "set_at": "2026-01-01", "set_by": "o"}]})
        code, out, _ = self.as_operator("cap", "set", "mail", "--per-hour", "3", "--per-session", "--argument", "to")
        self.assertEqual(code, 0)
        self.assertIn("mail    3     an hour  value of to, session  2026-01-01", out)
        sent = {"action": "mail", "per_hour": 3, "per_session": True, "argument": "to"}
        self.assertEqual(self.site.bodies("POST", "/v1/caps"), [sent])

    def test_remove(self) -> None:
        """One is removed by what it is for."""
        self.site.answer("DELETE", "/v1/caps", {"items": []})
        code, out, _ = self.as_operator("cap", "remove", "--per-day")
        self.assertEqual((code, out), (0, "You have set no limits of your own.\n"))
        self.assertEqual(self.site.bodies("DELETE", "/v1/caps"), [{"window": "per_day", "per_session": False}])

    def test_usage(self) -> None:
        """What says too little is refused before anybody is asked for a passphrase."""
        for words in (("set", "mail"), ("remove", "mail"), ("set", "--argument", "to", "--per-hour", "1")):
            self.assertEqual(self.as_operator("cap", *words)[0], 2, words)
