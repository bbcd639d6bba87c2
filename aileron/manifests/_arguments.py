"""What a caller sent, against what the action declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema.protocols import Validator

from aileron.errors import InvalidRequest
from aileron.values import JSON, Action, Input, json_pointer, json_problems, violation, visible

from ._faults import brief
from ._json_schema import argument_checks, property_schema
from ._validators import MOST_STEPS, TooMuchWork, first_errors, validator

MOST_PROBLEMS = 100
"""No answer lists more: a caller can send a megabyte of them."""

MOST_STEPS_OF_A_FILE = 20_000
"""What checking one value that a file declares may take: files are read before anybody trusts them."""


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
    if not problems and not checks.plainly_right(arguments):
        problems = [
            *_misnamed(action, arguments),
            *_violations(checks.validator, arguments, "/args", names_told=True),
        ]
    if problems:
        raise _refusal(problems[:MOST_PROBLEMS])
    return {one.name: one.default for one in action.inputs if one.has_default} | dict(arguments)


def value_problems(one: Input, value: JSON) -> list[str]:
    """What is wrong with C{value} as a value of C{one}, in the file that holds it; empty if nothing is."""
    checks = validator(property_schema(one))
    found = [*json_problems(value)] or [*_violations(checks, value, "", steps=MOST_STEPS_OF_A_FILE)]
    return [f"at {visible(pointer)} {message}" if pointer else message for pointer, message in found]


def _misnamed(action: Action, arguments: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
    declared = {one.name: one.required for one in action.inputs}
    for name, required in declared.items():
        if required and name not in arguments:
            yield json_pointer("/args", name), "is missing"
    for name in arguments:
        if name not in declared:
            yield json_pointer("/args", name), "is not an input of this action"


def _violations(
    checks: Validator, value: JSON, pointer: str, *, steps: int = MOST_STEPS, names_told: bool = False
) -> Iterator[tuple[str, str]]:
    """What the schema says of C{value}.

    :param names_told: leave out which of its own members are missing or unknown.
    """
    try:
        errors = first_errors(checks, value, MOST_PROBLEMS, steps)
    except TooMuchWork:
        yield pointer, "holds too much to be checked by its schema"
        return
    for error in errors:
        keyword, path = str(error.validator), error.absolute_path
        if not (names_told and len(path) == 1 and keyword in _ABOUT_NAMES):
            yield json_pointer(pointer, *path), _said(keyword, error.validator_value)


_ABOUT_NAMES = {"required": "is missing", "additionalProperties": "is not known here"}


def _said(keyword: str, wanted: Any) -> str:
    """What a constraint asks for, in words of which a schema's author may have written some."""
    return brief(_ABOUT_NAMES.get(keyword) or violation(keyword, wanted))


def _refusal(problems: list[tuple[str, str]]) -> InvalidRequest:
    pointer, message = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return InvalidRequest.listing(f"The argument {pointer} {message}{more}.", *problems)
