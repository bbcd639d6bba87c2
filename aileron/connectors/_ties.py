"""What ties a write to what was read before it: headers lifted into a read's result, and inputs that a write checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from aileron.values import JSON, READ

from ._answer import Answer
from ._decode import proper
from ._table import Table

MOST_HEADERS = 16
MOST_CHARACTERS = 4096
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_KEPT_BACK = frozenset({"set-cookie", "set-cookie2", "www-authenticate", "authentication-info"})


def read_precondition(table: Table, inputs: Collection[str], effect: str) -> tuple[str, ...]:
    """The inputs that C{precondition} names."""
    names = table.texts("precondition")
    if names and effect == READ:
        table.fault("precondition", "is for what has an effect")
    for name in names:
        if name not in inputs:
            table.fault("precondition", f"{name!r} is not an input of the operation")
    return names


def read_answer_headers(table: Table, effect: str, named: Collection[str] | None) -> Mapping[str, str]:
    """Name in the result, and header in lower case, as C{answer_headers} says.

    :param named: the other parts of the result; L{None}: it is the whole answer, beside which nothing has room.
    """
    inside = table.table("answer_headers")
    if inside is None:
        return {}
    if effect != READ:
        table.fault("answer_headers", "is for reads")
    if named is None:
        table.fault("answer_headers", 'needs a result to stand in, or answer = "none"')
    if len(inside.values) > MOST_HEADERS:
        table.fault("answer_headers", f"may hold at most {MOST_HEADERS}")
    return {name: _header(inside, name, named or ()) for name in inside.values}


def _header(inside: Table, name: str, named: Collection[str]) -> str:
    header = inside.text(name, required=True).lower()
    if name in named:
        inside.fault(name, "is part of the result already")
    if header and not _TOKEN.fullmatch(header):
        inside.fault(name, "is no name of a header")
    if header in _KEPT_BACK:
        inside.fault(name, "is a header that is not handed on")
    return header


def lifted(headers: Mapping[str, str], answer: Answer) -> dict[str, JSON]:
    """The parts of a result that are headers; what is missing, empty or longer than can be a tie is null."""
    found = {name: proper(answer.headers.get(header, "")) for name, header in headers.items()}
    return {name: value if 0 < len(value) <= MOST_CHARACTERS else None for name, value in found.items()}
