"""Validators of arguments (JSON Schema 2020-12): the formats that we check, in bounded work whoever wrote the schema.

What costs more than in proportion to the value is done here another way than C{jsonschema} does it: patterns, and
whether an element stands twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, TypeAlias

from attrs import define
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from aileron.values import JSON, canonical, plain

from ._formats import checker
from ._patterns import occurs

MOST_STEPS = 1_000_000
"""What a call may cause: more than all that a megabyte of arguments needs by any schema that is not odd."""

_AN_ERROR = 20
_CHARACTERS_A_STEP = 20

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class TooMuchWork(Exception):
    """To check this value by this schema would take more steps than are allowed."""


@define
class _Work:
    """What may still be done."""

    left: int

    def take(self, steps: int) -> None:
        """Do so much of it.

        :raises TooMuchWork: so much is not left.
        """
        self.left -= steps
        if self.left < 0:
            raise TooMuchWork


_WORK: ContextVar[_Work] = ContextVar("work")


def validator(schema: Mapping[str, JSON]) -> Validator:
    """A validator of C{schema} that checks formats; to be asked within L{bounded} alone."""
    made: Validator = _Validator(plain(schema), format_checker=checker())
    return made


@contextmanager
def bounded(steps: int = MOST_STEPS) -> Iterator[None]:
    """Let validators do so much inside, all together.

    :raises TooMuchWork: it was not enough.
    """
    token = _WORK.set(_Work(steps))
    try:
        yield
    except RecursionError:
        raise TooMuchWork from None
    finally:
        _WORK.reset(token)


def first_errors(checks: Validator, value: JSON, most: int, steps: int = MOST_STEPS) -> list[ValidationError]:
    """What is wrong with C{value}, not more than C{most}; what is missing or unknown at its own place.

    :raises TooMuchWork: it cannot be told within C{steps}.
    """
    with bounded(steps):
        return list(islice(checks.iter_errors(value), most))


def _counted(keyword: Keyword) -> Keyword:
    """The same, paid for by what stands beside the keyword, and by what its errors keep."""

    def counted(checks: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        work = _WORK.get()
        work.take(1 + (len(wanted) if isinstance(wanted, (list, dict)) else 0))
        for error in keyword(checks, wanted, instance, schema) or ():
            work.take(_AN_ERROR + len(error.message) // _CHARACTERS_A_STEP)
            yield error

    return counted


def _required(checks: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if checks.is_type(instance, "object"):
        yield from (ValidationError("", path=[name]) for name in wanted if name not in instance)


def _additional(checks: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not checks.is_type(instance, "object"):
        return
    known = schema.get("properties", {})
    for name in [name for name in instance if name not in known]:
        if wanted is False:
            yield ValidationError("", path=[name])
        else:
            yield from checks.descend(instance[name], wanted, path=name)


def _names(checks: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if checks.is_type(instance, "object"):
        by_name = checks.evolve(schema=wanted)
        yield from (ValidationError("", path=[name]) for name in instance if not by_name.is_valid(name))


def _pattern(checks: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if checks.is_type(instance, "string"):
        _WORK.get().take(len(instance) // _CHARACTERS_A_STEP)
        if not occurs(wanted, instance):
            yield ValidationError("")


def _unique(checks: Any, wanted: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if wanted is True and checks.is_type(instance, "array"):
        _WORK.get().take(len(instance))
        if len({canonical(each) for each in instance}) < len(instance):
            yield ValidationError("")


def _is_object(_checker: object, value: object) -> bool:
    return isinstance(value, Mapping)


def _is_array(_checker: object, value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


_OWN: Mapping[str, Keyword] = {
    "required": _required,
    "additionalProperties": _additional,
    "propertyNames": _names,
    "pattern": _pattern,
    "uniqueItems": _unique,
}

_Validator: Any = extend(
    Draft202012Validator,
    {name: _counted(keyword) for name, keyword in {**Draft202012Validator.VALIDATORS, **_OWN}.items()},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many({"object": _is_object, "array": _is_array}),
)
