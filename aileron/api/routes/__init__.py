"""The routes of both sites, one family in each module."""

from __future__ import annotations

from aileron.api.endpoint import EndpointTable

from . import actions, approvals, audit, bindings, daemons, grants, health, limits, operator, run, runs, sessions

TABLES: tuple[EndpointTable, ...] = (
    health.TABLE,
    daemons.TABLE,
    sessions.TABLE,
    actions.TABLE,
    run.TABLE,
    approvals.TABLE,
    limits.TABLE,
    runs.TABLE,
    audit.TABLE,
    operator.TABLE,
    grants.TABLE,
    bindings.TABLE,
)
"""The endpoints of the core."""
