"""The session's own runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aileron.client import IDaemon

MOST_RUNS = 20
_KEPT = ("action", "status", "gated", "received_at", "changed_at", "reason")


async def recent_runs(daemon: IDaemon) -> Sequence[Mapping[str, Any]]:
    """The newest runs of this session, newest first; arguments and results, which may be long, are left out.

    :raises DaemonError: they cannot be told.
    """
    items = (await daemon.runs(MOST_RUNS)).get("items")
    return [_told(run) for run in items if isinstance(run, Mapping)] if isinstance(items, list) else []


def _told(run: Mapping[str, Any]) -> dict[str, Any]:
    failure = run.get("failure")
    why = {"failure": failure.get("message")} if isinstance(failure, Mapping) else {}
    return {"approval_id": run.get("id"), **{key: run.get(key) for key in _KEPT}, **why}
