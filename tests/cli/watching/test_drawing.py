"""What stands on the screen."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.watching.drawing import Look, age, drawn
from aileron.cli.watching.model import Size, State, Undoable, Waiting, compared, listed
from aileron.cli.watching.rows import columns
from tests.cli.daemon import approval
from tests.cli.watching.made import listing, pressed, reading


def text(state: State) -> str:
    """All of it."""
    return "\n".join(row.text for row in drawn(state, 100.0))


class DrawnTests(SynchronousTestCase):
    def test_list(self) -> None:
        """Each has its age, agent and action; the selected one stands out, also where nothing can be coloured."""
        rows = drawn(pressed(listing("a", "b"), "j")[0], 100.0)
        self.assertEqual(rows[0].text, "Aileron: 2 waiting for you")
        self.assertEqual(rows[1].text.split(), ["1m", "opencode", "ship-update"])
        self.assertEqual((rows[2].text[:5], rows[2].look), ("> 1m ", Look.SELECTED))
        self.assertIn("Nothing waits for you.", text(listing()))

    def test_long_list(self) -> None:
        """In a list that is longer than the terminal the selected one is seen."""
        state = listing(*(f"id{number}" for number in range(40)))
        for _ in range(40):
            state = pressed(state, "j")[0]
            self.assertEqual(sum(row.look is Look.SELECTED for row in drawn(state, 0.0)), 1)

    def test_age(self) -> None:
        """Ages are told in their largest unit; a clock that was set back makes none negative."""
        self.assertEqual([age(each) for each in (-5, 59, 60, 7200, 200_000)], ["0s", "59s", "1m", "2h", "2d"])

    def test_opened(self) -> None:
        """One that is open tells how much of it was read; its question, and that it changed, stand at the bottom."""
        self.assertIn("rows 1 to 5 of 12: Space shows more", text(reading(lines=12)))
        self.assertIn("all of it read", text(reading()))
        self.assertIn("Let exactly this run? [y/N]", text(pressed(reading(), "y")[0]))
        self.assertIn("from +2h on?", text(pressed(reading(), "l", *"+2h", "enter")[0]))
        self.assertIn("end it? [y/N]", text(pressed(reading(size=Size(90, 8)), "x")[0]))
        self.assertIn("Nothing can be decided", text(compared(reading(), approval(digest="other"))))

    def test_typed(self) -> None:
        """Of a long reason the end is seen, where it grows."""
        self.assertTrue(drawn(pressed(reading(), "d", *"abc" * 30, "!")[0], 0.0)[-2].text.endswith("abc!"))

    def test_undo(self) -> None:
        """That something can be taken back is told with the keys."""
        self.assertIn("u take back", text(evolve(listing("a", size=Size(90, 8)), undoable=Undoable("R", "later"))))

    @settings(max_examples=60, deadline=None)
    @given(st.text(max_size=40), st.integers(4, 12), st.integers(20, 60))
    def test_fits(self, name: str, height: int, width: int) -> None:
        """Whatever an agent calls itself, every row fits and holds nothing that acts on the terminal."""
        shown = [Waiting("a", name, name, 0.0, name, True)]
        state = listed(State(Size(width, height)), shown)
        for each in (state, evolve(state, news=name), evolve(reading(size=state.size), news=name)):
            rows = drawn(each, 0.0)
            self.assertLessEqual(len(rows), height)
            for row in rows:
                self.assertLessEqual(columns(row.text), width)
                self.assertTrue(row.text.isprintable() or not row.text, row.text)
