"""The files and formats of users' settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch.formats import MAX_BYTES, parse_jsonc, read_text, to_text

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


class JSONCTests(SynchronousTestCase):
    """What OpenCode reads, we read."""

    def test_comments_and_commas(self) -> None:
        """Both kinds of comments and trailing commas are passed over."""
        text = '{ // one\n "a": [1, 2, /* three */ ], /* }\n */ "b": "x", }'
        self.assertEqual(parse_jsonc(text), {"a": [1, 2], "b": "x"})

    def test_strings_are_kept(self) -> None:
        """What looks like a comment or a trailing comma inside a string stays."""
        value = {"url": "http://x//y", "c": "/* no */", "d": ",]", "e": '\\",}', "": ""}
        self.assertEqual(parse_jsonc(json.dumps(value)), value)

    @settings(deadline=None, max_examples=60)
    @given(JSON_VALUES, st.booleans())
    def test_plain_json(self, value: object, ascii_only: bool) -> None:
        """Plain JSON means what it means everywhere."""
        self.assertEqual(parse_jsonc(json.dumps(value, ensure_ascii=ascii_only)), value)

    def test_as_text(self) -> None:
        """A setting that is no text becomes what JSON writes, and never the words of Python."""
        texts: dict[str | bool | float | None, str] = {
            "a": "a",
            True: "true",
            False: "false",
            None: "null",
            80: "80",
            1.5: "1.5",
        }
        self.assertEqual({value: to_text(value) for value in texts}, texts)
        self.assertEqual(to_text(["ä", True]), '["ä", true]')

    def test_refused(self) -> None:
        """Anything else is refused, and never anything but a ValueError."""
        for text in ["", "{", "{'a': 1}", "NaN", "1e999", "[1,,2]", "/*", "[" * 100_000, "{a:1}", "{} /* x"]:
            with self.assertRaises(ValueError, msg=text[:10]):
                parse_jsonc(text)

    def test_long(self) -> None:
        """Quotes and comments without an end take no more time than their length."""
        for unit in ["/*", '\\"', "//", ", "]:
            for begin in ["", '"']:
                with self.assertRaises(ValueError):
                    parse_jsonc(begin + unit * 200_000 + "\\")


class ReadingTests(SynchronousTestCase):
    """A file, nothing, or a refusal."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp())

    def test_text(self) -> None:
        """A file is read whole, without a byte order mark."""
        for begin in ("", "\ufeff"):
            self.path.write_text(f"{begin}é", "utf-8")
            self.assertEqual(read_text(self.path), "é")

    def test_nothing(self) -> None:
        """Where nothing lies there is no text, and where a directory should be there is nothing."""
        self.assertIsNone(read_text(self.path))
        self.assertIsNone(read_text(self.path / "below"))

    def test_no_file(self) -> None:
        """A directory, a pipe, what is too long and what is no text are refused, and nobody waits for a writer."""
        self.path.mkdir()
        pipe, long, bytes_ = (self.path / name for name in ("pipe", "long", "bytes"))
        os.mkfifo(pipe)
        long.write_bytes(b" " * (MAX_BYTES + 1))
        bytes_.write_bytes(b"\xff")
        for path in (self.path, pipe, long, bytes_):
            self.assertRaises(ValueError, read_text, path)
