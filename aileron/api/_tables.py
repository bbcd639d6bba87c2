"""All endpoints of the daemon."""

from __future__ import annotations

from aileron.api.routes import (
    actions,
    approvals,
    audit,
    bindings,
    brakes,
    connectors,
    events,
    floods,
    grants,
    health,
    leases,
    metrics,
    notifications,
    operator,
    passkeys,
    run,
    runs,
    sessions,
    trust,
    vault,
)

from ._endpoint import Table

TABLES: tuple[Table, ...] = (
    health.TABLE,
    metrics.TABLE,
    sessions.TABLE,
    leases.TABLE,
    actions.TABLE,
    run.TABLE,
    approvals.TABLE,
    brakes.TABLE,
    floods.TABLE,
    runs.TABLE,
    audit.TABLE,
    events.TABLE,
    vault.TABLE,
    operator.TABLE,
    passkeys.TABLE,
    trust.TABLE,
    grants.TABLE,
    bindings.TABLE,
    connectors.TABLE,
    notifications.TABLE,
)
