"""Compares a request with the completed calls of the same action."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import frozen

from aileron.base.json import JSON
from aileron.model.interfaces.store import IRuns
from aileron.model.precedents import Precedents
from aileron.model.queries import RunQuery
from aileron.model.runs import Approval, Run, RunState

MOST_LOOKED_AT = 200
MOST_PIECES = 20_000
"""The values of one action's completed calls that are compared. Only the beginning of a very long array counts."""

MOST_COMPARED = 1000
"""The elements of an array that are compared. Later elements count as new."""

_SHORT = 200
_Key: TypeAlias = tuple[type, JSON]


@frozen
class _Done:
    """The completed calls of one action, newest first, and the approval of the newest of them.

    :ivar whole: True if these are all completed calls of the action.
    """

    runs: tuple[Run, ...]
    whole: bool
    last: Approval | None


async def find_precedents(runs: IRuns, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
    """Compare each approval with the newest L{MOST_LOOKED_AT} completed calls of its action.

    :return: a comparison for each approval, in the same order.
    """
    actions = dict.fromkeys(approval.run.action for approval in approvals)
    done = {action: await _find_done(runs, action) for action in actions}
    known = {action: _list_known(found.runs) for action, found in done.items()}
    return tuple(_compare(each, done[each.run.action], known[each.run.action]) for each in approvals)


async def _find_done(runs: IRuns, action: str) -> _Done:
    page = await runs.list(RunQuery(states=(RunState.COMPLETED,), action=action, limit=MOST_LOOKED_AT))
    last = await runs.approval(page.items[0].id) if page.items else None
    kept = tuple(_affordable(page.items))
    return _Done(kept, page.cursor is None and len(kept) == len(page.items), last)


def _compare(approval: Approval, done: _Done, known: Mapping[str, set[_Key]]) -> Precedents:
    if not done.runs:
        return Precedents(0, done.whole, _novel(approval.run, known))
    return Precedents(
        len(done.runs),
        done.whole,
        _novel(approval.run, known),
        approval.run.manifest_digest != done.runs[0].manifest_digest,
        tuple(_others(approval, done.last)),
    )


def _affordable(runs: Sequence[Run]) -> Iterator[Run]:
    """Yield the first runs of C{runs} that together have at most L{MOST_PIECES} values, but at least one run.

    This limits the time for comparing them.
    """
    pieces = 0
    for number, run in enumerate(runs):
        pieces += sum(len(_beginning(value)) for value in run.arguments.values())
        if number and pieces > MOST_PIECES:
            return
        yield run


def _beginning(value: JSON) -> Sequence[JSON]:
    """Return the parts of a value to compare: the first elements of an array, or else the value alone."""
    return value[:MOST_COMPARED] if isinstance(value, (list, tuple)) else (value,)


def _list_known(runs: Iterable[Run]) -> Mapping[str, set[_Key]]:
    """Return the short values that the runs have for each argument, by the argument's name."""
    found: dict[str, set[_Key]] = defaultdict(set)
    for run in runs:
        for name, value in run.arguments.items():
            found[name].update(map(_key, _pieces(_beginning(value))))
    return found


def _novel(run: Run, known: Mapping[str, set[_Key]]) -> dict[str, tuple[JSON, ...]]:
    """Return the values that no earlier run had, by the argument's name.

    Only the first L{MOST_COMPARED} elements of an array are compared. All later elements count as new.
    """
    found = {}
    for name, value in run.arguments.items():
        before = known.get(name, ())
        pieces = [piece for piece in _pieces(_beginning(value)) if _key(piece) not in before]
        pieces += value[MOST_COMPARED:] if isinstance(value, (list, tuple)) else ()
        if pieces:
            found[name] = tuple(pieces)
    return found


def _key(piece: JSON) -> _Key:
    """Return the key by which a value is compared with others. In it, 1 differs from 1.0 and from "1"."""
    return type(piece), piece


def _pieces(values: Iterable[JSON]) -> Iterator[JSON]:
    """Yield the values that are compared: short texts of one line, and numbers."""
    for piece in values:
        number = isinstance(piece, (int, float)) and not isinstance(piece, bool)
        if number or (isinstance(piece, str) and len(piece) <= _SHORT and "\n" not in piece):
            yield piece


def _others(approval: Approval, last: Approval | None) -> Iterator[str]:
    """Yield the connectors whose version or file differs between the two reviews."""
    before = {} if last is None else _connectors(last)
    for name, content in _connectors(approval).items():
        if before.get(name, content) != content:
            yield name


def _connectors(approval: Approval) -> dict[str, tuple[str, str]]:
    return {step.connector: (step.version, step.content_hash) for step in approval.review.steps}
