"""Validates values by JSON Schema. It lists every problem with its JSON pointer and repeats no value."""

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


@lru_cache(maxsize=256)  # more than our own schemas contain
def expression(pattern: str) -> re.Pattern[str]:
    """Compile a schema's C{pattern}. Its C{$} matches only the end of the text, as in ECMA 262."""
    return re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)


def _pattern(_validator: object, wanted: str, value: object, _schema: object) -> Iterator[ValidationError]:
    if isinstance(value, str) and not expression(wanted).search(value):
        yield ValidationError("does not match")


_Validator = validators.extend(Draft202012Validator, {"pattern": _pattern})


class Shape:
    """A JSON Schema, compiled when it is first used.

    The tests, not the daemon, check that the schema itself is valid.
    """

    def __init__(self, schema: Mapping[str, JSON]) -> None:
        self.schema = schema

    @cached_property
    def _errors(self) -> Callable[[JSON], Iterable[ValidationError]]:
        found: Callable[[JSON], Iterable[ValidationError]] = _Validator(self.schema).iter_errors
        return found

    def problems(self, value: JSON, base: str = "") -> list[tuple[str, str]]:
        """Return pairs of pointer and message, or an empty list if C{value} is valid."""
        found = {pair: None for error in self._errors(value) for pair in _pairs(error, base)}
        return list(found)

    def check(self, value: JSON, what: str) -> None:
        """Raise if C{value} is invalid.

        :param what: C{body} or C{query}, for the message.
        :raises InvalidRequest: if the value is invalid. It lists every problem.
        """
        problems = self.problems(value)
        if problems:
            raise InvalidRequest.listing(f"The {what} is not what this route takes.", *problems)


def _pairs(error: ValidationError, base: str) -> Iterator[tuple[str, str]]:
    """Yield pointer and message of one error. For a missing or unknown member the pointer is the member's own."""
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
