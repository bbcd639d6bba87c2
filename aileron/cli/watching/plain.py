"""The same for a terminal that can do no more than lines: a list, and questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from aileron.cli._errors import Trouble, report
from aileron.cli._output import note, say, table
from aileron.cli._surroundings import Surroundings
from aileron.cli.approvals.deciding import Ballot, decide_shown, look, refuse_decided
from aileron.cli.approvals.edit import rewritten
from aileron.cli.approvals.flooding import deny_all_of
from aileron.cli.approvals.moments import moment_of
from aileron.cli.approvals.review import show_review
from aileron.values import from_timestamp, timestamp, utc

from .drawing import age

if TYPE_CHECKING:
    from aileron.client import Operator

_MOST = 200
_WAIT_SECONDS = 10.0
_ASK_WHICH = "Number to read, Enter to look again, or q: "
_ASK_WHAT = "(y) approve, (l) later, (d) deny, (x) deny all of its session and end it, (e) edit, Enter to leave it: "


async def converse(around: Surroundings, operator: Operator) -> None:
    """List, ask, show, ask, decide; until the person leaves."""
    while True:
        waiting = (await operator.approvals({"limit": _MOST}))["items"]
        _list(waiting, around.wall())
        answer = around.ask(_ASK_WHICH).strip()
        if answer == "q":
            return
        if answer.isascii() and answer.isdigit() and 0 < int(answer) <= len(waiting):
            await _safely(around, operator, waiting[int(answer) - 1]["id"])


def _list(waiting: Sequence[Mapping[str, Any]], now: float) -> None:
    if not waiting:
        say("Nothing waits for you.")
        return
    rows = (
        (number, age(now - from_timestamp(item["requested_at"]).timestamp()), item["run"]["action"], item["id"])
        for number, item in enumerate(waiting, 1)
    )
    table(("NO", "AGE", "ACTION", "ID"), rows)


async def _safely(around: Surroundings, operator: Operator, approval_id: str) -> None:
    """One of them; what goes wrong is said, and the list comes again."""
    from aileron.client import DaemonFault, DaemonUnreachable

    try:
        await _one(around, operator, approval_id)
    except DaemonFault as fault:
        if fault.fault.kind == "unauthorized":
            raise
        report(fault)
    except (DaemonUnreachable, Trouble, click.UsageError) as error:
        report(error)


async def _one(around: Surroundings, operator: Operator, approval_id: str) -> None:
    shown, session = await look(operator, approval_id)
    refuse_decided(shown)
    show_review(shown, session)
    answer = around.ask(_ASK_WHAT).strip().lower()
    if answer in ("y", "l"):
        when = around.ask("Begin when (such as +2h)? ").strip() if answer == "l" else ""
        await _approve(around, operator, shown, when)
    elif answer in ("d", "x"):
        await _deny(around, operator, shown, flood=answer == "x")
    elif answer == "e":
        with rewritten(around, shown["run"]["arguments"]) as wanted:
            await operator.edit(approval_id, wanted, shown["digest"])
        note("Edited; nothing is decided yet. Read it again.")


async def _approve(around: Surroundings, operator: Operator, shown: Mapping[str, Any], when: str) -> None:
    not_before = timestamp(moment_of(when, utc(around.wall()))) if when else None
    ballot = _ballot(shown, approved=True, not_before=not_before)
    await decide_shown(around, operator, ballot, shown)


async def _deny(around: Surroundings, operator: Operator, shown: Mapping[str, Any], *, flood: bool) -> None:
    reason = around.ask("Why (Enter: no reason)? ").strip() or None
    await decide_shown(around, operator, _ballot(shown, approved=False, reason=reason), shown)
    session = shown["run"].get("session_id")
    if flood and session is not None:
        others = await deny_all_of(operator, session, reason)
        say("With {others} more; the session {session} is ended.", others=others, session=session)


def _ballot(shown: Mapping[str, Any], *, approved: bool, **more: Any) -> Ballot:
    wait = _WAIT_SECONDS if approved else 0.0
    return Ballot(shown["id"], approved=approved, sure=not approved, as_json=False, wait=wait, **more)
