"""What is said."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import to_json
from aileron.base.text import visible
from aileron.features.notices import rules
from aileron.features.notices._composer import MOST_LINES, message_of
from aileron.features.notices.values import Message, Notice
from tests.extent import examples

from .case import AT, EVERY_RULE, PAGE, notice


def said(*notices: Notice, more: int = 0) -> Message:
    """The message of these."""
    now = AT + timedelta(seconds=90)
    return message_of(
        notices, more, message_id="message-1", now=now, page=lambda run: PAGE if run is None else f"{PAGE}/{run}"
    )


class MessageTests(SynchronousTestCase):
    """From notices to a message."""

    def test_one(self) -> None:
        """Of one call it is said what, by whom, and since when; the page is its own."""
        told = said(notice(agent="opencode"))
        self.assertEqual(told.title, "Aileron: ship-update is waiting for your approval")
        self.assertEqual(told.url, f"{PAGE}/run-1")
        (line,) = told.lines
        self.assertEqual(line, "Ship-update is waiting for your approval, by opencode, session session-1, 1 min ago.")
        self.assertTrue(said(notice(at=AT - timedelta(hours=3))).lines[0].endswith(", 3 h ago."))

    def test_many(self) -> None:
        """A burst is said as a number, alike calls in one line, and the page is the list."""
        told = said(*(notice(number=number) for number in range(12)))
        self.assertEqual((told.title, told.url), ("Aileron: 12 requests are waiting for your approval", PAGE))
        (line,) = told.lines
        self.assertIn("(12 times)", line)
        self.assertEqual(to_json(told)["count"], 12)

    def test_worst_first(self) -> None:
        """What is wrong stands first, and makes the message urgent."""
        told = said(notice(), notice(rules.TAMPER, action=None, reason="The vault was put back."))
        self.assertEqual(told.title, "Aileron: signs of tampering found, and 1 more")
        self.assertTrue(told.lines[0].endswith("The vault was put back."))
        self.assertEqual((told.urgent, said(notice()).urgent), (True, False))

    def test_order(self) -> None:
        """Whatever comes first, notices stand in the order of their urgency; those of a feature by its own rank."""
        every = sorted(EVERY_RULE, key=lambda each: each.kind)
        told = said(*(notice(each, number) for number, each in enumerate(every)))
        self.assertEqual(
            [each.rule.kind for each in told.notices],
            [
                "tamper_detected",
                "session_broken",
                "session_floods",
                "spending_reached",
                "spending_runaway",
                "outcome_unknown",
                "awaiting_vault",
                "awaiting_credential",
                "credential_needs_you",
                "spending_warned",
                "approval_requested",
                "approval_asked_anew",
                "host_refused",
                "ask_requested",
                "paused",
                "resumed",
                "test",
            ],
        )
        urgent = {each.kind for each in EVERY_RULE if said(notice(each)).urgent}
        spending = {"spending_reached", "spending_runaway"}
        self.assertEqual(urgent, {"tamper_detected", "session_broken", "session_floods", "outcome_unknown"} | spending)

    def test_more(self) -> None:
        """What does not fit is counted."""
        told = said(*(notice(action=f"action-{number}", number=number) for number in range(10)), more=5)
        self.assertEqual(len(told.lines), MOST_LINES + 1)
        self.assertEqual(told.lines[-1], f"… and {10 - MOST_LINES + 5} more.")
        self.assertEqual(to_json(told)["count"], 15)

    def test_every_kind(self) -> None:
        """There are words for every kind, one or many, with and without a session."""
        for rule in EVERY_RULE:
            for session in ("session-1", None):
                one, other = (notice(rule, number, session=session) for number in (1, 2))
                for told in (said(one), said(one, other)):
                    self.assertNotIn("{", told.title + "".join(told.lines))
        self.assertIn("everything is paused", said(notice(rules.PAUSED, session=None)).title)

    def test_contents(self) -> None:
        """Arguments stand apart, where they were looked up at all."""
        told = said(notice(arguments='{"to": "canary"}'))
        self.assertNotIn("canary", "".join(told.lines) + told.title)
        self.assertEqual(told.contents, ('ship-update: {"to": "canary"}',))
        self.assertEqual(said(notice()).contents, ())

    @settings(deadline=None, max_examples=examples(100))
    @given(st.text(max_size=400), st.sampled_from(["action", "agent", "reason", "arguments", "session", "run_id"]))
    def test_wild(self, text: str, name: str) -> None:
        """Whatever an agent calls itself or its action, nothing in a message acts, hides or goes on for long."""
        told = said(evolve(notice(), **{name: text}))  # type: ignore[arg-type]
        for line in (told.title, *told.lines, *told.contents):
            self.assertEqual(visible(line), line)
            self.assertLess(len(line), 600)
