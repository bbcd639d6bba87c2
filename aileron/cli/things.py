"""The kinds of objects that commands find by an id, such as runs and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from aileron.model.runs import RunState

from .ids import IdKind
from .output import in_line, when

NOT_STARTED = (RunState.PENDING, RunState.APPROVED, RunState.AWAITING_VAULT, RunState.AWAITING_CREDENTIAL)


def _describe_run(run: Mapping[str, Any]) -> str:
    return f"{run['action']}  {run['state']}  {when(run['received_at'])}"


RUN = IdKind("run", "/v1/runs", "aileron run list", _describe_run)
UNSTARTED_RUN = evolve(RUN, noun="run that has not started", query={"state": ",".join(NOT_STARTED)})
COMPLETED_RUN = evolve(RUN, noun="completed run", query={"state": RunState.COMPLETED})
UNKNOWN_RUN = evolve(RUN, noun="run with an unknown outcome", query={"state": RunState.UNKNOWN})
DENIED_RUN = evolve(RUN, noun="denied run", query={"state": RunState.DENIED})

APPROVAL = IdKind(
    "pending approval",
    "/v1/action-approvals",
    "aileron approval list",
    lambda item: f"{item['run']['action']}  {in_line(item['run'].get('arguments') or {})}",
    newest_first=False,
    also=RUN,
    at_once=20,
)

SESSION = IdKind(
    "session",
    "/v1/sessions",
    "aileron session list",
    lambda session: f"{session['agent']}  {session['working_dir']}  {when(session['started_at'])}",
    query={"commands": "false"},
)
LIVE_SESSION = evolve(SESSION, noun="live session", query={"commands": "false", "live": "true"}, also=SESSION)

GRANT = IdKind(
    "grant",
    "/v1/grants",
    "aileron grant list",
    lambda grant: f"{grant['action']}  {grant['state']}",
    newest_first=False,
    at_once=0,
)

RECORD = IdKind(
    "record",
    "/v1/audit",
    "aileron audit list",
    lambda record: f"{record['type']}  {when(record['at'])}",
    query={"logins": "false"},
    number="sequence",
)

LOGIN = IdKind(
    "login",
    "/v1/operator/sessions",
    "aileron operator list",
    lambda login: f"{'browser' if login['browser'] else 'terminal'}  {when(login['started_at'])}",
    at_once=0,
)
