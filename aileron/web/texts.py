"""Foreign values as text for a person: with invisible characters made visible, and never cut without a note."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from twisted.web.template import Tag, tags

from aileron.base.json import timestamp
from aileron.base.text import visible
from aileron.model.runs import Run, RunState
from aileron.model.sessions import Process, Session
from aileron.model.titles import cut_title
from aileron.model.vault import Binding, CredentialState
from aileron.review import WarningSeverity

COST = "Cost as reported by providers"
_LONG_CHARACTERS, _LONG_LINES = 1000, 20

STATES = {
    RunState.RECEIVED: "Received",
    RunState.PENDING: "Waiting for your approval",
    RunState.APPROVED: "Approved, not started",
    RunState.AWAITING_VAULT: "Approved, waiting for the vault to be unlocked",
    RunState.AWAITING_CREDENTIAL: "Approved, waiting for a credential to be renewed",
    RunState.EXECUTING: "Running",
    RunState.COMPLETED: "Completed",
    RunState.FAILED: "Failed",
    RunState.UNKNOWN: "Outcome unknown",
    RunState.DENIED: "Denied",
    RunState.CANCELLED: "Cancelled",
    RunState.EXPIRED: "Expired",
}

COLOURS = {WarningSeverity.HIGH: "red", WarningSeverity.MEDIUM: "amber", WarningSeverity.LOW: "grey"}
"""The classes of severities in the style sheet."""


def size(text: str) -> str:
    """Return the length of C{text} in words if it is long, else an empty string."""
    lines = text.count("\n") + 1
    if len(text) <= _LONG_CHARACTERS and lines <= _LONG_LINES:
        return ""
    return f"{len(text):,} characters, {count(lines, 'line', 'lines')}, shown in full"


def count(number: int, one: str, several: str) -> str:
    """Return a number with a noun in the singular or plural, such as C{1 run} or C{2 runs}."""
    return f"{number:,} {one if number == 1 else several}"


def dollars(microdollars: int | None) -> str | None:
    """Return a cost in dollars, or None if the cost is unknown. A cost below one dollar has fractions of a cent."""
    return None if microdollars is None else f"${microdollars / 10**6:,.{2 if microdollars >= 10**6 else 6}f}"


def agent(session: Session | None) -> str:
    """Return the name that a session's agent claims, or C{unknown} without a session."""
    return "unknown" if session is None else visible(session.agent)


def process(peer: Process | None) -> str:
    """Describe the process that opened a session, with its full path and working directory."""
    if peer is None:
        return "an unknown process"
    executable, directory = (visible(each or "(hidden)") for each in (peer.executable, peer.working_dir))
    return f"PID {peer.pid}, {executable} in {directory}"


def process_name(peer: Process | None) -> str:
    """Return a short name of the process that opened a session."""
    if peer is None:
        return "an unknown process"
    return f"PID {peer.pid}, {visible((peer.executable or '(hidden)').rpartition('/')[2])}"


def credential_problem(binding: Binding, state: CredentialState) -> str:
    """Return why a credential needs the operator, with the command that helps, or an empty string if it does not."""
    if state.reason is None:
        return ""
    settings = {} if binding.scope is None else binding.scope.settings
    how = "renew" if binding.kind == "oauth2" and {"token_url", "discover"} & {*settings} else "replace"
    more = f" It will ask for these scopes: {', '.join(state.wanted)}." if state.wanted else ""
    return f"{state.reason}{more} Run: aileron credential {how} {binding.name}"


def segment(text: str) -> str:
    """Encode C{text} as one segment of a URL path, so foreign text cannot change the target of a request."""
    quoted = quote(text, safe="", errors="replace")
    return quoted if quoted.strip(".") else "-"


def find_address(run: Run) -> str:
    """Return the path of the page of a run: its approval while it is pending, and its own page afterwards."""
    return f"/{'approvals' if run.state is RunState.PENDING else 'runs'}/{visible(run.id)}"


def name_run(run: Run) -> str:
    """Return what a run does in one line fit to be shown, or the name of its action if no connector says so."""
    return cut_title(run.title) or visible(run.action)


def moment(at: datetime) -> Tag:
    """Draw a moment, which the script shows as an age or in the reader's time zone."""
    stamp = timestamp(at)
    return tags.time(stamp, datetime=stamp)


def clock_time(at: datetime) -> Tag:
    """Draw a moment in the reader's time zone, for use beside a countdown."""
    return moment(at)(**{"data-clock": "yes"})


def countdown(run: Run) -> tuple[Tag, Tag, Tag | str]:
    """Draw when an approved run starts, the countdown that the script updates, and the button that cancels the run."""
    at = run.start_after or run.changed_at
    act = f"POST /v1/action-approvals/{segment(run.id)}/withdraw"
    button = tags.button("Undo", type="button", disabled="disabled", **{"class": "undo", "data-act": act})
    return clock_time(at), tags.span(**{"data-begins": timestamp(at)}), button
