"""Lines are broken between words, and nothing of them is lost."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import redirect_stdout

import click
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli import output as _output
from aileron.cli._folding import count_columns, fold_line, fold_text
from tests.extent import examples

DIGEST = "sha256:" + "a" * 64
TEXT = st.text(st.sampled_from("ab 日\u0301"), max_size=120)


class FoldTests(SynchronousTestCase):
    def test_words(self) -> None:
        """A line is broken at spaces; what goes on is indented."""
        self.assertEqual(fold_line("  one two three four five", 20, 4), ["  one two three four", "    five"])
        self.assertEqual(fold_line("one two three four five", 0, 4), ["one two three four five"])

    def test_long_word(self) -> None:
        """A word that is longer than the line stays whole, so that it can be copied."""
        self.assertEqual(fold_line(f"digest  {DIGEST} x", 60, 2), ["digest", f"  {DIGEST}", "  x"])

    @settings(deadline=None, max_examples=examples(200))
    @given(TEXT, st.integers(20, 60), st.integers(0, 40))
    def test_fits(self, line: str, width: int, indent: int) -> None:
        """Every line fits that is not one word, and the words are the same, in the same order."""
        folded = fold_line(line, width, indent)
        self.assertEqual(" ".join(folded).split(), line.split())
        self.assertEqual([each for each in folded if count_columns(each) > width and len(each.split()) > 1], [])

    @settings(deadline=None, max_examples=examples(200))
    @given(TEXT, st.integers(20, 60))
    def test_text(self, line: str, width: int) -> None:
        """Every piece of foreign text fits, and no character but a space is lost."""
        pieces = fold_text(line, width)
        self.assertEqual([each for each in pieces if count_columns(each) > width], [])
        self.assertEqual("".join(pieces).replace(" ", ""), line.replace(" ", ""))


class TerminalTests(SynchronousTestCase):
    """What is printed at a terminal of 80 columns."""

    def printed(self, show: Callable[[], None], width: int = 80) -> list[str]:
        """The lines."""
        out = io.StringIO()
        context = click.Context(click.Command("x"))
        _output.set_width(context, click.Option(["--width"]), width)
        with context, redirect_stdout(out):
            show()
        return out.getvalue().splitlines()

    def test_say(self) -> None:
        """A sentence is broken between words; a command, which is copied, is not."""
        sentence = "To do it again " * 8
        for line in self.printed(lambda: _output.say("  {text}", text=sentence)):
            self.assertTrue(line.startswith(("  To", "    ")), line)
            self.assertLessEqual(len(line), 80)
        command = "  aileron action run ship-update " + "--arg a=b " * 9
        self.assertEqual(self.printed(lambda: _output.say("{text}", text=command)), [command])

    def test_plain(self) -> None:
        """A line that is not a heading has no escape sequence, so that an address can be copied from it."""
        shown = io.StringIO()
        self.patch(click.utils, "should_strip_ansi", lambda *_: False)
        with redirect_stdout(shown):
            _output.say("  https://here.example/?a=b")
            _output.heading("Title")
        self.assertEqual(shown.getvalue(), "  https://here.example/?a=b\n\x1b[1mTitle\x1b[0m\n")

    def test_values(self) -> None:
        """A value that fits only below its label stands there whole; a longer text stays below its beginning."""
        lines = self.printed(lambda: _output.values({"manifest": DIGEST, "note": "word " * 30}, "  "))
        self.assertEqual(lines[:2], ["  manifest", f"    {DIGEST}"])
        self.assertTrue(lines[2].startswith("  note      word"))
        self.assertEqual({line[:12] for line in lines[3:]}, {" " * 12})

    def test_block(self) -> None:
        """Foreign text stays behind its margin, which shows where a line goes on."""
        lines = self.printed(lambda: _output.block("word " * 20 + "\n" + "x" * 100, "  "))
        self.assertEqual([line[:4] for line in lines], ["  │ ", "  ┆ ", "  │ ", "  ┆ "])
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_pipe(self) -> None:
        """In a pipe, and at a terminal that does not tell its width, every line stays whole."""
        self.patch(os, "environ", {key: each for key, each in os.environ.items() if key != "COLUMNS"})
        self.assertEqual(self.printed(lambda: _output.say("{text}", text="word " * 40), 0), ["word " * 40])
