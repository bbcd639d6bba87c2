"""What was denied stays so for a while, and an agent that goes on and on is stopped."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.comparison import normalize_text
from aileron.base.json import JSON, timestamp, utc
from aileron.model.authority import LoopLimits
from aileron.model.errors import ApprovalDenied, Conflict, LimitExceeded, NotFound
from aileron.model.runs import Run, RunState
from aileron.runner import loops
from aileron.runner.call_digests import request_digest
from aileron.runner.loops import CallCounts
from tests.extent import examples
from tests.growth import seconds

from .kit import OPERATOR, step
from .test_decisions import DecidedCase

MOST = LoopLimits()


class DeniedCase(DecidedCase):
    """A home where something was denied."""

    def deny(self, text: str = "hello", reason: str | None = "not today", session: str = "session-1") -> Run:
        """Ask and deny."""
        run = self.submit("gated", {"text": text}, session=session)
        self.approve(run, approved=False, reason=reason)
        return run

    def turned_away(self, text: str = "hello", session: str = "session-1") -> ApprovalDenied:
        """A call that is refused since the same was denied."""
        call = self.call("gated", {"text": text}, session=session)
        error = self.fails(self.runner.submission.submit(call), ApprovalDenied)
        assert isinstance(error, ApprovalDenied)
        return error

    def stopped(self, action: str, arguments: Mapping[str, JSON], session: str) -> LimitExceeded:
        """A call that is refused since its session or action is stopped."""
        error = self.fails(self.runner.submission.submit(self.call(action, arguments, session=session)), LimitExceeded)
        assert isinstance(error, LimitExceeded)
        return error

    def rule(self, lines: str) -> None:
        """Write another C{[approval]}."""
        self.offer("gated", step("post"), expires=lines)

    def broken(self) -> int:
        """How often it is on record that somebody was stopped."""
        found = self.sql("SELECT count(*) FROM audit_events WHERE type = 'session.broken'")
        return int(str(found[0][0]))


class CoolDownTests(DeniedCase):
    """The cool-down."""

    def test_refused(self) -> None:
        """The same is refused for ten minutes, with reason and end, to any session; no row is kept."""
        run = self.deny()
        until = timestamp(utc(self.clock.seconds() + 600))
        for session in ("session-1", "session-2"):
            refused = self.turned_away(session=session)
            details = {"run_id": run.id, "until": until, "retry_after": 600, "reason": "not today"}
            self.assertEqual((refused.details, refused.status), (details, 403))
            self.assertIn("not today", refused.message)
            self.assertIn(until, refused.message)
        self.assertEqual(self.sql("SELECT count(*) FROM runs"), [(1,)])
        self.clock.advance(600)
        self.assertIs(self.submit().state, RunState.PENDING)

    def test_invisible(self) -> None:
        """A character that cannot be seen makes no other request, in texts as in the names of their members."""
        self.deny("Send it")
        for each in (
            "Send\u200b it",
            "Se\u00adnd it",
            "Send it\ufe0f",
            "Send it\U000e0041",
            "Send\x00 it",
            "Send\u2800it",
        ):
            self.turned_away(each)

    def test_form(self) -> None:
        """What the connector says means the same is the same, also after a restart."""
        self.offer("gated", step("post", inputs='to = "${args.text}"'))
        self.deny("Bob <b@example.org>")
        self.turned_away("b@example.org")
        self.restart()
        self.turned_away("b@example.org")
        self.assertIs(self.submit("gated", {"text": "c@example.org"}).state, RunState.PENDING)

    def test_same(self) -> None:
        """However it is written it is the same; another action, number, word or sign is not; the operator may."""
        self.offer("other", step("post"))
        self.deny("Send it to Anna, please!", reason=None)
        self.next_life()
        for text in ("send it  to ANNA, please!", " Send\tit to Anna,\nplease! ", "Ｓｅｎｄ it to\u00a0Anna, please!"):
            self.assertNotIn("reason", self.turned_away(text).details)
        for text in ("Send it to Anna, please", "Send it to Bela, please!"):
            self.submit("gated", {"text": text})
        same: Mapping[str, JSON] = {"text": "Send it to Anna, please!"}
        self.submit("gated", {**same, "times": 2})
        self.submit("other", same)
        self.submit("gated", same, session=None)

    def test_manifest(self) -> None:
        """The manifest says how long; nothing is a way to switch it off."""
        self.rule('cool_down = "1h"')
        self.deny()
        self.clock.advance(3599)
        self.turned_away()
        self.clock.advance(1)
        self.rule('cool_down = "0s"')
        self.deny()
        self.submit()


class ForgiveTests(DeniedCase):
    """The operator lifts it."""

    def test_forgiven(self) -> None:
        """That denial alone can be asked again at once, also in the next life, and that is on record once."""
        run = self.deny()
        self.deny("another")
        for _ in range(2):
            self.sync(self.runner.limits.forgive(run.id, OPERATOR))
        waiting = self.submit()
        self.assertEqual(self.events(run).count("approval.forgiven"), 1)
        self.next_life()
        self.submit("gated", {"text": "hello"}, session="session-2")
        self.turned_away("another")
        self.fails(self.runner.limits.forgive(waiting.id, OPERATOR), Conflict)
        self.fails(self.runner.limits.forgive("nobody", OPERATOR), NotFound)

    def test_goes_on(self) -> None:
        """Who was stopped for denials goes on."""
        runs = [self.deny(f"number {number}") for number in range(MOST.denials)]
        self.stopped("open", {"text": "x"}, "session-1")
        self.sync(self.runner.limits.forgive(runs[0].id, OPERATOR))
        self.submit("open")


class BreakerTests(DeniedCase):
    """Loops."""

    def test_denials(self) -> None:
        """A session with five denials within ten minutes is refused everything for ten minutes, on record once.

        A restart does not let it go on.
        """
        for number in range(MOST.denials):
            self.deny(f"number {number}")
        refused = self.stopped("open", {"text": "x"}, "session-1")
        self.assertIn("Stop, and ask your user what to do.", refused.message)
        self.assertEqual(refused.details, {"retry_after": 600})
        self.submit("open", session="session-2")
        self.next_life()
        self.stopped("open", {"text": "x"}, "session-1")
        self.assertEqual(self.broken(), 1)
        self.clock.advance(600)
        self.submit("open")

    def test_slow_denials(self) -> None:
        """Denials far apart stop nobody."""
        for number in range(MOST.denials * 2):
            self.deny(f"number {number}")
            self.clock.advance(200)
        self.submit("open")

    def test_sessions_anew(self) -> None:
        """An action that is denied ten times is stopped for all agents, however many sessions they open."""
        for number in range(MOST.denials_of_action):
            self.deny(f"number {number}", session=f"session-{number}")
        refused = self.stopped("gated", {"text": "fresh"}, "session-fresh")
        self.assertIn("This action is refused for a while", refused.message)
        self.submit("open", session="session-fresh")
        self.submit("gated", {"text": "fresh"}, session=None)

    def test_many_calls_between(self) -> None:
        """However many other calls an agent makes between denials, they are counted together."""
        self.offer("reading", step("look"), gated=False)
        self.patch(loops, "CallCounts", partial(CallCounts, most_keys=8))
        self.restart()
        for number in range(MOST.denials):
            self.deny(f"number {number}")
            for other in range(20):
                self.runner.decisions._denials._breaker.refuse(self.session("session-2"), "reading", {"text": other})
        self.stopped("open", {"text": "x"}, "session-1")

    def test_same_call(self) -> None:
        """The same call more than thirty times within a minute stops its session, gated or not, refused or not.

        Neither another session nor the operator is stopped.
        """
        for _ in range(MOST.same_calls + 5):
            self.submit("open", session=None)
        self.assertEqual(self.broken(), 0)
        for _ in range(MOST.same_calls):
            self.submit("open")
        self.stopped("open", {"text": "hello"}, "session-1")
        self.stopped("gated", {"text": "another"}, "session-1")
        self.assertEqual(self.broken(), 1)
        self.deny(session="session-2")
        for _ in range(MOST.same_calls - 1):
            self.turned_away(session="session-2")
        self.stopped("gated", {"text": "hello"}, "session-2")
        self.submit("open", session="session-3")

    def test_other_calls(self) -> None:
        """Other arguments are another call, and so is the same a minute later."""
        for number in range(MOST.same_calls):
            self.submit("open", {"text": f"{number}"})
        self.clock.advance(3600)
        for _ in range(MOST.same_calls):
            self.submit("open")
        self.clock.advance(60)
        self.submit("open")

    def test_same_call_of_all(self) -> None:
        """The same call by many sessions stops the action for all agents."""
        for number in range(MOST.same_calls_of_all):
            self.submit("open", session=f"session-{number % 5}")
        self.stopped("open", {"text": "hello"}, "session-6")


MINUTE = timedelta(minutes=1)


def at(seconds: float) -> datetime:
    """A moment of a day."""
    return utc(1_800_000_000 + seconds)


class CountsTests(SynchronousTestCase):
    """L{CallCounts}."""

    def test_forgotten(self) -> None:
        """A key that was not counted for a minute takes no memory; one that was counted again stays."""
        counts = CallCounts(MINUTE)
        for number in range(100):
            counts.is_beyond(number, 1, at(number / 100))
        counts.is_beyond(0, 1, at(30))
        counts.is_beyond("new", 1, at(61))
        self.assertEqual(len(counts), 2)
        self.assertTrue(counts.is_beyond(0, 1, at(62)))

    def test_most_keys(self) -> None:
        """Beyond so many keys the one that was counted longest ago is forgotten, however late it was."""
        counts = CallCounts(MINUTE, most_keys=2)
        for key in ("a", "b", "a", "c"):
            counts.is_beyond(key, 9, at(0))
        self.assertEqual(len(counts), 2)
        self.assertTrue(counts.is_beyond("a", 2, at(1)))
        self.assertFalse(counts.is_beyond("b", 1, at(1)))

    def test_time(self) -> None:
        """What was counted a whole minute ago counts no more; what lies ahead, after the clock was set back, does."""
        counts = CallCounts(MINUTE)
        self.assertEqual([counts.is_beyond("a", 1, at(second)) for second in (0, 60, 119.9)], [False, False, True])
        counts.is_beyond("b", 1, at(3600))
        self.assertTrue(counts.is_beyond("b", 1, at(1)))


_TEXTS = st.text(max_size=60)
_VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=8,
)


def same(one: JSON, other: JSON) -> bool:
    """Whether they have one digest."""
    return request_digest(one) == request_digest(other)


class SameRequestTests(SynchronousTestCase):
    """Arguments side by side."""

    def test_kinds(self) -> None:
        """Numbers, truth values, texts and nothing are of kinds of their own."""
        values: list[JSON] = [1, 1.0, True, "1", None, [1], {"a": 1}, "", 0, False]
        self.assertEqual(len({request_digest(each) for each in values}), len(values))

    def test_texts(self) -> None:
        """Case, whitespace and other forms of a letter make no difference; another word or sign does, at any place."""
        for other in ("hello world", "HELLO \n world", "\tHello\u00a0\u3000World ", "ｈｅｌｌｏ world"):
            self.assertTrue(same("Hello World", other), other)
        for other in ("hello word", "helloworld", "hello world 2", "", "hello, world", "Hello World!", "hello-world"):
            self.assertFalse(same("Hello World", other), other)
        self.assertTrue(same("Straße \u00e9", "STRASSE e\u0301"))
        self.assertFalse(same("!", "?"))
        self.assertFalse(same("é" * 50_000 + "a", "é" * 50_000 + "b"))

    def test_recursive(self) -> None:
        """Lists are compared element by element, objects by their names, at any depth."""
        self.assertTrue(same({"to": ["Anna", {"n": "bela"}], "x": 1}, {"x": 1, "to": ["anna ", {"n": "Bela"}]}))
        self.assertFalse(same({"to": ["Anna", "bela"]}, {"to": ["bela", "anna"]}))
        self.assertFalse(same({"to": ["Anna"]}, {"to": ["Anna", "Anna"]}))
        self.assertFalse(same({"to": "Anna"}, {"to": "Anna", "cc": None}))
        self.assertFalse(same({"to": "Anna"}, {"To": "Anna"}))
        self.assertTrue(same({"n": {"a\u200b": 1}}, {"n": {"a": 1}}))
        self.assertFalse(same({"a": 1, "a\u200b": 2}, {"a": 1}))

    @settings(deadline=None, max_examples=examples(100))
    @given(_VALUES)
    def test_total(self, value: JSON) -> None:
        """Whatever JSON can say has a digest, and one only."""
        self.assertTrue(same(value, value))

    @settings(deadline=None, max_examples=examples(100))
    @given(
        st.lists(st.text(alphabet="aBcé1,", min_size=1, max_size=8), max_size=5), st.sampled_from((" ", "\n\t ", "　"))
    )
    def test_written_otherwise(self, words: list[str], between: str) -> None:
        """Whitespace and case alone never make another request."""
        self.assertTrue(same(" ".join(words), between + between.join(words).upper()))

    def test_bounded(self) -> None:
        """Huge texts, and many marks on one letter, are compared in no time."""
        for text in ("word " * 1_000_000, "wörd " * 100_000, "a" + "\u0301\u0323" * 200_000):
            self.assertLess(seconds(partial(normalize_text, text)), 1)
