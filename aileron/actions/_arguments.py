"""Checks the arguments of a call against the inputs that the action declares."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from itertools import islice

from twisted.logger import Logger

from aileron.base.json import JSON, json_pointer, json_problems
from aileron.base.schemas import violation
from aileron.base.tables import brief
from aileron.base.text import visible
from aileron.model.actions import Action, Input
from aileron.model.errors import InvalidRequest

from ._checks import MOST_STEPS, Check, TooMuchWork, Work, check_of
from ._tool import ArgumentChecks, argument_checks, property_schema

MOST_PROBLEMS = 100
"""The maximum number of problems listed in one error."""

_TOO_MUCH = "holds too much to be checked by its schema"
_log = Logger()


def check_arguments(action: Action, arguments: JSON) -> Mapping[str, JSON]:
    """Check the arguments of a call and return them with defaults filled in.

    Strings stay as they are: they are not trimmed, converted or normalised.

    :param arguments: the arguments that the caller sent.
    :raises InvalidRequest: if an argument is invalid or missing. The error lists every problem (at most 100) and
        repeats no value.
    """
    if not isinstance(arguments, Mapping):
        raise _refusal([("/args", "must be an object")])
    problems = [*json_problems(arguments, pointer="/args")] or _find(action, arguments)
    if problems:
        raise _refusal(problems[:MOST_PROBLEMS])
    return {one.name: one.default for one in action.inputs if one.has_default} | dict(arguments)


def value_problems(one: Input, value: JSON, work: Work) -> list[str]:
    """Return the problems of C{value} as a value of the input C{one} in an action file, or an empty list.

    :param work: the work allowed for schemas that the file's author wrote.
    """
    check, bounded = check_of(property_schema(one)), Work() if one.schema is None else work
    try:
        found = [*json_problems(value)] or [*islice(_one(check, value, "", bounded), MOST_PROBLEMS)]
    except TooMuchWork:
        return [_TOO_MUCH]
    return [f"at {visible(pointer)} {message}" if pointer else message for pointer, message in found]


def _find(action: Action, arguments: Mapping[str, JSON]) -> list[tuple[str, str]]:
    """Return the first problems of the arguments, as pointer and message. An internal error is logged, not raised."""
    try:
        return [*islice(_problems(argument_checks(action), arguments), MOST_PROBLEMS)]
    except TooMuchWork:
        return [("/args", _TOO_MUCH)]
    except Exception as error:  # noqa: BLE001 - an error in the check of one schema must fail only this call
        where = traceback.extract_tb(error.__traceback__)[-1]
        _log.error(
            "checking arguments of {action} failed: {kind}, {file}:{line}",  # no message: it may repeat a value
            action=action.name,
            kind=type(error).__name__,
            file=where.filename,
            line=where.lineno,
        )
        return [("/args", "cannot be checked")]


def _problems(checks: ArgumentChecks, arguments: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
    for name in checks.required:
        if name not in arguments:
            yield json_pointer("/args", name), "is missing"
    work, free = Work(MOST_STEPS), Work()
    for name, value in arguments.items():
        pointer = json_pointer("/args", name)
        if name not in checks.each:
            yield pointer, "is not an input of this action"
        else:
            yield from _one(checks.each[name], value, pointer, work if name in checks.costly else free)


def _one(check: Check, value: JSON, pointer: str, work: Work) -> Iterator[tuple[str, str]]:
    for problem in check(value, work):
        message = _ABOUT_NAMES.get(problem.keyword) or violation(problem.keyword, problem.wanted)
        yield json_pointer(pointer, *problem.path), brief(message)  # a schema's author may have written part of it


_ABOUT_NAMES = {"required": "is missing", "additionalProperties": "is not known here"}


def _refusal(problems: list[tuple[str, str]]) -> InvalidRequest:
    pointer, message = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return InvalidRequest.listing(f"The argument {pointer} {message}{more}.", *problems)
