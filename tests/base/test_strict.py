"""JSON from outside is read in one way or not at all."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, canonical, json_pointer, json_problems, loads_strict
from tests.extent import examples

SAFE = 2**53 - 1
CLEAN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-SAFE, SAFE)
    | st.floats(-SAFE, SAFE)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


class LoadsStrictTests(SynchronousTestCase):
    """L{loads_strict}."""

    def refused(self, data: bytes) -> str:
        return str(self.assertRaises(ValueError, loads_strict, data))

    def test_reads(self) -> None:
        """An ordinary body comes out as it was meant."""
        self.assertEqual(loads_strict('{"a": [1, 2.5, true, null, "é"]}'.encode()), {"a": [1, 2.5, True, None, "é"]})

    def test_many_values(self) -> None:
        """Where a limit is given, more values are refused, wherever they are; where none is, they are not."""
        for data in (b"[0,0,0,0]", b'{"a":[0,0],"b":[0]}', b"[[[[[]]]]]", b'{"a":0,"b":0,"c":0,"d":0}'):
            self.assertEqual(loads_strict(data), loads_strict(data, most_values=5))
            refused = self.assertRaises(ValueError, loads_strict, data, most_values=3)
            self.assertEqual(str(refused), "the body has more than 3 values")
        self.assertEqual(loads_strict(b'["a,b,c,d,e,f"]', most_values=3), ["a,b,c,d,e,f"])

    def test_refused(self) -> None:
        """What could be read in two ways is refused, and the message says why without repeating it."""
        for data, why in (
            (b'"\xff"', "not UTF-8"),
            ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
            (b"\xef\xbb\xbf{}", "not JSON"),
            (b'{"a": 1,\n "secret-value" 2}', "line 2"),
            (b'{"a": 1, "a": 1}', "twice"),
            (rb'[{"b": {"a": 1, "\u0061": 2}}]', "twice"),
            *((text, "finite") for text in (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"[-1e999]")),
            *(
                (text.encode(), "2^53-1")
                for text in (str(SAFE + 1), str(-SAFE - 1), "1e20", "9" * 5000, "-" + "9" * 5000)
            ),
            (rb'{"a": "\ud800"}', "surrogate"),
            (rb'{"\udc00": 1}', "surrogate"),
        ):
            message = self.refused(data)
            self.assertIn(why, message)
            self.assertNotIn("secret", message)

    def test_taken(self) -> None:
        """What is close to those can be read in one way only, and is read."""
        self.assertEqual(loads_strict(b'[{"a": 1}, {"a": 2}]'), [{"a": 1}, {"a": 2}])
        self.assertEqual(loads_strict(str(-SAFE).encode()), -SAFE)
        self.assertEqual(loads_strict(rb'"\ud83d\ude00"'), "\N{GRINNING FACE}")

    def test_depth(self) -> None:
        """32 levels are read, 33 refused, and a million do not break the reader."""
        self.assertEqual(loads_strict(b"[" * 32 + b"]" * 32), json.loads("[" * 32 + "]" * 32))
        self.assertIn("deeply", self.refused(b"[" * 33 + b"]" * 33))
        self.assertIn("deeply", self.refused(b'{"a":' * 200_000))

    @given(st.binary())
    @settings(deadline=None, max_examples=examples(200))
    def test_any_bytes(self, data: bytes) -> None:
        """Whatever arrives, the answer is a value or a L{ValueError}."""
        try:
            loads_strict(data)
        except ValueError as error:
            self.assertNotIsInstance(error, UnicodeError)

    @given(CLEAN)
    @settings(deadline=None, max_examples=examples(100))
    def test_round_trip(self, value: JSON) -> None:
        """What is canonical is read back as the same value, so a digest made twice is the same."""
        again = loads_strict(canonical(value), max_depth=64)
        self.assertEqual(canonical(again), canonical(value))


class ProblemsTests(SynchronousTestCase):
    """L{json_problems} and L{json_pointer}."""

    def test_every_problem(self) -> None:
        """All problems are told, each with its own pointer."""
        found = dict(json_problems({"a": float("nan"), "b": ["x", "\ud800", True], "c~/d": 2**60}))
        self.assertEqual(sorted(found), ["/a", "/b/1", "/c~0~1d"])

    def test_pointer(self) -> None:
        """A pointer is always text that can be sent."""
        self.assertEqual(json_pointer("/args", "a/b", 0, "\ud800"), "/args/a~1b/0/?")
