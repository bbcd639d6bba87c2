"""JSON as it travels is walked and written, whatever kinds of mapping and sequence it is made of."""

from __future__ import annotations

import json
from types import MappingProxyType

from twisted.trial.unittest import SynchronousTestCase

from aileron.values import JSON, bare, strings_in


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
