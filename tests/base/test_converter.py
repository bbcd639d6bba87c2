"""JSON of values: derived from their classes, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum

from attrs import field, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import FALLBACK, INLINE, OMITTED, JsonConverter, Member, from_json, to_json
from aileron.base.json import JSON, compact
from aileron.model.faults import Fault

_NOW = datetime(2026, 3, 4, 5, 6, 7, 8, UTC)
_CANARY = "canary-4711"


class Colour(StrEnum):
    """A closed set."""

    RED = "red"


@frozen
class Inner:
    """A value within another."""

    size: float
    data: bytes = b""


@frozen
class Outer:
    """One attribute of each type that values have."""

    name: str
    count: int
    sure: bool
    at: datetime
    colour: Colour
    inner: Inner
    several: tuple[Inner, ...] = ()
    counts: Mapping[str, int] = field(factory=dict)
    said: JSON = None
    details: Mapping[str, JSON] = field(factory=dict)
    perhaps: datetime | None = None
    pair: tuple[str, str] = ("c", "d")


@frozen
class Lenient:
    """A value that is kept in whatever form it comes."""

    size: float = 0.0
    kept: Mapping[str, JSON] | None = None


@frozen
class Hiding:
    """A value with a secret."""

    name: str
    secret: str = field(default="", repr=False)


_OUTER = Outer("a", 1, True, _NOW, Colour.RED, Inner(0.5, b"\xff"), (Inner(1.0),), {"b": 2}, [1, None], {"c": [True]})
_WRITTEN: dict[str, JSON] = {
    "name": "a",
    "count": 1,
    "sure": True,
    "at": "2026-03-04T05:06:07.000008Z",
    "colour": "red",
    "inner": {"size": 0.5, "data": "/w=="},
    "several": [{"size": 1.0, "data": ""}],
    "counts": {"b": 2},
    "said": [1, None],
    "details": {"c": [True]},
    "perhaps": None,
    "pair": ["c", "d"],
}
_WRONG: tuple[tuple[str, JSON, str], ...] = (
    ("name", 1, "/name is no text"),
    ("name", None, "/name is no text"),
    ("count", True, "/count is no whole number"),
    ("count", 1.0, "/count is no whole number"),
    ("count", "1", "/count is no whole number"),
    ("sure", 1, "/sure is neither true nor false"),
    ("at", _CANARY, "/at is no moment"),
    ("at", "9999-12-31T23:59:59-23:59", "/at is no moment"),
    ("colour", _CANARY, "/colour is none of what it can be"),
    ("inner", [], "/inner is no object"),
    ("inner", {"size": True, "data": ""}, "/inner/size is no number"),
    ("inner", {"size": 1, "data": _CANARY}, "/inner/data is no base64"),
    ("inner", {"size": 1, "data": "ü"}, "/inner/data is no base64"),
    ("inner", {"size": 1}, "/inner lacks data"),
    ("several", {"0": {}}, "/several is no array"),
    ("several", _CANARY, "/several is no array"),
    ("several", [{"size": 1, "data": ""}, {"size": _CANARY, "data": ""}], "/several/1/size is no number"),
    ("counts", [], "/counts is no object"),
    ("counts", {"a/b": _CANARY}, "/counts/a~1b is no whole number"),
    ("details", [], "/details is no object"),
    ("perhaps", 1, "/perhaps is no text"),
    ("pair", "cd", "/pair is no array"),
    ("pair", ["c", "d", "e"], "/pair is no array of 2"),
)

_CONTAINERS: tuple[JSON, ...] = ([], [None], {}, {"a": 1}, [{}], "")


def _twice(value: Hiding) -> str:
    return value.name * 2


class ConverterTests(SynchronousTestCase):
    """A value, its JSON, and what is no such JSON."""

    def setUp(self) -> None:
        """Make a converter that was told nothing."""
        self.converter = JsonConverter()

    def test_there_and_back(self) -> None:
        """Each attribute is a member, and what was written is read as the same value."""
        self.assertEqual(self.converter.to_json(_OUTER), _WRITTEN)
        self.assertEqual(self.converter.from_json(Outer, _WRITTEN), _OUTER)

    def test_every_member(self) -> None:
        """No member may be missing, not even one whose attribute has a default; and none is unknown."""
        for name in _WRITTEN:
            fewer = {each: value for each, value in _WRITTEN.items() if each != name}
            self._refused(fewer, f"the object lacks {name}")
        self._refused({**_WRITTEN, "more": 1}, "the object has unknown members: more")
        values: tuple[JSON, ...] = (None, [], "a", 1)
        for value in values:
            self._refused(value, "the object is no object")

    def test_exact_types(self) -> None:
        """What is of another type is refused where it stands, and is not repeated."""
        for name, value, message in _WRONG:
            self._refused({**_WRITTEN, name: value}, message)

    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(_CONTAINERS))
    def test_anything(self, value: JSON) -> None:
        """Whatever stands in the place of a member, it is read as what it is or refused as a ValueError."""
        for name in ("name", "several", "counts", "inner", "at"):
            try:
                found = self.converter.from_json(Outer, {**_WRITTEN, name: value})
            except ValueError:
                continue
            self.assertEqual(self.converter.to_json(found)[name], value)

    def test_names(self) -> None:
        """A table names members otherwise, leaves them out, and adds what is computed or always the same."""
        self.converter.differ(Inner, constants={"version": 1}, size=Member("length"), data=Member(optional=True))
        written: JSON = {"version": 1, "length": 2.0}
        self.assertEqual(self.converter.to_json(Inner(2.0)), written)
        self.assertEqual(self.converter.from_json(Inner, written), Inner(2.0))
        for version in (2, True, "1", None):
            with self.assertRaises(ValueError):
                self.converter.from_json(Inner, {"version": version, "length": 2.0})
        self.converter.differ(Hiding, name=OMITTED, secret=OMITTED, computed={"twice": _twice})
        self.assertEqual(self.converter.to_json(Hiding("a")), {"twice": "aa"})

    def test_inline(self) -> None:
        """The members of an inner value can stand beside the others; each is asked for all the same."""
        self.converter.differ(Outer, inner=INLINE)
        written = self.converter.to_json(_OUTER)
        self.assertEqual((written["size"], written["data"], "inner" in written), (0.5, "/w==", False))
        self.assertEqual(self.converter.from_json(Outer, written), _OUTER)
        del written["size"]
        with self.assertRaisesRegex(ValueError, "^/inner lacks size$"):
            self.converter.from_json(Outer, written)

    def test_fallback(self) -> None:
        """One attribute can keep an object in another form, written as it was; what is no object is refused."""
        self.converter.differ(Lenient, kept=FALLBACK)
        others: tuple[dict[str, JSON], ...] = ({"size": "1"}, {}, {"size": 1.0, "kept": None})
        for written in others:
            self.assertEqual(self.converter.from_json(Lenient, written), Lenient(kept=written))
            self.assertEqual(self.converter.to_json(Lenient(kept=written)), written)
        self.assertEqual(self.converter.to_json(Lenient(2.0)), {"size": 2.0})
        self.assertEqual(self.converter.from_json(Lenient, {"size": 2.0}), Lenient(2.0))
        refused: tuple[JSON, ...] = (None, [], "x")
        for wrong in refused:
            with self.assertRaises(ValueError):
                self.converter.from_json(Lenient, wrong)

    def test_base(self) -> None:
        """A converter knows the forms of its base, and has its own before them."""
        self.converter.differ(Inner, data=OMITTED)
        same, other = JsonConverter(self.converter), JsonConverter(self.converter)
        self.assertEqual(same.to_json(Inner(1.0)), {"size": 1.0})
        other.differ(Inner, size=OMITTED)
        self.assertEqual(other.to_json(Inner(1.0)), {"data": ""})
        self.assertEqual(self.converter.to_json(Inner(1.0)), {"size": 1.0})

    def test_unknown_attribute(self) -> None:
        """A table that names no attribute of its class is refused when it is made."""
        with self.assertRaises(ValueError):
            self.converter.differ(Inner, weight=OMITTED)

    def test_late(self) -> None:
        """A form that comes after the class was converted is refused: it would not hold."""
        self.converter.to_json(Inner(1.0))
        with self.assertRaises(ValueError):
            self.converter.differ(Inner, data=OMITTED)

    def test_hidden(self) -> None:
        """What shows in no repr is not written unless a table says so."""
        with self.assertRaises(TypeError):
            self.converter.to_json(Hiding("a", _CANARY))
        without, named = JsonConverter(), JsonConverter()
        without.differ(Hiding, secret=OMITTED)
        named.differ(Hiding, secret=Member())
        self.assertEqual(without.to_json(Hiding("a", _CANARY)), {"name": "a"})
        self.assertEqual(named.to_json(Hiding("a", _CANARY)), {"name": "a", "secret": _CANARY})

    def test_fault(self) -> None:
        """The class of a fault is C{class}; its details are whatever they were."""
        fault = Fault("conflict", "Look again.", details={"revision": 2})
        self.assertEqual(
            compact(to_json(fault)),
            '{"boundary":"runtime","class":"conflict","details":{"revision":2},'
            '"message":"Look again.","retriable":false}',
        )
        self.assertEqual(from_json(Fault, to_json(fault)), fault)

    def _refused(self, value: JSON, message: str) -> None:
        with self.assertRaises(ValueError) as raised:
            self.converter.from_json(Outer, value)
        self.assertEqual(str(raised.exception), message)
        self.assertNotIn(_CANARY, repr(raised.exception))
