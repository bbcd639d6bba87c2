"""The state of the view, and what each key makes of it."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.watching.keys import BACKSPACE, DOWN, ENTER, ESCAPE, PAGE_DOWN, UP
from aileron.cli.watching.model import Purpose, Size, State, Undoable, compared, listed, newcomers, resized
from aileron.cli.watching.pressing import Approve, Deny, Edit, Open, Quit, TakeBack, press_all
from tests.cli.daemon import RUN, approval
from tests.cli.watching.made import listing, pressed, reading, waiting

KEYS = st.sampled_from(("y", "n", "l", "d", "x", "e", "u", "q", "j", "k", " ", "b", "r", ENTER, ESCAPE, BACKSPACE, "z"))


class ListTests(SynchronousTestCase):
    def test_select(self) -> None:
        """Arrows and letters select, within the list; Enter opens what is selected."""
        state = listing("a", "b", "c")
        self.assertEqual(pressed(state, ENTER)[1], Open("a"))
        self.assertEqual(pressed(state, DOWN, "j", "j", ENTER)[1], Open("c"))
        self.assertEqual(pressed(state, "j", "k", UP, ENTER)[1], Open("a"))

    def test_quit(self) -> None:
        """It is left by q."""
        self.assertEqual(pressed(listing(), "q")[1], Quit())

    def test_empty(self) -> None:
        """Where nothing waits no key does anything."""
        self.assertEqual([pressed(listing(), key)[1] for key in (ENTER, "j", "y", PAGE_DOWN)], [None] * 4)

    def test_selection_stays(self) -> None:
        """What comes and goes takes nobody's place: the same one stays selected, or a neighbour of one that went."""
        state = pressed(listing("a", "b", "c"), "j")[0]
        self.assertEqual(listed(state, waiting("b", "c", "d")).chosen, "b")
        self.assertEqual(listed(state, waiting("a", "c")).chosen, "c")
        self.assertEqual(listed(state, []).chosen, None)

    def test_newcomers(self) -> None:
        """Only one that was not there is new."""
        state = listing("a", "b")
        self.assertEqual((newcomers(state, waiting("b")), newcomers(state, waiting("b", "c"))), (False, True))


class ReadTests(SynchronousTestCase):
    def test_read_first(self) -> None:
        """What was not read to its end cannot be approved, at once or later; it can be denied and edited."""
        state = reading(lines=12)
        for key in ("y", "l"):
            after, effect = pressed(state, key)
            self.assertEqual((after.asking, effect), (None, None))
            self.assertIn("Read it to its end first", after.news)
        self.assertEqual(pressed(state, "d")[0].asking.purpose, Purpose.DENY)  # type: ignore[union-attr]
        self.assertIsInstance(pressed(state, "e")[1], Edit)
        self.assertIsInstance(pressed(state, " ", " ", " ", "y", "y")[1], Approve)

    def test_every_row(self) -> None:
        """The last row on the screen is what makes it read, be it reached by pages or by lines."""
        state = reading(lines=7)
        self.assertFalse(pressed(state, "j")[0].opened.all_read)  # type: ignore[union-attr]
        self.assertTrue(pressed(state, "j", "j")[0].opened.all_read)  # type: ignore[union-attr]

    def test_smaller(self) -> None:
        """In another width what was read stays read; what was not is begun again."""
        state = reading(lines=7)
        begun = resized(pressed(state, "j")[0], Size(10, 5)).opened
        done = resized(pressed(state, "j", "j")[0], Size(10, 5)).opened
        assert begun and done
        self.assertEqual((begun.top, begun.read, begun.all_read, done.all_read), (0, 2, False, True))


class DecideTests(SynchronousTestCase):
    def test_approve(self) -> None:
        """Two keys approve what is open: y, and y once more; anything else decides nothing."""
        state = reading()
        self.assertEqual(pressed(state, "y")[1], None)
        self.assertEqual(pressed(state, "y", "y")[1], Approve(state.opened, ""))  # type: ignore[arg-type]
        for key in ("n", ENTER, ESCAPE, "q", " "):
            after, effect = pressed(state, "y", key)
            self.assertEqual((effect, after.asking, after.opened), (None, None, state.opened))
            self.assertIn("Nothing was decided", after.news)

    def test_at_once(self) -> None:
        """Keys that come all at once, as from a paste, confirm nothing."""
        for keys in (("y", "y"), ("x", "y"), ("l", "+", "2", "h", ENTER, "y")):
            after, effect = press_all(reading(), keys)
            self.assertEqual((effect, after.asking), (None, None), keys)
        state = pressed(reading(), "y")[0]
        self.assertEqual(press_all(state, ("y", "y"))[1], None)
        self.assertIsInstance(press_all(state, ("y",))[1], Approve)

    def test_later(self) -> None:
        """l asks when, then for the same confirmation."""
        state = reading()
        after, effect = pressed(state, "l", "+", "3", BACKSPACE, "2", "h", ENTER)
        self.assertEqual((effect, after.asking.when), (None, "+2h"))  # type: ignore[union-attr]
        self.assertEqual(pressed(after, "y")[1], Approve(state.opened, "+2h"))  # type: ignore[arg-type]
        self.assertEqual(pressed(state, "l", ENTER, "y", "n")[1], None)

    def test_deny(self) -> None:
        """d asks why, and takes no for no reason; Escape goes back."""
        state = reading()
        assert state.opened
        self.assertEqual(pressed(state, "d", "t", "o", "o", " ", "y", ENTER)[1], Deny(state.opened, "too y"))
        self.assertEqual(pressed(state, "d", ENTER)[1], Deny(state.opened, ""))
        self.assertEqual(pressed(state, "d", "x", ESCAPE)[1], None)

    def test_flood(self) -> None:
        """x denies all of a session and ends it, once confirmed; of the operator's own run there is none to end."""
        state = reading()
        assert state.opened
        self.assertEqual(pressed(state, "x", "y")[1], Deny(state.opened, flood=True))
        self.assertEqual(pressed(state, "x", "n")[1], None)
        own = reading(run={**approval()["run"], "session_id": None})
        self.assertEqual(pressed(own, "x", "y")[1], None)

    def test_undo(self) -> None:
        """u takes back what was approved and has not begun, wherever one is; without such a thing it does nothing."""
        for state in (listing("a"), reading()):
            self.assertEqual(pressed(state, "u")[1], None)
            self.assertEqual(pressed(evolve(state, undoable=Undoable("R", "later")), "u")[1], TakeBack("R"))
        self.assertEqual(pressed(evolve(reading(), undoable=Undoable("R", "later")), "d", "u")[1], None)

    def test_back(self) -> None:
        """q and Escape go back to the list; r shows it anew."""
        self.assertEqual([pressed(reading(), key)[0].opened for key in ("q", ESCAPE)], [None, None])
        self.assertEqual(pressed(reading(), "r")[1], Open(RUN))


class ChangedTests(SynchronousTestCase):
    CHANGES = (
        approval(digest="sha256:other"),
        approval(stale="The action was changed."),
        approval(run={**approval()["run"], "state": "denied"}),
    )

    def test_changed(self) -> None:
        """What is another than was shown cannot be decided, and a question about it stands no longer."""
        for now in self.CHANGES:
            after = compared(pressed(reading(), "y")[0], now)
            self.assertIsNone(after.asking)
            for keys in (("y", "y"), ("l", ENTER), ("d", ENTER), ("x", "y"), ("e",)):
                self.assertEqual(pressed(after, *keys)[1], None, keys)
            self.assertEqual(pressed(after, "r")[1], Open(RUN))

    def test_same(self) -> None:
        """The same changes nothing, nor does another approval."""
        state = pressed(reading(), "y")[0]
        self.assertEqual(compared(state, approval()), state)
        self.assertEqual(compared(state, approval(id="another", digest="x")), state)

    @settings(max_examples=150, deadline=None)
    @given(st.lists(KEYS, max_size=12), st.integers(min_value=1, max_value=20))
    def test_never_unread(self, keys: list[str], lines: int) -> None:
        """No keys approve what was not read to its end, nor without a y that stood alone after the question."""
        state: State = reading(lines=lines)
        before = state
        for key in keys:
            before, (state, effect) = state, press_all(state, (key,))
            if isinstance(effect, Approve):
                self.assertTrue(effect.what.all_read)
                self.assertEqual((before.asking.purpose, key), (Purpose.APPROVE, "y"))  # type: ignore[union-attr]
