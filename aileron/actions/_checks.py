"""Finds the problems of a value under a JSON Schema of the keywords of L{_own_schema}, with a limit on the work.

C{jsonschema} is not used, since it puts whole values into its messages and compares each element with each. The
problems found here are those that C{jsonschema} finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import isfinite
from typing import Any, TypeAlias

from attrs import define, evolve, frozen

from aileron.base.json import JSON
from aileron.base.patterns import compile_pattern

from ._formats import FORMATS, MOST_CHARACTERS

MOST_STEPS = 100_000
"""The maximum work of one call, for all arguments whose schema the action's author wrote: a tenth of a second."""

_AN_IDENTITY = 3
_CHARACTERS_A_STEP = 25
_INSTRUCTIONS_A_STEP = 200


class TooMuchWork(Exception):
    """Raised if checking a value would take more steps than its L{Work} budget allows."""


@define
class Work:
    """A budget of steps for checking a value, so that a hostile value or schema cannot occupy the daemon.

    :ivar left: the steps left, each about a microsecond.
    """

    left: float = float("inf")

    def take(self, steps: int) -> None:
        """Subtract C{steps} from the budget.

        :raises TooMuchWork: if fewer than C{steps} are left.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


@frozen
class Problem:
    """A problem somewhere in a value.

    :ivar path: the names and indexes that lead to the place.
    :ivar keyword: the keyword of the schema that the value violates.
    :ivar wanted: the value of that keyword.
    """

    path: tuple[str | int, ...]
    keyword: str
    wanted: Any

    def within(self, key: str | int) -> Problem:
        """Return the problem with its path prefixed by C{key}, as a problem of the enclosing value."""
        return evolve(self, path=(key, *self.path))


Check: TypeAlias = Callable[[Any, Work], Iterator[Problem]]
_Question: TypeAlias = Callable[[Any, Work], bool]
_Schema: TypeAlias = Mapping[str, Any]


def check_of(schema: _Schema) -> Check:
    """Compile C{schema} into a check: a function of a value and a L{Work} that yields the value's problems lazily.

    The check raises L{TooMuchWork} if the work is used up.
    """
    asked = ((key, wanted, *_ASKED[key]) for key, wanted in schema.items() if key in _ASKED)
    questions = tuple((key, wanted, about, make(wanted, schema)) for key, wanted, about, make in asked)
    inner = tuple((_INNER[key][0], _INNER[key][1](wanted, schema)) for key, wanted in schema.items() if key in _INNER)
    steps = 1 + len(questions) + len(inner)

    def check(value: Any, work: Work) -> Iterator[Problem]:
        work.take(steps)
        kind = _kind(value)
        for keyword, wanted, about, holds in questions:
            if about in (None, kind) and not holds(value, work):
                yield Problem((), keyword, wanted)
        for about, within in inner:
            if about == kind:
                yield from within(value, work)

    return check


def _kind(value: object) -> str:
    """Return the JSON type name of a value."""
    found = _KINDS.get(type(value))
    if found is None:
        return "object" if isinstance(value, Mapping) else "array"
    return found


_KINDS: Mapping[type, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
    dict: "object",
    list: "array",
}


def _type(wanted: str, _schema: _Schema) -> _Question:
    if wanted == "integer":
        return lambda value, _: _kind(value) == "number" and (isinstance(value, int) or value.is_integer())
    return lambda value, _: _kind(value) == wanted


def _one_of(options: Sequence[JSON], _schema: _Schema) -> _Question:
    free = Work()
    known = frozenset(_identity(each, free) for each in options)
    return lambda value, work: _identity(value, work) in known


def _identity(value: Any, work: Work) -> object:
    """Return a key that is equal for values that JSON Schema considers equal.

    The key of a number is text, so that a caller cannot cause hash collisions.

    :raises TooMuchWork: if the work is used up.
    """
    kind = _kind(value)
    work.take(_AN_IDENTITY + (len(value) // _CHARACTERS_A_STEP if kind == "string" else 0))
    if kind == "number":
        return kind, (value + 0.0).hex()
    if kind == "array":
        return kind, tuple(_identity(each, work) for each in value)
    if kind == "object":
        return kind, frozenset((name, _identity(each, work)) for name, each in value.items())
    return kind, value


def _unique(wanted: bool, _schema: _Schema) -> _Question:
    return lambda value, work: not wanted or len({_identity(each, work) for each in value}) == len(value)


def _multiple(step: float, _schema: _Schema) -> _Question:
    if isinstance(step, int):
        return lambda value, _: not value % step
    return lambda value, _: _divides(step, value)


def _divides(step: float, value: float) -> bool:
    found = value / step
    return found.is_integer() if isfinite(found) else (Fraction(value) / Fraction(step)).denominator == 1


def _pattern(wanted: str, schema: _Schema) -> _Question:
    """Return the check of a pattern. A text longer than C{maxLength} passes, since that keyword refuses it."""
    found, most = compile_pattern(wanted), schema.get("maxLength", MOST_CHARACTERS)

    def holds(value: str, work: Work) -> bool:
        if len(value) > most:
            return True
        data = value.encode()
        work.take(1 + found.programsize * len(data) // _INSTRUCTIONS_A_STEP)
        return found.search(data) is not None

    return holds


def _format(name: str, _schema: _Schema) -> _Question:
    test = FORMATS.get(name)

    def holds(value: str, work: Work) -> bool:
        work.take(len(value) // _CHARACTERS_A_STEP)
        return test is None or test(value)

    return holds


def _any_of(options: Sequence[_Schema], _schema: _Schema) -> _Question:
    checks = [check_of(each) for each in options]
    return lambda value, work: any(_fits(each, value, work) for each in checks)


def _only_one_of(options: Sequence[_Schema], _schema: _Schema) -> _Question:
    checks = [check_of(each) for each in options]
    return lambda value, work: sum(_fits(each, value, work) for each in checks) == 1


def _fits(check: Check, value: JSON, work: Work) -> bool:
    return next(check(value, work), None) is None


def _properties(wanted: Mapping[str, _Schema], _schema: _Schema) -> Check:
    checks = {name: check_of(each) for name, each in wanted.items()}

    def within(value: Mapping[str, Any], work: Work) -> Iterator[Problem]:
        work.take(len(value))
        for name, each in value.items():
            if name in checks:
                yield from (problem.within(name) for problem in checks[name](each, work))

    return within


def _check_required(wanted: Sequence[str], _schema: _Schema) -> Check:
    def within(value: Mapping[str, Any], work: Work) -> Iterator[Problem]:
        work.take(len(wanted))
        yield from (Problem((name,), "required", wanted) for name in wanted if name not in value)

    return within


def _additional(wanted: bool, schema: _Schema) -> Check:
    known = schema.get("properties", {})

    def within(value: Mapping[str, Any], work: Work) -> Iterator[Problem]:
        work.take(0 if wanted else len(value))
        if not wanted:
            yield from (Problem((name,), "additionalProperties", wanted) for name in value if name not in known)

    return within


def _items(wanted: _Schema, _schema: _Schema) -> Check:
    check = check_of(wanted)

    def within(value: Sequence[Any], work: Work) -> Iterator[Problem]:
        for index, each in enumerate(value):
            for problem in check(each, work):
                yield problem.within(index)

    return within


_ASKED: Mapping[str, tuple[str | None, Callable[[Any, _Schema], _Question]]] = {
    "type": (None, _type),
    "enum": (None, _one_of),
    "const": (None, lambda only, schema: _one_of([only], schema)),
    "anyOf": (None, _any_of),
    "oneOf": (None, _only_one_of),
    "minLength": ("string", lambda bound, _: lambda value, _: len(value) >= bound),
    "maxLength": ("string", lambda bound, _: lambda value, _: len(value) <= bound),
    "pattern": ("string", _pattern),
    "format": ("string", _format),
    "minimum": ("number", lambda bound, _: lambda value, _: value >= bound),
    "maximum": ("number", lambda bound, _: lambda value, _: value <= bound),
    "exclusiveMinimum": ("number", lambda bound, _: lambda value, _: value > bound),
    "exclusiveMaximum": ("number", lambda bound, _: lambda value, _: value < bound),
    "multipleOf": ("number", _multiple),
    "minItems": ("array", lambda bound, _: lambda value, _: len(value) >= bound),
    "maxItems": ("array", lambda bound, _: lambda value, _: len(value) <= bound),
    "uniqueItems": ("array", _unique),
    "minProperties": ("object", lambda bound, _: lambda value, _: len(value) >= bound),
    "maxProperties": ("object", lambda bound, _: lambda value, _: len(value) <= bound),
}

_INNER: Mapping[str, tuple[str, Callable[[Any, _Schema], Check]]] = {
    "properties": ("object", _properties),
    "required": ("object", _check_required),
    "additionalProperties": ("object", _additional),
    "items": ("array", _items),
}
