"""The facts of which the metrics are made."""

from __future__ import annotations

from attrs import frozen

from aileron.values import GatewayTotals, LongTurns, VaultState


@frozen
class Facts:
    """The daemon at one moment.

    :ivar pending_approvals: L{None}: the store does not answer.
    :ivar paused: everything is.
    :ivar paused_sessions: that are paused for themselves.
    :ivar long_turns: of the reactor; L{None}: nobody measures them.
    :ivar sessions: that have not ended; L{None} likewise.
    """

    version: str
    uptime_seconds: float
    vault: VaultState
    actions: int
    load_errors: int
    pending_approvals: int | None
    sessions: int | None
    gateway: GatewayTotals
    paused: bool = False
    paused_sessions: int = 0
    long_turns: LongTurns | None = None
