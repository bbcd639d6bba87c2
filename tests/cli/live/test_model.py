"""The model of the view, and what each key makes of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.approvals.live_model import (
    BACKSPACE,
    DOWN,
    ENTER,
    ESCAPE,
    PAGE_DOWN,
    UP,
    Command,
    Opened,
    Question,
    Size,
    columns,
    rows_of,
)
from aileron.values import visible
from tests.cli.daemon import RUN, approval
from tests.cli.live.made import listing, pressed, reading, waiting

KEYS = st.sampled_from(("y", "n", "l", "d", "x", "e", "u", "q", "j", "k", " ", "b", "r", ENTER, ESCAPE, BACKSPACE, "z"))


class ListTests(SynchronousTestCase):
    def test_select(self) -> None:
        """Arrows and letters select, within the list; Enter opens what is selected."""
        model = listing("a", "b", "c")
        self.assertEqual(pressed(model, ENTER), (Command.OPEN, "a"))
        self.assertEqual(pressed(model, "j", "k", UP, ENTER), (Command.OPEN, "a"))
        self.assertEqual(pressed(model, DOWN, "j", "j", ENTER), (Command.OPEN, "c"))

    def test_quit(self) -> None:
        """It is left by q."""
        self.assertEqual(pressed(listing(), "q"), (Command.QUIT, ""))

    def test_empty(self) -> None:
        """Where nothing waits no key does anything."""
        self.assertEqual([pressed(listing(), key) for key in (ENTER, "j", "y", PAGE_DOWN)], [None] * 4)

    def test_selection_stays(self) -> None:
        """What comes and goes takes nobody's place: the same one stays selected, or a neighbour of one that went."""
        for after, chosen in ((("b", "c", "d"), "b"), (("a", "c"), "c"), ((), None)):
            model = listing("a", "b", "c")
            pressed(model, "j")
            model.replace_items(waiting(*after))
            self.assertEqual(model.chosen, chosen)

    def test_newcomers(self) -> None:
        """Only one that was not there is new."""
        model = listing("a", "b")
        self.assertFalse(model.replace_items(waiting("b")))
        self.assertTrue(model.replace_items(waiting("b", "c")))


class ReadTests(SynchronousTestCase):
    def opened(self, lines: int, *keys: str) -> Opened:
        """One of so many lines, after these keys."""
        model = reading(lines=lines)
        pressed(model, *keys)
        assert model.opened
        return model.opened

    def test_read_first(self) -> None:
        """What was not read to its end cannot be approved, at once or later; it can be denied and edited."""
        model = reading(lines=12)
        for key in ("y", "l"):
            self.assertEqual((pressed(model, key), model.question), (None, None))
            self.assertIn("Read it to its end first", model.news)
        self.assertEqual(pressed(model, "e"), (Command.EDIT, ""))
        self.assertEqual(pressed(model, " ", " ", " ", "y", "y"), (Command.APPROVE, ""))
        self.assertEqual(pressed(reading(lines=12), "d", ENTER), (Command.DENY, ""))

    def test_every_row(self) -> None:
        """The last row on the screen is what makes it read, be it reached by pages or by lines."""
        self.assertFalse(self.opened(7, "j").all_read)
        self.assertTrue(self.opened(7, "j", "j").all_read)
        self.assertTrue(self.opened(7, " ").all_read)

    def test_jumped_over(self) -> None:
        """What never was on the screen does not count as read."""
        opened = self.opened(30)
        opened.scroll(20, Size(60, 8))
        opened.scroll(25, Size(60, 8))
        self.assertEqual((opened.read, opened.all_read), (5, False))

    def test_smaller(self) -> None:
        """In another width what was read stays read; what was not is begun again."""
        begun, done = self.opened(7, "j"), self.opened(7, "j", "j")
        for each in (begun, done):
            each.fit(Size(10, 5))
        self.assertEqual((begun.top, begun.read, begun.all_read, done.all_read), (0, 2, False, True))

    def test_resize(self) -> None:
        """A terminal of another size breaks what is open anew; one of the same size leaves it where it is."""
        model = reading(lines=7)
        assert model.opened
        pressed(model, "j")
        model.resize(model.size)
        self.assertEqual(model.opened.top, 1)
        model.resize(Size(4, 8))
        self.assertEqual((model.opened.top, len(model.opened.rows)), (0, 14))


class DecideTests(SynchronousTestCase):
    def test_approve(self) -> None:
        """Two keys approve what is open: y, and y once more; anything else decides nothing."""
        self.assertEqual(pressed(reading(), "y"), None)
        self.assertEqual(pressed(reading(), "y", "y"), (Command.APPROVE, ""))
        for key in ("n", ENTER, ESCAPE, "q", " "):
            model = reading()
            self.assertEqual((pressed(model, "y", key), model.question), (None, None))
            self.assertTrue(model.opened)
            self.assertIn("Nothing was decided", model.news)

    def test_at_once(self) -> None:
        """Keys that come all at once, as from a paste, confirm nothing."""
        for keys in (("y", "y"), ("x", "y"), ("l", "+", "2", "h", ENTER, "y")):
            model = reading()
            self.assertEqual((model.press(keys), model.question), (None, None), keys)
        model = reading()
        pressed(model, "y")
        self.assertEqual(model.press(("y", "y")), None)
        pressed(model, "y")
        self.assertEqual(model.press(("y",)), (Command.APPROVE, ""))

    def test_thrown_away(self) -> None:
        """Of keys that come all at once, those behind one that is to be acted on do nothing."""
        model = listing("a", "b")
        self.assertEqual(model.press((ENTER, "j", "q")), (Command.OPEN, "a"))
        self.assertEqual(model.chosen, "a")

    def test_later(self) -> None:
        """l asks when, then for the same confirmation."""
        model = reading()
        self.assertEqual(pressed(model, "l", "+", "3", BACKSPACE, "2", "h", ENTER), None)
        self.assertEqual(model.question, Question(Command.APPROVE, True, "+2h"))
        self.assertEqual(pressed(model, "y"), (Command.APPROVE, "+2h"))
        self.assertEqual(pressed(reading(), "l", ENTER, "y", "n"), None)

    def test_deny(self) -> None:
        """d asks why, and takes no for no reason; Escape goes back."""
        self.assertEqual(pressed(reading(), "d", "t", "o", "o", " ", "y", ENTER), (Command.DENY, "too y"))
        self.assertEqual(pressed(reading(), "d", ENTER), (Command.DENY, ""))
        self.assertEqual(pressed(reading(), "d", "x", ESCAPE), None)

    def test_end_session(self) -> None:
        """x denies all of a session and ends it, once confirmed; of the operator's own run there is none to end."""
        self.assertEqual(pressed(reading(), "x", "y"), (Command.END_SESSION, ""))
        self.assertEqual(pressed(reading(), "x", "n"), None)
        own = reading(run={**approval()["run"], "session_id": None})
        self.assertEqual(pressed(own, "x", "y"), None)

    def test_undo(self) -> None:
        """u takes back what was approved and has not begun, wherever one is; without such a thing it does nothing."""
        for model in (listing("a"), reading()):
            self.assertEqual(pressed(model, "u"), None)
            model.undoable = "R"
            self.assertEqual(pressed(model, "u"), (Command.TAKE_BACK, "R"))
        model = reading()
        model.undoable = "R"
        self.assertEqual(pressed(model, "d", "u"), None)

    def test_back(self) -> None:
        """q and Escape go back to the list; r shows it anew."""
        for key in ("q", ESCAPE):
            model = reading()
            self.assertEqual((pressed(model, key), model.opened), (None, None))
        self.assertEqual(pressed(reading(), "r"), (Command.OPEN, RUN))


class ChangedTests(SynchronousTestCase):
    CHANGES = (
        approval(digest="sha256:other"),
        approval(stale="The action was changed."),
        approval(run={**approval()["run"], "state": "denied"}),
    )

    def test_changed(self) -> None:
        """What is another than was shown cannot be decided, and a question about it stands no longer."""
        for now in self.CHANGES:
            model = reading()
            pressed(model, "y")
            model.compare(now)
            self.assertIsNone(model.question)
            for keys in (("y", "y"), ("l", ENTER), ("d", ENTER), ("x", "y"), ("e",)):
                self.assertEqual(pressed(model, *keys), None, keys)
            self.assertEqual(pressed(model, "r"), (Command.OPEN, RUN))

    def test_same(self) -> None:
        """The same changes nothing, nor does another approval."""
        model = reading()
        pressed(model, "y")
        for now in (approval(), approval(id="another", digest="x")):
            model.compare(now)
            self.assertTrue(model.question)
            self.assertFalse(model.opened and model.opened.changed)

    @settings(max_examples=150, deadline=None)
    @given(st.lists(KEYS, max_size=12), st.integers(min_value=1, max_value=20))
    def test_never_unread(self, keys: list[str], lines: int) -> None:
        """No keys approve what was not read to its end, nor without a y that stood alone after the question."""
        model = reading(lines=lines)
        for key in keys:
            question = model.question
            asked = model.press((key,))
            if asked and asked[0] is Command.APPROVE:
                self.assertTrue(model.opened and model.opened.all_read)
                self.assertTrue(question and question.confirms and question.command is Command.APPROVE)
                self.assertEqual(key, "y")


class RowsTests(SynchronousTestCase):
    def test_broken(self) -> None:
        """A long line goes on in a row with a mark, so that it cannot begin as one of ours does."""
        self.assertEqual(rows_of(["abc", "12345digest", ""], 7), ["abc", "12345di", "↪ gest", ""])

    def test_wide(self) -> None:
        """A character that may take two columns counts as two."""
        self.assertEqual((columns("ab"), columns("漢"), columns("ž"), columns("│")), (2, 2, 1, 2))
        self.assertEqual(rows_of(["漢漢漢漢"], 5), ["漢漢", "↪ 漢", "↪ 漢"])

    @settings(max_examples=80, deadline=None)
    @given(st.text(max_size=80), st.integers(min_value=6, max_value=40))
    def test_nothing_is_lost(self, text: str, width: int) -> None:
        """Every row fits, and together they are the line."""
        line = visible(text)
        rows = rows_of([line], width)
        self.assertTrue(all(columns(row) <= width for row in rows))
        self.assertEqual(rows[0] + "".join(row.removeprefix("↪ ") for row in rows[1:]), line)
