"""Values against JSON Schema: every problem at once, each with its JSON pointer, and none repeats a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

from aileron.base.json import JSON, json_pointer
from aileron.base.schemas import violation
from aileron.model.errors import InvalidRequest


@lru_cache(maxsize=256)  # more than our own schemas have
def expression(pattern: str) -> re.Pattern[str]:
    """Compile a schema's C{pattern}, whose C{$} is the end of the text, and not before a last line feed (ECMA 262)."""
    return re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)


def _pattern(_validator: object, wanted: str, value: object, _schema: object) -> Iterator[ValidationError]:
    if isinstance(value, str) and not expression(wanted).search(value):
        yield ValidationError("does not match")


_Validator = validators.extend(Draft202012Validator, {"pattern": _pattern})


class Shape:
    """A schema, compiled when it is first needed; it must be one, which the tests check and a start need not."""

    def __init__(self, schema: Mapping[str, JSON]) -> None:
        self.schema = schema

    @cached_property
    def _errors(self) -> Callable[[JSON], Iterable[ValidationError]]:
        found: Callable[[JSON], Iterable[ValidationError]] = _Validator(self.schema).iter_errors
        return found

    def problems(self, value: JSON, base: str = "") -> list[tuple[str, str]]:
        """Pairs of pointer and message; empty where C{value} has this shape."""
        found = {pair: None for error in self._errors(value) for pair in _pairs(error, base)}
        return list(found)

    def check(self, value: JSON, what: str) -> None:
        """Refuse a value of another shape.

        :param what: C{body} or C{query}, for the message.
        :raises InvalidRequest: every problem at once.
        """
        problems = self.problems(value)
        if problems:
            raise InvalidRequest.listing(f"The {what} is not what this route takes.", *problems)


def _pairs(error: ValidationError, base: str) -> Iterator[tuple[str, str]]:
    """Tell what one error says; for a missing or an unknown member, at that member's own pointer."""
    where = json_pointer(base, *error.absolute_path)
    instance: Any = error.instance
    wanted: Any = error.validator_value
    schema: Any = error.schema
    if error.validator == "required":
        yield from ((json_pointer(where, name), "is required") for name in wanted if name not in instance)
    elif error.validator == "additionalProperties":
        known = schema.get("properties", {})
        yield from ((json_pointer(where, name), "is unknown") for name in instance if name not in known)
    else:
        yield where, violation(str(error.validator), wanted)
