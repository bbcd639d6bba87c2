"""Bytes of a terminal become keys."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.watching.keys import BACKSPACE, DOWN, ENTER, ESCAPE, PAGE_DOWN, UP, Keyboard


class KeyboardTests(SynchronousTestCase):
    def test_named(self) -> None:
        """Arrows in both their forms, paging, Enter, Escape and erasing have names; letters are themselves."""
        typed = b"j\x1b[A\x1bOB\x1b[6~\r\n\x7f y"
        self.assertEqual(Keyboard().keys(typed), ("j", UP, DOWN, PAGE_DOWN, ENTER, ENTER, BACKSPACE, " ", "y"))
        self.assertEqual(Keyboard().keys(b"\x1b"), (ESCAPE,))

    def test_unknown(self) -> None:
        """A sequence that nobody knows is no key, and none of its letters is one either."""
        self.assertEqual(Keyboard().keys(b"\x1b[15~\x1b[1;5C\x1b[<0;3;4My\x01"), ("y",))

    def test_in_pieces(self) -> None:
        """A character that comes in two pieces is one key."""
        keyboard = Keyboard()
        self.assertEqual(keyboard.keys("é".encode()[:1]), ())
        self.assertEqual(keyboard.keys("é".encode()[1:]), ("é",))

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.binary(max_size=12), max_size=4))
    def test_anything(self, pieces: list[bytes]) -> None:
        """Whatever is typed, no key holds a control character."""
        keyboard = Keyboard()
        for piece in pieces:
            self.assertTrue(all(key.isprintable() and key for key in keyboard.keys(piece)))
