"""Predicates of grants: what they match, and above all what they do not."""

from __future__ import annotations

import string
from functools import partial

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.domains import encode_domain
from aileron.base.json import JSON
from aileron.model.authority import Predicate, PredicateKind
from aileron.runner.grant_terms import ABSENT, Absent, holds, parse_domain, same
from tests.extent import examples
from tests.growth import seconds

_SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8)
_VALUES: st.SearchStrategy[JSON] = st.recursive(
    _SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=3), each, max_size=3)
)
_ODD = ("exаmple.com", "example.com ", " example.com", "example.com\n", "example.com\0", "example.com.", "example。com")

_NO_ADDRESSES = (
    "me@example.com,you@evil.com",
    "me@example.com;you@evil.com",
    "Me <me@example.com>",
    "<me@example.com>",
    '"me"@example.com',
    "me(c)@example.com",
    "team:me@example.com;",
    "me@example.com@evil.com",
    "me%evil.com@example.com",
    "evil.com!me@example.com",
    "@evil.com:me@example.com",
    "me@[127.0.0.1]",
    "me@127.0.0.1",
    "me@evil.com",
    "me@example.com.evil.com",
    "me@notexample.com",
    "me@sub.example.com",
    "me@",
    "@example.com",
    "example.com",
    "",
    "me@example.com\r\nBcc: you@evil.com",
    "mé@example.com",
    "me.@example.com",
    ".me@example.com",
    "a" * 65 + "@example.com",
)


def _holds(kind: PredicateKind, given_: JSON, value: JSON | Absent) -> bool:
    return holds(Predicate("it", kind, given_), value)


def _spelled(value: JSON) -> str:
    """The model of sameness: Python's own spelling, which tells types, signs and orders of arrays apart."""
    if isinstance(value, dict):
        return "{" + repr(sorted((key, _spelled(each)) for key, each in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_spelled, value)) + "]"
    return repr(value)


class SameTests(SynchronousTestCase):
    """When two values are one."""

    @settings(deadline=None, max_examples=examples(300))
    @given(_VALUES, _VALUES)
    @example(1, True)
    @example(1, 1.0)
    @example(0.0, -0.0)
    @example([1], [1.0])
    @example({"a": 1}, {"a": True})
    @example([], {})
    @example("", [])
    @example(["a"], "a")
    @example(2**53, float(2**53))
    @example("é", "e\u0301")
    def test_model(self, one: JSON, other: JSON) -> None:
        """Values are the same where they are spelled the same, and nowhere else."""
        self.assertEqual(same(one, other), _spelled(one) == _spelled(other))
        self.assertTrue(same(one, one))

    @settings(deadline=None, max_examples=examples(200))
    @given(_VALUES, st.lists(_VALUES, max_size=4))
    def test_equals_and_one_of(self, value: JSON, others: list[JSON]) -> None:
        """Equals and one of match by sameness."""
        spelled = [_spelled(each) for each in others]
        self.assertEqual(_holds(PredicateKind.ONE_OF, others, value), _spelled(value) in spelled)
        for other in others:
            self.assertEqual(_holds(PredicateKind.EQUALS, other, value), _spelled(other) == _spelled(value))

    def test_absent(self) -> None:
        """What is absent is the same as what is absent alone, and no predicate holds of it but the one of anything."""
        others: list[JSON | Absent] = [None, "", [], {}, 0]
        self.assertEqual([same(ABSENT, each) for each in (ABSENT, *others)], [True] + [False] * 5)
        given_: dict[PredicateKind, JSON] = {
            PredicateKind.EQUALS: None,
            PredicateKind.ONE_OF: [None],
            PredicateKind.PATTERN: ".*",
            PredicateKind.RANGE: {"minimum": 0},
            PredicateKind.DOMAIN: ["example.com"],
            PredicateKind.ANY: None,
        }
        held = [kind for kind in PredicateKind if _holds(kind, given_[kind], ABSENT)]
        self.assertEqual(held, [PredicateKind.ANY])


class PatternTests(SynchronousTestCase):
    """Patterns."""

    @settings(deadline=None, max_examples=examples(200))
    @given(st.text(max_size=6), st.sampled_from(["a", "ab", "#ops", "a.b", "x-1"]))
    def test_anchored(self, noise: str, text: str) -> None:
        """The whole text must match: nothing stands before it or after it."""
        pattern = "".join(f"\\{each}" if each in string.punctuation else each for each in text)
        self.assertTrue(_holds(PredicateKind.PATTERN, pattern, text))
        for other in (noise + text, text + noise):
            self.assertEqual(_holds(PredicateKind.PATTERN, pattern, other), other == text)

    def test_odd_subjects(self) -> None:
        """Line ends, NUL, homoglyphs, other cases and other types slip through no pattern.

        Up to 4 KiB are looked at; what is longer does not match.
        """
        texts: list[JSON] = ["ops\n", "ops\r", "ops\0", "OPS", " ops", "оps", "ops\u200b"]
        others: list[JSON] = [["ops"], {"a": "ops"}, None, 1, True]
        for value in (*texts, *others):
            self.assertFalse(_holds(PredicateKind.PATTERN, "^ops$", value), repr(value))
        self.assertFalse(_holds(PredicateKind.PATTERN, "[^x]*", "é"))
        self.assertFalse(_holds(PredicateKind.PATTERN, "ops|dev", "ops\ndev"))
        self.assertFalse(_holds(PredicateKind.PATTERN, "a|b", "ab"))
        for pattern in ("(", "(?=a)a", r"(a)\1", "a{0,1000}{0,1000}", 7, None):
            self.assertFalse(_holds(PredicateKind.PATTERN, pattern, "a"))
        matched = [_holds(PredicateKind.PATTERN, "a*", "a" * length) for length in (4096, 4097)]
        self.assertEqual(matched, [True, False])

    def test_linear(self) -> None:
        """What another engine would need hours for takes no time."""
        for pattern in ("(a+)+$", "(a|aa)*b", "(a*)*b", "((a{0,100}){0,10})x"):
            self.assertLess(seconds(partial(_holds, PredicateKind.PATTERN, pattern, "a" * 4095 + "!")), 1)
            self.assertFalse(_holds(PredicateKind.PATTERN, pattern, "a" * 4095 + "!"))


class RangeTests(SynchronousTestCase):
    """Ranges of numbers."""

    @settings(deadline=None, max_examples=examples(200))
    @given(st.integers(-50, 50), st.integers(-50, 50), _VALUES | st.integers(-60, 60))
    @example(0, 10, True)
    @example(0, 10, 5.0)
    @example(0, 10, "5")
    @example(0, 10, 2**80)
    def test_whole(self, low: int, high: int, value: JSON) -> None:
        """Between whole bounds, both of them included, are whole numbers alone."""
        inside = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        self.assertEqual(_holds(PredicateKind.RANGE, {"minimum": low, "maximum": high}, value), inside)

    def test_real(self) -> None:
        """Where a bound is no whole number, both kinds of number can be inside; what is not finite never is.

        One bound is enough, and the other side is open.
        """
        real: JSON = {"minimum": 0.5, "maximum": 2}
        for value, inside in ((0.5, True), (1, True), (2, True), (2.0, True), (0.49, False), (True, False)):
            self.assertEqual(_holds(PredicateKind.RANGE, real, value), inside)
        others: list[JSON] = [float("inf"), float("nan"), float("-inf"), "1", [1], None]
        for other in others:
            self.assertFalse(_holds(PredicateKind.RANGE, {"minimum": 0.5}, other))
        self.assertTrue(_holds(PredicateKind.RANGE, {"minimum": 3}, 2**53))
        self.assertTrue(_holds(PredicateKind.RANGE, {"maximum": 3}, -(2**53)))
        self.assertFalse(_holds(PredicateKind.RANGE, {"maximum": 3}, 4))


class DomainTests(SynchronousTestCase):
    """Recipients' domains."""

    @settings(deadline=None, max_examples=examples(300))
    @given(st.text(alphabet='ab@.,;<>()[]" \t\r\n\0:%!xé', max_size=12))
    def test_only_bare_addresses(self, noise: str) -> None:
        """Whatever stands before, after or within it, what is matched is one bare address at that very domain."""
        for value in (noise + "me@example.com", "me@example.com" + noise, "me" + noise + "@example.com"):
            if _holds(PredicateKind.DOMAIN, ["example.com"], value):
                local, at, domain = value.partition("@")
                self.assertEqual((at, domain), ("@", "example.com"))
                self.assertTrue(set(local) <= set("abxme."), value)

    def test_let_through(self) -> None:
        """A plain address at the domain is, in any case of the domain's ASCII letters, alone or in an array.

        No list, name, comment, quote, route, literal, blank, line end or other domain is, nor an empty array, nor
        more than a hundred addresses, however alike they are.
        """
        right: list[JSON] = ["me@example.com", "a.b+c@EXAMPLE.com", ["me@example.com", "you@example.com"]]
        right.append(["me@example.com"] * 100)
        for value in right:
            self.assertTrue(_holds(PredicateKind.DOMAIN, ["example.com", "example.org"], value), value)
        wrong: list[JSON] = [["me@example.com"] * 101, [], ["me@example.com", "you@evil.com"], [["me@example.com"]]]
        wrong += [{"to": 1}, 1, None, [None], *_NO_ADDRESSES, *(f"me@{odd}" for odd in _ODD)]
        for value in wrong:
            self.assertFalse(_holds(PredicateKind.DOMAIN, ["example.com"], value), repr(value))

    def test_below(self) -> None:
        """With a star the names below are meant, at any depth, and not the name itself."""
        for name, inside in (("a.example.com", True), ("b.a.example.com", True), ("example.com", False),
                             ("aexample.com", False), ("a.example.com.evil.org", False)):  # fmt: skip
            self.assertEqual(_holds(PredicateKind.DOMAIN, ["*.example.com"], f"me@{name}"), inside, name)

    def test_international(self) -> None:
        """A name in other letters is its A-label, and no name that only looks like it."""
        for name in ("münchen.de", "xn--mnchen-3ya.de"):
            self.assertTrue(_holds(PredicateKind.DOMAIN, ["xn--mnchen-3ya.de"], f"me@{name}"))
        for name in ("munchen.de", "MÜNCHEN.de", "mu\u0308nchen.de", "xn--zzzz.de"):
            self.assertFalse(_holds(PredicateKind.DOMAIN, ["xn--mnchen-3ya.de"], f"me@{name}"), name)

    def test_names(self) -> None:
        """A name has two labels or more and is no address of a machine."""
        for name in (
            *_ODD,
            "localhost",
            "1.2.3.4",
            "0x7f.1",
            "a..b",
            "-a.com",
            "a_b.com",
            "*.com",
            "",
            ".",
            "a" * 250 + ".com",
        ):
            self.assertNotEqual(encode_domain(name), "example.com", name)
            self.assertIn(encode_domain(name), (None, "xn--exmple-4nf.com"), name)
        self.assertEqual(parse_domain("me@Example.COM"), "example.com")
