"""Decides identical requests together: shown once, with who asks, and each decided for its own digest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.cli.actions.trusting import confirm
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError, report
from aileron.cli.output import heading, say, when

from .deciding import MOST, DecisionRequest, outcome, read_approval, refuse_decided
from .review import show_review

if TYPE_CHECKING:
    from aileron.client import DaemonFault, Operator

_YOU = "you"


def join_identical(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one row for identical approvals: the first, with the other ones as C{others}.

    An approval with a red warning has its own row, because it is read and decided by itself.

    :param items: the approvals as the daemon lists them.
    """
    left = {item["id"]: item for item in items}
    rows = []
    for item in items:
        if item["id"] not in left:
            continue
        members = [left[each] for each in (item["id"], *(item.get("identical") or ())) if each in left]
        members = members[:1] if any(map(_is_grave, members)) else members
        for each in members:
            del left[each["id"]]
        rows.append({**item, "others": members[1:]})
    return rows


def list_members(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the approvals that a row of L{join_identical} represents."""
    return (row, *row["others"])


def count_members(row: Mapping[str, Any]) -> str:
    """Return how many approvals a row represents and which sessions requested them, or an empty text for one."""
    members = list_members(row)
    if len(members) == 1:
        return ""
    return f"{len(members)} ({', '.join(dict.fromkeys(each['run'].get('session_id') or _YOU for each in members))})"


def name_requesters(members: Sequence[Mapping[str, Any]], agents: Mapping[str, str]) -> str:
    """Return the requesters of approvals, each with its session, safe for display.

    :param agents: the agents by session ID.
    """
    sessions = [each["run"].get("session_id") for each in members]
    return ", ".join(_YOU if each is None else visible(f"{agents.get(each, 'unknown')} ({each})") for each in sessions)


async def decide_together(cli: CliContext, operator: Operator, requests: Sequence[DecisionRequest]) -> None:
    """List an approval and those identical to it, decide all of them alike, and print each outcome.

    Before all are approved, the request is shown and the person is asked. A denial does not ask.

    Each is decided for the digest that was listed, so that a request that comes later or changes is not decided.

    :param requests: the decision on one of the identical approvals, as the only element.
    :raises CommandError: if there is no identical approval, one has a red warning, the approval is decided already, the
        person declined, or not all were decided.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    (request,) = requests
    shown, session = await read_approval(operator, request.approval_id)
    refuse_decided(shown)
    members = await _find_identical(operator, shown)
    if request.approved:
        show_review(shown, session)
    agents = {each: await _name_agent(operator, each) for each in {one["run"].get("session_id") for one in members}}
    heading("Identical requests: {count}", count=len(members))
    for each in members:
        say("  {id}  {who}", id=each["id"], who=name_requesters([each], agents))
    if request.approved:
        _confirm(cli, request, len(members))
    given = {"approved": request.approved, "reason": request.reason, "not_before": request.not_before}
    results = await cast_together(operator, members, given)
    await _tell_each(operator, request, members, results)


async def cast_together(
    operator: Operator, members: Sequence[Mapping[str, Any]], decision: Mapping[str, JSON]
) -> Sequence[Mapping[str, Any] | DaemonFault]:
    """Send one decision for each approval, bound to its own digest, in one signed list.

    :param decision: C{{approved, reason, not_before}}. Members that are None are left out.
    :return: for each approval in order its decided form, or the daemon's refusal.
    :raises DaemonError: if the daemon does not answer.
    """
    given = {name: value for name, value in decision.items() if value is not None}
    return await operator.decide_list([(each["id"], {**given, "digest": each["digest"]}) for each in members])


def refuse_grave(members: Sequence[Mapping[str, Any]]) -> None:
    """Refuse to decide together unless there are several identical approvals, none of them with a red warning.

    :raises CommandError: if there is one only, or one with a red warning.
    """
    if len(members) == 1:
        raise CommandError(
            "No other pending request is identical. Nothing was decided.",
            f"Decide this one: aileron approve {members[0]['id']}, or aileron deny {members[0]['id']}",
        )
    if any(map(_is_grave, members)):
        raise CommandError(
            "The requests have a red warning, so each is read and decided by itself. Nothing was decided.",
            f"Decide each: aileron approve {' '.join(each['id'] for each in members)}",
        )


def is_decided(result: Mapping[str, Any] | DaemonFault) -> bool:
    """Return whether a result of L{cast_together} is a decided approval."""
    return isinstance(result, Mapping)


async def _find_identical(operator: Operator, shown: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    query = {"limit": MOST, "action": shown["run"]["action"]}
    items = (await operator.get("action-approvals", query=query))["items"]
    by_id = {item["id"]: item for item in items}
    listed = by_id.get(shown["id"])
    if listed is None or listed["digest"] != shown["digest"]:
        raise CommandError(
            "The request has just changed. Nothing was decided.",
            f"Review it again: aileron approval show {shown['id']}",
        )
    members = [listed, *(by_id[each] for each in listed.get("identical") or () if each in by_id)]
    refuse_grave(members)
    return members


async def _name_agent(operator: Operator, session_id: str | None) -> str:
    return _YOU if session_id is None else str((await operator.get("sessions", session_id))["agent"])


def _confirm(cli: CliContext, request: DecisionRequest, count: int) -> None:
    if request.not_before is not None:
        say("Starts no earlier than {when} ({moment}).", when=when(request.not_before), moment=request.not_before)
    hint = "To approve without a terminal, approve each by its ID with --yes and --digest."
    confirm(cli, f"Approve exactly this, {count} times? [y/N] ", "decided; they are still pending", hint)


async def _tell_each(
    operator: Operator,
    request: DecisionRequest,
    members: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any] | DaemonFault],
) -> None:
    for each, result in zip(members, results, strict=True):
        if not isinstance(result, Mapping):
            report(result)
        elif request.approved:
            begins = result["run"].get("start_after")
            told = outcome(result, await operator.result(each["id"], 0.0 if begins else request.wait))
            say("{id}: {told}", id=each["id"], told=told)
    done, word = sum(map(is_decided, results)), "approved" if request.approved else "denied"
    if done < len(results):
        raise CommandError(f"{done} of {len(results)} were {word}; the others were left as they are (see above).")
    say("All {count} were {word}.", count=done, word=word)


def _is_grave(item: Mapping[str, Any]) -> bool:
    return any(each["severity"] == "high" for each in item.get("warnings") or ())
