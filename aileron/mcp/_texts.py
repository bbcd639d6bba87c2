"""Renders each response of the daemon for a model, as text that cannot be mistaken for a better outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from attrs import evolve, frozen

from aileron.base.attachments import Attachment, set_apart
from aileron.base.json import JSON
from aileron.client import AnswerNotUnderstood, DaemonAnswer, DaemonError, DaemonFault, DaemonUnreachable

from ._forms import Form

_PUT_RIGHT = "correct AILERON_URL, AILERON_TOKEN and AILERON_CA of this agent, or the certificate that it is shown"
"""The advice for the user if starting the daemon does not help."""

_HINTS = {
    "unauthorized": "This session's token is not accepted (any more): ask the user to start this agent again.",
    "vault_locked": "Ask the user to run 'aileron vault unlock' in their own terminal.",
    "approval_denied": "The user said no: do not try it again, in these or other words, unless they ask for it.",
    "paused": "Do not try again by yourself: tell the user, who resumes it with 'aileron resume'.",
    "limit_exceeded": "Do not try again in a loop: tell the user.",
    "outcome_unknown": "It may have happened: do not repeat it; the user settles it.",
}

_WORDS = {
    "pending_approval": "It waits for the user's approval. Nothing was sent yet.",
    "awaiting_vault": "It is approved and waits until the user unlocks the vault. Nothing was sent yet.",
    "awaiting_credential": "It is approved and waits until the user renews its credential. Nothing was sent yet.",
    "running": "It is in progress; its outcome is not known yet.",
    "denied": "The user said no. Nothing was sent, and nothing will be.",
    "expired": "Nobody decided in time. Nothing was sent.",
    "cancelled": "It was withdrawn. Nothing was sent.",
    "unknown": "It may have happened or not. Do not repeat it; the user settles it.",
}


@frozen
class Pending:
    """A run that needs approval.

    :ivar review_url: the page on which the operator decides.
    """

    run_id: str
    action: str
    review_url: str


@frozen
class ToolResult:
    """A tool's result.

    :ivar pending: the run that needs approval, or None.
    :ivar data: the result as an object if the tool declares an output schema, else None.
    :ivar wanted: the form that a person must fill in before anything can be sent, or None.
    :ivar run_id: the ID of the run that produced C{attachments}, or empty if it is unknown or not needed.
    :ivar attachments: the attachments, which the text only mentions.
    """

    text: str
    is_error: bool = False
    pending: Pending | None = None
    data: Mapping[str, JSON] | None = None
    wanted: Form | None = None
    run_id: str = ""
    attachments: tuple[Attachment, ...] = ()


def render_run(answer: DaemonAnswer, action: str = "It") -> ToolResult:
    """Return the result for a run that succeeded, or that is not settled yet (status 202).

    :param action: the action's title, which a pending result names.
    """
    body = answer.body
    if answer.status != 202:
        return _with_output(body, _render_edited(body), _note(body))
    waiting = body.get("message") or f"The action has no result yet: {body.get('status', 'pending')}."
    identifier = _identifier(body)
    reference = f"approval_id: {identifier}" if identifier else None
    return ToolResult(_lines(waiting, reference), pending=_read_pending(body, action))


def render_form(form: Form) -> ToolResult:
    """Return the error result of a call that lacks a person's values, for clients that cannot show the form."""
    names = ", ".join(form.required)
    text = f"Nothing was sent. Only the user can provide: {names}. Ask them, then call again with that."
    return ToolResult(text, is_error=True, wanted=form)


def mention_answers(result: ToolResult, names: Sequence[str]) -> ToolResult:
    """Return C{result}. If it is an error, add which arguments a person provided."""
    if not result.is_error or not names:
        return result
    own = f"The user said themselves, in a form: {', '.join(names)}. Change nothing of that without asking them."
    return evolve(result, text=_lines(result.text, own))


def _read_pending(body: Mapping[str, Any], action: str) -> Pending | None:
    run_id, url = body.get("run_id"), body.get("review_url")
    if body.get("status") != "pending_approval" or not isinstance(run_id, str) or not isinstance(url, str):
        return None
    return Pending(run_id, action, url)


def render_notes(body: Mapping[str, Any]) -> str:
    """Return the notes on a successful run, without its output, or an empty text if there are no notes."""
    return _lines(_render_edited(body), _note(body))


def render_status(body: Mapping[str, Any]) -> ToolResult:
    """Return the result that describes the status of a run."""
    status = str(body.get("status", "unknown"))
    if status == "completed":
        done = f"status: completed (audit_id={body.get('audit_id')})"
        return _with_output(body, done, _render_edited(body), _note(body), named="result: ")
    if status == "failed":
        return ToolResult(_lines("status: failed", _render_edited(body), _failure(body.get("failure")), _reason(body)))
    if body.get("begins_at"):
        begins = f"It is approved and starts at {body['begins_at']}; the user can undo it until then."
        lines = ("status: approved, not started", f"{begins} Nothing was sent yet.", _render_edited(body))
        return ToolResult(_lines(*lines))
    again = _render_again(body.get("failure"))
    progress = f"It has {body['progress']}." if body.get("progress") else None
    return ToolResult(
        _lines(f"status: {status}", _WORDS.get(status), progress, again, _render_edited(body), _reason(body))
    )


def read_status_call(arguments: Mapping[str, JSON], longest_seconds: float) -> tuple[str, float] | ToolResult:
    """Return the run ID and the seconds to wait of a C{check_action_status} call.

    If the call is malformed, return an error result.
    """
    approval_id, wait = arguments.get("approval_id"), arguments.get("wait_seconds", 0)
    if not isinstance(approval_id, str) or not approval_id:
        return ToolResult("approval_id must be the text that the pending answer named.", is_error=True)
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
        return ToolResult("wait_seconds must be a number, 0 or more.", is_error=True)
    return approval_id, min(wait, longest_seconds)


def is_misdirected(error: DaemonError | None) -> TypeGuard[DaemonUnreachable]:
    """Return whether nothing was sent because the configured address or token must not be used."""
    return isinstance(error, DaemonUnreachable) and error.misdirected


def find_remedy(error: DaemonUnreachable) -> str:
    """Return what the user should do if nothing was sent because of the configuration."""
    return error.remedy or _PUT_RIGHT


def render_error(error: DaemonError, *, cut_off: bool = False) -> ToolResult:
    """Return an error result with the reason why a call has no result.

    :param cut_off: whether an earlier attempt of this call got no response.
    """
    if isinstance(error, DaemonFault):
        again = "An earlier attempt of this call was cut off: check before you repeat it." if cut_off else None
        return ToolResult(_lines(_fault(error), again), is_error=True)
    return ToolResult(_lines(str(error), _render_after(error)), is_error=True)


def _render_after(error: DaemonError) -> str:
    if isinstance(error, AnswerNotUnderstood) or (isinstance(error, DaemonUnreachable) and error.sent):
        return (
            "Whether the call arrived is not known. It may still happen: do not repeat it, "
            "and ask the user to look at 'aileron approval list' and 'aileron audit list'."
        )
    if is_misdirected(error):
        return f"Nothing was sent. Ask the user to {find_remedy(error)}."
    return "Nothing was sent. Ask the user to run 'aileron daemon start'; no restart of this agent is needed."


def _fault(error: DaemonFault) -> str | None:
    fault = error.fault
    problems = fault.details.get("problems")
    told = [_problem(problem) for problem in problems] if isinstance(problems, list) else []
    reason = fault.details.get("reason")
    because = f"reason: {reason}" if isinstance(reason, str) and reason not in fault.message else None
    marks = f"class: {fault.kind}" + (f", run_id: {error.run_id}" if error.run_id else "")
    return _lines(fault.message, *told, because, _render_edited(fault.details), f"({marks})", _HINTS.get(fault.kind))


def _problem(problem: Any) -> str:
    if not isinstance(problem, Mapping):
        return f"- {problem}"
    place = (
        str(problem.get("pointer") or "").removeprefix("/args").removeprefix("/")
    )  # the model's own arguments have no "args" around them
    return f"- {place or 'arguments'}: {problem.get('message')}"


def run_output(body: Mapping[str, Any]) -> Any:
    """Return the output of a run's action, or None if there is none."""
    result = body.get("result")
    return result.get("output") if isinstance(result, Mapping) else result


def _with_output(body: Mapping[str, Any], *before: str | None, named: str = "") -> ToolResult:
    """Return a result with the lines and the run's output as text. Attachments are not in the text."""
    output, attachments = set_apart(run_output(body))
    told = "Done. The action gave no output." if output is None else _compact(output)
    result = ToolResult(_lines(*before, f"{named}{told}"))
    return evolve(result, run_id=str(_identifier(body)), attachments=attachments) if attachments else result


def _render_edited(body: Mapping[str, Any]) -> str | None:
    changes = body.get("edited")
    return f"The user changed the arguments before approving: {_compact(changes)}" if changes else None


def _failure(failure: Any) -> str | None:
    if not isinstance(failure, Mapping):
        return None
    return f"{failure.get('message')} (class: {failure.get('class')})"


def _render_again(failure: Any) -> str | None:
    """Return a sentence that names the run that repeats a run of unknown outcome, or None."""
    details = failure.get("details") if isinstance(failure, Mapping) else None
    again = details.get("run_again") if isinstance(details, Mapping) else None
    return f"The user is asked whether to do it again: check_action_status with {again}." if again else None


def _reason(body: Mapping[str, Any]) -> str | None:
    if body.get("reason"):
        return f"reason: {body['reason']}"
    return "(the user gave no reason)" if body.get("status") == "denied" else None


def _note(body: Mapping[str, Any]) -> str | None:
    """Return the line with the reason of the approval, or None if there is none.

    The reason is the operator's note, or the grant that allowed the run.
    """
    return f"note: {body['reason']}" if body.get("reason") else None


def _identifier(body: Mapping[str, Any]) -> str | None:
    """Return the run's ID from the first field of the response that contains one, or None if no field does."""
    return body.get("approval_id") or body.get("run_id") or body.get("id")


def _compact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lines(*lines: str | None) -> str:
    return "\n".join(line for line in lines if line)
