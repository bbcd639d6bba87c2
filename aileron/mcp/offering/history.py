"""The session's own runs, as a document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aileron.client import DaemonError, IDaemon
from aileron.mcp._texts import Said

MOST_RUNS = 20
_KEPT = ("action", "status", "gated", "received_at", "changed_at", "reason")


async def recent_runs(daemon: IDaemon) -> Said:
    """The newest runs of this session, newest first; arguments and results, which may be long, are left out."""
    try:
        found = await daemon.runs(MOST_RUNS)
    except DaemonError as error:
        return Said(str(error), is_error=True)
    items = found.get("items")
    runs = [_told(run) for run in items if isinstance(run, Mapping)] if isinstance(items, list) else []
    return Said(json.dumps({"runs": runs}, ensure_ascii=False, indent=1))


def _told(run: Mapping[str, Any]) -> dict[str, Any]:
    failure = run.get("failure")
    why = {"failure": failure.get("message")} if isinstance(failure, Mapping) else {}
    return {"approval_id": run.get("id"), **{key: run.get(key) for key in _KEPT}, **why}
