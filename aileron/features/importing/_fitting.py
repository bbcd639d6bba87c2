"""Reduces an operation to the size limits of an action."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from attrs import evolve

from aileron.actions import MAX_INPUTS
from aileron.base.json import JSON
from aileron.base.text import visible

from .description import BODY, QUERY, ApiOperation, ApiParameter, name_left_out

MOST_SCHEMAS = 64 * 1024
"""The maximal size of all schemas of an action. Writing them takes time quadratic in the number of members."""
_BY_INPUT = frozenset({"joined", "slashes"})
"""Keys of an operation that name inputs."""


def fit(operation: ApiOperation) -> ApiOperation:
    """Return the operation without the arguments that exceed an action's limits; deeply nested optional ones go first.

    If a required argument does not fit, the operation is returned as refused. C{marks} of the operation names what was
    left out.
    """
    if operation.refused:
        return operation
    ordered = sorted(operation.parameters, key=lambda each: _rank(each, paging_of(operation)))
    room, left_out = MOST_SCHEMAS, dict[str, list[str]]()
    names = set[str]()
    for each in ordered:
        text = json.dumps([each.steps, each.schema], ensure_ascii=False, default=dict)
        if why := _misfit(text, room, len(names)):
            if each.required:
                return evolve(operation, refused=f"{each.name} is required, but {why}")
            left_out.setdefault(why, []).append(each.name)
        else:
            room -= len(text)
            names.add(each.name)
    kept = tuple(each for each in operation.parameters if each.name in names)
    extra = {key: each for key, each in operation.extra.items() if key not in _BY_INPUT}
    for key in _BY_INPUT & operation.extra.keys():
        extra |= _only_of(key, operation.extra[key], names)
    operation = evolve(operation, extra=extra)
    operation, unpaged = _with_pages(operation, {".".join(each.steps) for each in kept if each.place in (QUERY, BODY)})
    marks = [*unpaged, *(each for why, gone in left_out.items() for each in name_left_out(why, gone))]
    return evolve(operation, parameters=kept, marks=(*operation.marks, *marks))


def paging_of(operation: ApiOperation) -> frozenset[str]:
    """Return the service's names of the parameters that select the page and its size."""
    pages = operation.extra.get("pages", operation.pages)
    found = (pages.get(key) for key in ("parameter", "size")) if isinstance(pages, Mapping) else ()
    return frozenset(str(each) for each in found if each is not None)


def _with_pages(operation: ApiOperation, names: Collection[str]) -> tuple[ApiOperation, list[str]]:
    """If a paging parameter is not in C{names}, return the operation without its table C{pages}.

    A text that says so is returned too. Otherwise return the operation unchanged, and no text.
    """
    needed = paging_of(operation)
    if needed <= {*names}:
        return operation, []
    extra = {key: each for key, each in operation.extra.items() if key not in ("pages", "result")}
    return evolve(operation, extra=extra, pages=None), [
        f"its pages are not read: {', '.join(sorted(needed))} is left out"
    ]


def _rank(parameter: ApiParameter, paging: frozenset[str]) -> tuple[bool, bool, int]:
    """Return the sort key for keeping parameters: required ones first, then paging ones, then the least nested."""
    pages = parameter.place in (QUERY, BODY) and ".".join(parameter.steps) in paging
    return not parameter.required, not pages, sum(1 + step.count("[") for step in parameter.steps)


def _only_of(key: str, value: JSON, names: Collection[str]) -> dict[str, JSON]:
    """Return C{key} with its value reduced to the inputs in C{names}; empty if no input is left."""
    if isinstance(value, Mapping):
        value = {name: each for name, each in value.items() if name in names}
    elif isinstance(value, list):
        value = [name for name in value if name in names]
    return {key: value} if value else {}


def _misfit(text: str, room: int, number: int) -> str:
    """Return why an argument does not fit into an action; empty if it fits.

    :param room: the bytes left for schemas.
    :param number: how many inputs the action has already.
    """
    if visible(text) != text:
        return "it holds characters that cannot be seen"
    if len(text) > room:
        return "an action would be too large"
    return f"an action has at most {MAX_INPUTS} inputs" if number == MAX_INPUTS else ""
