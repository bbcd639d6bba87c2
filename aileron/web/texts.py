"""Foreign values as text for a person: made visible, never cut without saying so."""

from __future__ import annotations

from datetime import datetime
from urllib.parse import quote

from twisted.web.template import Tag, tags

from aileron.base.json import timestamp
from aileron.base.text import visible
from aileron.model.runs import Run, RunState
from aileron.model.sessions import Process, Session
from aileron.model.vault import Binding, CredentialState

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


def size(text: str) -> str:
    """Tell how long C{text} is, if it is so long that a reader may lose sight of its end; else nothing."""
    lines = text.count("\n") + 1
    if len(text) <= _LONG_CHARACTERS and lines <= _LONG_LINES:
        return ""
    return f"{len(text):,} characters, {count(lines, 'line', 'lines')}, shown in full"


def count(number: int, one: str, several: str) -> str:
    """Write a number with its noun."""
    return f"{number:,} {one if number == 1 else several}"


def dollars(microdollars: int | None) -> str | None:
    """Write a cost; one below a dollar with the fractions of a cent."""
    return None if microdollars is None else f"${microdollars / 10**6:,.{2 if microdollars >= 10**6 else 6}f}"


def agent(session: Session | None) -> str:
    """Draw what an agent calls itself."""
    return "unknown" if session is None else visible(session.agent)


def process(peer: Process | None) -> str:
    """Describe the process that opened a session, with its whole path and its directory."""
    if peer is None:
        return "an unknown process"
    executable, directory = (visible(each or "(hidden)") for each in (peer.executable, peer.working_dir))
    return f"PID {peer.pid}, {executable} in {directory}"


def process_name(peer: Process | None) -> str:
    """Name the same process in a word or two."""
    if peer is None:
        return "an unknown process"
    return f"PID {peer.pid}, {visible((peer.executable or '(hidden)').rpartition('/')[2])}"


def credential_problem(binding: Binding, state: CredentialState) -> str:
    """Write why a credential needs the operator, with the command that helps; empty: it does not."""
    if state.reason is None:
        return ""
    settings = {} if binding.scope is None else binding.scope.settings
    how = "renew" if binding.kind == "oauth2" and {"token_url", "discover"} & {*settings} else "replace"
    more = f" It will ask for these scopes: {', '.join(state.wanted)}." if state.wanted else ""
    return f"{state.reason}{more} Run: aileron credential {how} {binding.name}"


def segment(text: str) -> str:
    """C{text} as one part of an address by which something is done: a row that somebody wrote leads to nothing else."""
    quoted = quote(text, safe="", errors="replace")
    return quoted if quoted.strip(".") else "-"


def moment(at: datetime) -> Tag:
    """Draw a moment; the script says how long ago it was, or when it is by the reader's clock."""
    stamp = timestamp(at)
    return tags.time(stamp, datetime=stamp)


def clock_time(at: datetime) -> Tag:
    """Draw a moment that the script shows by the reader's clock alone, beside a countdown."""
    return moment(at)(**{"data-clock": "yes"})


def countdown(run: Run) -> tuple[Tag, Tag, Tag | str]:
    """Tell when an approved run begins, how long that is (the script counts), and draw the button to undo it."""
    at = run.start_after or run.changed_at
    act = f"POST /v1/action-approvals/{segment(run.id)}/withdraw"
    button = tags.button("Undo", type="button", disabled="disabled", **{"class": "undo", "data-act": act})
    return clock_time(at), tags.span(**{"data-begins": timestamp(at)}), button
