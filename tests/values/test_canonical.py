"""The canonical form is that of RFC 8785, as its library writes it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.values import canonical

_CHARACTERS = st.characters(exclude_categories=())
_KEYS = st.text() | st.sampled_from(("\U0001f600", "\uffff", "\ue000", "\ud800", "\x7f", "\x01", '"', "\\"))
_NUMBERS = st.integers() | st.integers(2**53 - 3, 2**53 + 3).map(lambda number: -number) | st.floats()
_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text() | st.text(_CHARACTERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=12,
)


def outcome(write: Any, value: Any) -> Any:
    """What is written; L{ValueError}: it cannot be."""
    try:
        return write(value)
    except ValueError:
        return ValueError


class CanonicalTests(SynchronousTestCase):
    """L{canonical}."""

    @settings(deadline=None, max_examples=1000)
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
