"""The screen that tests of agents on terminals look at."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.functional.screen import Screen


class ScreenTests(SynchronousTestCase):
    """A screen of three lines of six."""

    def after(self, sent: str) -> str:
        """What stands there when that was sent."""
        return Screen(3, 6).after(sent)

    def test_words_drawn_over(self) -> None:
        """Words stand there whole of which a program sent only what stood there not yet."""
        self.assertEqual(self.after("ab cde\r\n\x1b[Hxy\x1b[1C\x1b[1C\x1b[39me"), "xy cee\n\n")

    def test_moves(self) -> None:
        """The cursor goes where it is sent, and not beyond the edges."""
        self.assertEqual(self.after("\x1b[2;3Hb\x1b[Aa\x1b[9Bc\r\x1b[2C\x1b[Dd\x1b[6Ge"), "   a\n  b\n d  ce")
        self.assertEqual(self.after("\x1b[9;9Hx\x1b[9A\x1b[9Dy"), "y\n\n     x")

    def test_written_on(self) -> None:
        """What is too long goes on in the next line, and below the last one everything moves up."""
        self.assertEqual(self.after("abcdef\x1b[mgh\r\nij\r\nkl\b!"), "gh\nij\nk!")

    def test_erased(self) -> None:
        """A line, or the screen, is blank from the cursor, up to it, or all of it."""
        full = "aaaaaa\r\nbbbbbb\r\ncccccc\x1b[2;3H"
        for order, left in {
            "K": "aaaaaa\nbb\ncccccc",
            "1K": "aaaaaa\n  bbbb\ncccccc",
            "2K": "aaaaaa\n\ncccccc",
            "J": "aaaaaa\nbb\n",
            "1J": "\n  bbbb\ncccccc",
            "2J": "\n\n",
        }.items():
            self.assertEqual(self.after(f"{full}\x1b[{order}"), left, order)

    def test_what_shows_nothing(self) -> None:
        """Colours, modes, titles and bells leave it as it is."""
        sent = "\x1b[?25l\x1b[1;31ma\x1b]0;title\x07\x1b]9;x\x1b\\\x1b(B\x1b7\x1b[<u\x07b"
        self.assertEqual(self.after(sent), "ab\n\n")

    def test_broken_off(self) -> None:
        """What breaks off within an order or a letter is shown when its rest is there."""
        sent = "a\x1b[2Cb\x1b]0;t\x07❯".encode()
        screen = Screen(3, 6)
        for length in range(len(sent)):
            screen.after(sent[:length].decode("utf-8", "replace"))
        self.assertEqual(screen.after(sent.decode()), "a  b❯\n\n")
