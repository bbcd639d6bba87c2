"""Compares what is asked for with what was done before of the same action."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import frozen

from aileron.interfaces import IRuns
from aileron.values import JSON, Approval, Precedents, Run, RunQuery, RunState, compact

MOST_LOOKED_AT = 200
_SHORT = 200


@frozen
class _Done:
    """The calls of one action that were done, the newest first, and what was approved of the first of them."""

    runs: tuple[Run, ...]
    whole: bool
    last: Approval | None


@frozen(eq=False)
class Recall:
    """Remembers by the runs that are kept, of each action the newest L{MOST_LOOKED_AT} alone."""

    _runs: IRuns

    async def before(self, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        """See L{aileron.interfaces.IRunner.precedents}."""
        actions = dict.fromkeys(approval.run.action for approval in approvals)
        done = {action: await self._done(action) for action in actions}
        known = {action: _known(found.runs) for action, found in done.items()}
        return tuple(_compared(each, done[each.run.action], known[each.run.action]) for each in approvals)

    async def _done(self, action: str) -> _Done:
        query = RunQuery(states=(RunState.COMPLETED,), action=action, limit=MOST_LOOKED_AT)
        page = await self._runs.list(query)
        last = await self._runs.approval(page.items[0].id) if page.items else None
        return _Done(page.items, page.cursor is None, last)


def _compared(approval: Approval, done: _Done, known: Mapping[str, set[str]]) -> Precedents:
    if not done.runs:
        return Precedents(0, done.whole, _novel(approval.run, known))
    return Precedents(
        len(done.runs),
        done.whole,
        _novel(approval.run, known),
        approval.run.manifest_digest != done.runs[0].manifest_digest,
        tuple(_others(approval, done.last)),
    )


def _known(runs: Iterable[Run]) -> Mapping[str, set[str]]:
    """By argument, every short value that it ever had."""
    found: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for name, value in run.arguments.items():
            found[name].update(map(compact, _pieces(value)))
    return found


def _novel(run: Run, known: Mapping[str, set[str]]) -> dict[str, tuple[JSON, ...]]:
    found = {
        name: tuple(piece for piece in _pieces(value) if compact(piece) not in known.get(name, ()))
        for name, value in run.arguments.items()
    }
    return {name: pieces for name, pieces in found.items() if pieces}


def _pieces(value: JSON) -> Iterator[JSON]:
    """What of a value can be the same twice: short texts in one line, and numbers."""
    for piece in value if isinstance(value, (list, tuple)) else (value,):
        number = isinstance(piece, (int, float)) and not isinstance(piece, bool)
        if number or (isinstance(piece, str) and len(piece) <= _SHORT and "\n" not in piece):
            yield piece


def _others(approval: Approval, last: Approval | None) -> Iterator[str]:
    """The connectors in both reviews that are not the same there."""
    before = {} if last is None else _connectors(last)
    for name, content in _connectors(approval).items():
        if before.get(name, content) != content:
            yield name


def _connectors(approval: Approval) -> dict[str, tuple[JSON, JSON]]:
    steps = approval.review.get("steps")
    found = [step for step in steps if isinstance(step, Mapping)] if isinstance(steps, (list, tuple)) else []
    return {str(step.get("connector")): (step.get("version"), step.get("content_hash")) for step in found}
