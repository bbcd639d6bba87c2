"""All endpoints of the daemon."""

from __future__ import annotations

from . import _health, _run, _runs, _sessions
from ._endpoint import Table

TABLES: tuple[Table, ...] = (_health.TABLE, _sessions.TABLE, _run.TABLE, _runs.TABLE)
