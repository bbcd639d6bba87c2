"""Foreign values as text for a person: made visible, never cut without saying so."""

from __future__ import annotations

import json
from datetime import datetime
from urllib.parse import quote

from twisted.web.template import Tag, tags

from aileron.values import JSON, Process, Run, RunState, Session, plain, timestamp, visible

_LONG_CHARACTERS, _LONG_LINES = 1000, 20

STATES = {
    RunState.RECEIVED: "was received",
    RunState.PENDING: "waits for you",
    RunState.APPROVED: "approved, about to start",
    RunState.AWAITING_VAULT: "approved, waits for the vault to be unlocked",
    RunState.EXECUTING: "is being done",
    RunState.COMPLETED: "done",
    RunState.FAILED: "failed",
    RunState.UNKNOWN: "may have happened: nobody here can say",
    RunState.DENIED: "denied",
    RunState.CANCELLED: "taken back",
    RunState.EXPIRED: "expired",
}
_SENDING = {
    **dict.fromkeys((RunState.PENDING, RunState.APPROVED, RunState.AWAITING_VAULT), "What will be sent"),
    RunState.EXECUTING: "What is being sent",
    RunState.COMPLETED: "What was sent",
}


def sending(state: RunState) -> str:
    """Say what stands over the requests; where nobody can promise that they were sent, it does not say so."""
    return _SENDING.get(state, "What was to be sent")


def render_value(value: JSON) -> str:
    """Any value: a string as it is, the rest as JSON; its line feeds kept."""
    text = value if isinstance(value, str) else json.dumps(plain(value), indent=2, ensure_ascii=False)
    return visible(text, multiline=True)


def size(text: str) -> str:
    """Tell how long C{text} is, if it is so long that a reader may lose sight of its end; else nothing."""
    lines = text.count("\n") + 1
    if len(text) <= _LONG_CHARACTERS and lines <= _LONG_LINES:
        return ""
    return f"{len(text):,} characters in {lines:,} line{'s' if lines > 1 else ''}, all of them here"


def agent(session: Session | None) -> str:
    """Draw what an agent calls itself."""
    return "unknown" if session is None else visible(session.agent)


def process(peer: Process | None) -> str:
    """Name the process that opened a session."""
    if peer is None:
        return "which process opened the session is unknown"
    executable, directory = (visible(each or "(hidden)") for each in (peer.executable, peer.working_dir))
    return f"the session was opened by process {peer.pid}, {executable} in {directory}"


def segment(text: str) -> str:
    """C{text} as one part of an address by which something is done: a row that somebody wrote leads to nothing else."""
    quoted = quote(text, safe="", errors="replace")
    return quoted if quoted.strip(".") else "-"


def moment(at: datetime) -> Tag:
    """Draw a moment; the script turns it to the reader's own time."""
    stamp = timestamp(at)
    return tags.time(stamp, datetime=stamp)


def countdown(run: Run) -> tuple[Tag, Tag, Tag | str]:
    """Tell when an approved run begins, how long that is (the script counts), and draw the button to take it back."""
    at = run.start_after or run.changed_at
    act = f"POST /v1/action-approvals/{segment(run.id)}/withdraw"
    button = tags.button("Take it back", type="button", disabled="disabled", **{"class": "undo", "data-act": act})
    return moment(at), tags.span(**{"data-begins": timestamp(at)}), button
