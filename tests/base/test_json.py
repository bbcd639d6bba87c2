"""JSON as it travels is walked and written, whatever it is made of; its canonical form is that of RFC 8785."""

from __future__ import annotations

import json
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, canonical, strings_in, writer
from tests.extent import examples

VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)
_CHARACTERS = st.characters(exclude_categories=())
_KEYS = st.text() | st.sampled_from(("\U0001f600", "\uffff", "\ue000", "\ud800", "\x7f", "\x01", '"', "\\"))
_NUMBERS = st.integers() | st.integers(2**53 - 3, 2**53 + 3).map(lambda number: -number) | st.floats()
_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text() | st.text(_CHARACTERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
)


class StringsInTests(SynchronousTestCase):
    """L{strings_in}."""

    def test_however_deep(self) -> None:
        """Every string is found in its order, other values are not, and keys where they are asked for."""
        value: JSON = {"a": "1", "b": ["2", 3, {"c": ("4", None)}], "d": MappingProxyType({"e": "5"}), "f": True}
        self.assertEqual(list(strings_in(value)), ["1", "2", "4", "5"])
        self.assertEqual("".join(strings_in(value, keys=True)), "a1b2c4de5f")

    def test_alone(self) -> None:
        """A text is its own only string, not one for each character."""
        self.assertEqual(list(strings_in("text")), ["text"])


class WriterTests(SynchronousTestCase):
    """L{writer}."""

    @settings(deadline=None, max_examples=examples(200))
    @given(VALUES, st.booleans())
    def test_as_the_library(self, value: JSON, sort_keys: bool) -> None:
        """It writes what the library writes when it is told the same, mappings and sequences of any kind included."""
        written = writer(sort_keys=sort_keys, allow_nan=True)(MappingProxyType({"a": (value,)}))
        self.assertEqual(written, json.dumps({"a": [value]}, sort_keys=sort_keys, separators=(",", ":")))

    def test_no_json(self) -> None:
        """Anything else is refused by its type and is not shown."""
        error = self.assertRaises(TypeError, writer(sort_keys=True, allow_nan=True), object())
        self.assertEqual(str(error), "object is no JSON")

    def test_not_finite(self) -> None:
        """What JSON cannot say is refused where that was asked for."""
        self.assertRaises(ValueError, writer(sort_keys=False, allow_nan=False), {"a": [float("inf")]})
        self.assertEqual(writer(sort_keys=False, allow_nan=True)(float("inf")), "Infinity")


def outcome(write: Any, value: Any) -> Any:
    """What is written; L{ValueError}: it cannot be."""
    try:
        return write(value)
    except ValueError:
        return ValueError


class CanonicalTests(SynchronousTestCase):
    """L{canonical}."""

    @settings(deadline=None, max_examples=examples(1000))
    @given(_ANY)
    def test_same(self, value: Any) -> None:
        """Every value is written as the library does, to the byte, or refused as it is there."""
        self.assertEqual(outcome(canonical, value), outcome(rfc8785.dumps, value))

    def test_any_container(self) -> None:
        """Whatever is an array or an object is written as one."""
        self.assertEqual(canonical((1, (2.0, True), None)), b"[1,[2,true],null]")

    def test_signs(self) -> None:
        """Every control, quote and backslash is escaped as RFC 8785 says."""
        every = "".join(map(chr, range(0x100)))
        self.assertEqual(canonical(every), rfc8785.dumps(every))

    def test_no_json(self) -> None:
        """What is no JSON is refused by its type, whatever could be read of it, and its contents are not told."""
        for value in (
            *({1, 2}, frozenset((1,)), (each for each in (1, 2)), iter("ab"), {1: 2}.keys()),
            *(b"secret", bytearray(b"secret"), memoryview(b"secret"), object(), Decimal(1)),
            *({1: 2}, {"a": 1, None: 2}, {b"secret": 1}, {True: 1}),
        ):
            for within in (value, [value], {"a": value}):
                with self.subTest(value=within):
                    error = self.assertRaises(ValueError, canonical, within)
                    self.assertNotIn("secret", str(error))
