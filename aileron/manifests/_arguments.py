"""What a caller sent, against what the action declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jsonschema.protocols import Validator

from aileron.errors import InvalidRequest
from aileron.values import JSON, Action, Input, json_pointer, json_problems, violation

from ._json_schema import argument_checks, property_schema, validator

MOST_PROBLEMS = 100
"""No answer lists more: a caller can send a megabyte of them."""


def check_arguments(action: Action, arguments: JSON) -> Mapping[str, JSON]:
    """The arguments with defaults filled in, if every one is as the action declares it.

    Strings stay as they are: nothing is trimmed, converted or normalised.

    :param arguments: what the caller sent.
    :raises InvalidRequest: with every problem at once; no message repeats a value.
    """
    if not isinstance(arguments, Mapping):
        raise _refusal([("/args", "must be an object")])
    problems = [*json_problems(arguments, pointer="/args")]
    checks = argument_checks(action)
    if not checks.plainly_right(arguments):
        problems += [*_misnamed(action, arguments), *_violations(checks.validator, arguments, "/args")]
    if problems:
        raise _refusal(problems[:MOST_PROBLEMS])
    return {one.name: one.default for one in action.inputs if one.has_default} | dict(arguments)


def value_problems(one: Input, value: JSON) -> list[str]:
    """What is wrong with C{value} as a value of C{one}; empty if nothing is."""
    return [message for _, message in [*json_problems(value), *_violations(validator(property_schema(one)), value, "")]]


def _misnamed(action: Action, arguments: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
    declared = {one.name: one.required for one in action.inputs}
    for name, required in declared.items():
        if required and name not in arguments:
            yield json_pointer("/args", name), "is missing"
    for name in arguments:
        if name not in declared:
            yield json_pointer("/args", name), "is not an input of this action"


def _violations(checks: Validator, value: JSON, pointer: str) -> Iterator[tuple[str, str]]:
    """What the schema says of values; of names L{_misnamed} tells more clearly."""
    for error in checks.iter_errors(value):
        if error.validator not in _ABOUT_NAMES:
            yield json_pointer(pointer, *error.absolute_path), violation(str(error.validator), error.validator_value)


_ABOUT_NAMES = ("required", "additionalProperties")


def _refusal(problems: list[tuple[str, str]]) -> InvalidRequest:
    pointer, message = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return InvalidRequest.listing(f"The argument {pointer} {message}{more}.", *problems)
