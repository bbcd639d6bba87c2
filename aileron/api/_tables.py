"""All endpoints of the daemon."""

from __future__ import annotations

from . import (
    _actions,
    _approvals,
    _audit,
    _bindings,
    _brakes,
    _connectors,
    _grants,
    _health,
    _metrics,
    _operator,
    _run,
    _runs,
    _sessions,
    _trust,
    _vault,
)
from ._endpoint import Table

TABLES: tuple[Table, ...] = (
    _health.TABLE,
    _metrics.TABLE,
    _sessions.TABLE,
    _actions.TABLE,
    _run.TABLE,
    _approvals.TABLE,
    _brakes.TABLE,
    _runs.TABLE,
    _audit.TABLE,
    _vault.TABLE,
    _operator.TABLE,
    _trust.TABLE,
    _grants.TABLE,
    _bindings.TABLE,
    _connectors.TABLE,
)
