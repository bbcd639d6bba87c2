"""Decides one or several approvals after one login: each exactly as it was shown, or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from aileron.base.json import JSON, utc
from aileron.cli.actions.trusting import confirm
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError, report
from aileron.cli.output import block, heading, in_words, note, say, say_json, when
from aileron.cli.session import refuse_paused
from aileron.review import comparing_steps

from .grant import GrantRequest, show_grant_request
from .review import show_review

if TYPE_CHECKING:
    from aileron.client import Operator

MOST = 200
"""The most approvals listed for a decision."""
_PENDING = "pending_approval"
_MOST_STEPS = 100_000_000  # limit of comparing: some seconds
_WENT_WRONG = frozenset(("failed", "unknown", "denied", "cancelled", "expired"))


@frozen
class DecisionRequest:
    """A decision that the person requested on the command line, and what to do with it.

    :ivar sure: whether to skip the question.
    :ivar digest: the required digest of the request, or None to accept what is shown.
    :ivar not_before: the earliest start, in RFC 3339.
    :ivar wait: seconds to wait for the outcome.
    :ivar forced: whether to approve alone, whatever the rule about several people says.
    :ivar grant_request: the grant to create with the approval.
    """

    approval_id: str
    approved: bool
    sure: bool
    as_json: bool
    digest: str | None = None
    reason: str | None = None
    wait: float = 0.0
    grant_request: GrantRequest | None = None
    not_before: str | None = None
    forced: bool = False


async def read_approval(operator: Operator, approval_id: str) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return the current version of an approval, and the requesting session or None if the request has no session.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    found = await operator.get("action-approvals", approval_id)
    session_id = found["run"].get("session_id")
    return found, None if session_id is None else await operator.get("sessions", session_id)


async def decide(cli: CliContext, operator: Operator, request: DecisionRequest) -> None:
    """Show an approval, ask, decide, and print the outcome.

    :raises CommandError: if the approval is already decided or differs from what was shown, or the person declined.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    shown, session = await read_approval(operator, request.approval_id)
    refuse_decided(shown)
    if request.approved and not request.as_json:
        show_review(shown, session)
    await decide_shown(cli, operator, request, shown)


async def decide_shown(cli: CliContext, operator: Operator, request: DecisionRequest, shown: Mapping[str, Any]) -> None:
    """Decide an approval that the person has already seen.

    :raises CommandError: if the approval is already decided or differs from what was shown, or the person declined.
    :raises DaemonError: if the daemon does not answer, or refuses, for example because the approval has changed.
    """
    from aileron.client import DaemonFault

    arguments = shown["run"].get("arguments") or {}
    grant = None if request.grant_request is None else request.grant_request.of(arguments, utc(cli.wall()))
    if grant is not None and not request.as_json:
        show_grant_request(grant, arguments)
    _refuse_other(shown, request)
    if request.not_before is not None and not request.as_json:
        say("Starts no earlier than {when} ({moment}).", when=when(request.not_before), moment=request.not_before)
    if not request.sure:
        allow = "" if grant is None else ", and allow similar calls"
        hint = "To approve what was shown without a terminal, add --yes and --digest."
        confirm(cli, f"Approve exactly this{allow}? [y/N] ", "decided; it is still pending", hint)
    try:
        decided = await cast(operator, request, shown, grant)
    except DaemonFault as fault:
        if fault.fault.kind == "approval_stale":
            await _show_change(operator, request, shown)
        raise
    await _tell(operator, request, decided)


async def cast(
    operator: Operator, request: DecisionRequest, shown: Mapping[str, Any], grant: Mapping[str, JSON] | None = None
) -> Mapping[str, Any]:
    """Send a decision bound to exactly what was shown, and return the decided approval.

    :raises DaemonFault: if the approval has changed or is already decided.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    body: dict[str, JSON] = {"approved": request.approved, "digest": request.digest or shown["digest"]}
    given = {"reason": request.reason, "not_before": request.not_before, "grant": grant}
    if request.forced:
        body["forced"] = True
    body |= {name: value for name, value in given.items() if value is not None}
    return await operator.decide(request.approval_id, body)


def lacks_others(decided: Mapping[str, Any]) -> bool:
    """Return whether an approval that was just decided needs the approvals of others before its run begins."""
    return bool(decided.get("progress")) and decided["run"]["state"] == _PENDING


def outcome(decided: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """Return a sentence that tells the person the outcome of an approved run.

    :param decided: the decided approval.
    :param result: the run's status afterwards, from the daemon.
    """
    status, approval_id = result.get("status"), decided["id"]
    if lacks_others(decided):
        return f"You approved it: {decided.get('progress')}. It runs when enough people have."
    if status == "completed":
        return f"Approved and completed. See: aileron run show {approval_id}"
    if status == "unknown":
        return f"Approved. {(result.get('failure') or {}).get('message')}"
    if status in _WENT_WRONG:
        return f"Approved, but it ended as {status}: {(result.get('failure') or {}).get('message')}"
    if result.get("begins_at"):
        begins = decided["run"].get("start_after")
        return f"Approved; it starts {when(begins)}. To cancel it before then: aileron approval cancel {approval_id}"
    return f"Approved; it is {status}. Check it later: aileron run show {approval_id}"


def refuse_decided(shown: Mapping[str, Any]) -> None:
    """Refuse an approval that is no longer pending.

    :raises CommandError: if the approval is not pending.
    """
    state = shown["run"]["state"]
    if state != _PENDING:
        raise CommandError(f"Already {state}; nothing was decided.", f"See the run: aileron run show {shown['id']}")


def refuse_ended(error: Exception) -> None:
    """Raise C{error} again if it says that the operator's login has ended. Otherwise do nothing."""
    from aileron.client import DaemonFault

    if isinstance(error, DaemonFault) and error.fault.kind == "unauthorized":
        raise error


def _refuse_other(shown: Mapping[str, Any], request: DecisionRequest) -> None:
    if request.digest is not None and request.digest != shown["digest"]:
        raise CommandError(
            "The request has a different digest; nothing was decided.",
            f"Review it again: aileron approval show {request.approval_id}",
        )


async def _show_change(operator: Operator, request: DecisionRequest, shown: Mapping[str, Any]) -> None:
    """Fetch the approval again, and print how it differs from what was shown and that nothing was decided.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    import difflib

    now = await operator.get("action-approvals", request.approval_id)
    heading("It changed while you were reading")
    if now.get("stale"):
        say("  {why}", why=now["stale"])
    before, after = (in_words(each.get("review"), sort_keys=True).splitlines() for each in (shown, now))
    if comparing_steps(before, after) > _MOST_STEPS:
        note("The difference is too long to show here. See it on the page: aileron open")
    else:
        block("\n".join(difflib.unified_diff(before, after, "as shown", "now", lineterm="")), "  ")
    note("Nothing was decided. Review it again: aileron approve {id}", id=request.approval_id)


async def _tell(operator: Operator, request: DecisionRequest, decided: Mapping[str, Any]) -> None:
    is_vote = lacks_others(decided)
    if is_vote or not request.approved:
        if request.as_json:
            say_json({"approval": decided})
        else:
            say("{told}", told=outcome(decided, {}) if is_vote else "Denied; nothing was sent.")
        return
    if decided.get("grant") and not request.as_json:
        say("Grant {id} created. To revoke it: aileron grant revoke {id}", id=decided["grant"]["id"])
    begins = decided["run"].get("start_after")
    result = await operator.result(request.approval_id, 0.0 if begins else request.wait)
    status = result.get("status")
    if request.as_json:
        say_json({"approval": decided, "result": result})
    elif status == "completed":
        say("Approved and completed:")
        block(in_words((result.get("result") or {}).get("output")), "  ")
    elif status not in _WENT_WRONG:
        say("{told}", told=outcome(decided, result))
    if status in _WENT_WRONG:
        raise CommandError(outcome(decided, result), _next_step(request.approval_id, str(status)))


def _next_step(run_id: str, status: str) -> str:
    """Return a sentence with the command to run next, for a run that failed or whose outcome is unknown."""
    if status == "unknown":
        return f"Check the service, then run: {settling(run_id)}"
    return f"See the run: aileron run show {run_id}"


def settling(run_id: str) -> str:
    """Return the command that records what happened to a run of unknown outcome."""
    return f"aileron run settle {run_id} --happened (or --did-not-happen)"


async def check_requests(cli: CliContext, operator: Operator, requests: Sequence[DecisionRequest]) -> None:
    """Check that at least one request can be decided, before a passphrase is requested.

    :raises CommandError: if requests are to be approved and everything is paused.
    :raises CommandError, DaemonFault: if no request can be decided. This is the last request's error. Those of the
        others were printed.
    """
    from aileron.client import DaemonFault

    if requests[0].approved:
        refuse_paused(cli, "approved; the requests are still pending")
    errors = list[CommandError | DaemonFault]()
    for request in requests:
        try:
            shown = await operator.get("action-approvals", request.approval_id)
            refuse_decided(shown)
            _refuse_other(shown, request)
        except (CommandError, DaemonFault) as error:
            errors.append(error)
        else:
            return
    for each in errors[:-1]:
        report(each)
    raise errors[-1]


async def decide_each(cli: CliContext, operator: Operator, requests: Sequence[DecisionRequest]) -> None:
    """Decide the requests in order. If one fails or is not confirmed, print that and continue.

    :raises CommandError: if not all were decided. For a single request, its reason.
    :raises DaemonError: if for a single request the daemon does not answer, or refuses.
    """
    if len(requests) == 1:
        await decide(cli, operator, requests[0])
        return
    done = [await _decide_or_report(cli, operator, request) for request in requests]
    word = "approved" if requests[0].approved else "denied"
    if not all(done):
        raise CommandError(f"{sum(done)} of {len(done)} were {word}; the others were left as they are (see above).")
    say("All {count} were {word}.", count=len(done), word=word)


async def deny_with_sessions(cli: CliContext, operator: Operator, requests: Sequence[DecisionRequest]) -> None:
    """Deny each request and all other requests of their sessions, and end the sessions.

    :raises CommandError: if a request does not belong to an agent's session. Nothing was denied.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    runs = [(await operator.get("action-approvals", request.approval_id))["run"] for request in requests]
    lone = [run["id"] for run in runs if run.get("session_id") is None]
    if lone:
        raise CommandError(
            f"{lone[0]} was not requested in an agent session; nothing was denied.", "Remove --end-session."
        )
    await decide_each(cli, operator, requests)
    for session in dict.fromkeys(run["session_id"] for run in runs):
        others = await deny_all_of(operator, session, requests[0].reason)
        say("Session {session} ended. Other requests denied: {others}.", session=session, others=others)


async def _decide_or_report(cli: CliContext, operator: Operator, request: DecisionRequest) -> bool:
    """Decide one request, and report a failure instead of raising it; return whether it was decided."""
    from aileron.client import DaemonFault

    try:
        await decide(cli, operator, request)
    except (CommandError, DaemonFault) as error:
        report(error)
        return False
    return True


async def deny_all_of(operator: Operator, session_id: str, reason: str | None) -> int:
    """End a session, deny its pending requests, and return their number.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    return len((await operator.post("sessions", session_id, "deny", body={"reason": reason}))["denied"])
