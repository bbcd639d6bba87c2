"""What stands on the screen."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.approvals.live_model import LiveModel, Size, age, columns, render
from tests.cli.daemon import approval
from tests.cli.live.made import listing, pressed, reading

WIDE = Size(90, 8)


def text(model: LiveModel, *keys: str) -> str:
    """All that stands there after these keys."""
    pressed(model, *keys)
    return "\n".join(row.text for row in render(model, 100.0))


class RenderTests(SynchronousTestCase):
    def test_list(self) -> None:
        """Each has its age, agent and action; the selected one stands out, also where nothing can be coloured."""
        model = listing("a", "b")
        pressed(model, "j")
        rows = render(model, 100.0)
        self.assertEqual(rows[0].text, "Aileron: 2 waiting for you")
        self.assertEqual(rows[1].text.split(), ["1m", "opencode", "ship-update"])
        self.assertEqual((rows[2].text[:5], rows[2].selected), ("> 1m ", True))
        self.assertIn("Nothing waits for you.", text(listing()))

    def test_long_list(self) -> None:
        """In a list that is longer than the terminal the selected one is seen."""
        model = listing(*(f"id{number}" for number in range(40)))
        for _ in range(40):
            pressed(model, "j")
            self.assertEqual(sum(row.selected for row in render(model, 0.0)), 1)

    def test_age(self) -> None:
        """Ages are told in their largest unit; a clock that was set back makes none negative."""
        self.assertEqual([age(each) for each in (-5, 59, 60, 7200, 200_000)], ["0s", "59s", "1m", "2h", "2d"])

    def test_opened(self) -> None:
        """One that is open tells how much of it was read; its question, and that it changed, stand at the bottom."""
        self.assertIn("rows 1 to 5 of 12: Space shows more", text(reading(lines=12)))
        self.assertIn("all of it read", text(reading()))
        self.assertIn("Let exactly this run? [y/N]", text(reading(), "y"))
        self.assertIn("from +2h on?", text(reading(), "l", *"+2h", "enter"))
        self.assertIn("end it? [y/N]", text(reading(size=WIDE), "x"))
        changed = reading()
        changed.compare(approval(digest="other"))
        self.assertIn("Nothing can be decided", text(changed))

    def test_typed(self) -> None:
        """Of a long reason the end is seen, where it grows."""
        self.assertTrue(text(reading(), "d", *"abc" * 30, "!").splitlines()[-2].endswith("abc!"))

    def test_undo(self) -> None:
        """That something can be taken back is told with the keys."""
        model = listing("a", size=WIDE)
        model.undoable = "R"
        self.assertIn("u take back", text(model))

    @settings(max_examples=60, deadline=None)
    @given(st.text(max_size=40), st.integers(4, 12), st.integers(20, 60))
    def test_fits(self, name: str, height: int, width: int) -> None:
        """Whatever an agent calls itself, every row fits and holds nothing that acts on the terminal."""
        size = Size(width, height)
        model = LiveModel(size, agents={"S": name})
        run = {**approval()["run"], "action": name}
        model.replace_items([approval(run=run, stale=name)])
        asking = reading(size=size)
        pressed(asking, "d", *name)
        for each in (model, LiveModel(size, news=name), reading(size=size), asking):
            rows = render(each, 0.0)
            self.assertEqual(len(rows), height)
            for row in rows:
                self.assertLessEqual(columns(row.text), width)
                self.assertTrue(row.text.isprintable() or not row.text, row.text)
