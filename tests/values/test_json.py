"""JSON as it travels is walked and written, whatever kinds of mapping and sequence it is made of."""

from __future__ import annotations

import json
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.values import JSON, bare, strings_in, writer

VALUES: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


class StringsInTests(SynchronousTestCase):
    """L{strings_in}."""

    def test_however_deep(self) -> None:
        """Every string is found in its order, keys and other values are not."""
        value: JSON = {"a": "1", "b": ["2", 3, {"c": ("4", None)}], "d": MappingProxyType({"e": "5"}), "f": True}
        self.assertEqual(list(strings_in(value)), ["1", "2", "4", "5"])

    def test_alone(self) -> None:
        """A text is its own only string, not one for each character."""
        self.assertEqual(list(strings_in("text")), ["text"])


class BareTests(SynchronousTestCase):
    """L{bare}."""

    def test_encodes(self) -> None:
        """With it any mapping and any sequence can be written, at every depth."""
        value = MappingProxyType({"a": range(2), "b": MappingProxyType({})})
        self.assertEqual(json.dumps(value, default=bare), '{"a": [0, 1], "b": {}}')

    def test_no_json(self) -> None:
        """Anything else is refused by its type and is not shown."""
        error = self.assertRaises(TypeError, bare, object())
        self.assertEqual(str(error), "object is no JSON")


class WriterTests(SynchronousTestCase):
    """L{writer}."""

    @settings(deadline=None, max_examples=200)
    @given(VALUES, st.booleans())
    def test_as_the_library(self, value: JSON, sort_keys: bool) -> None:
        """It writes what the library writes when it is told the same, mappings and sequences of any kind included."""
        written = writer(sort_keys=sort_keys, allow_nan=True)(MappingProxyType({"a": (value,)}))
        self.assertEqual(written, json.dumps({"a": [value]}, sort_keys=sort_keys, separators=(",", ":")))

    def test_not_finite(self) -> None:
        """What JSON cannot say is refused where that was asked for."""
        self.assertRaises(ValueError, writer(sort_keys=False, allow_nan=False), {"a": [float("inf")]})
        self.assertEqual(writer(sort_keys=False, allow_nan=True)(float("inf")), "Infinity")
