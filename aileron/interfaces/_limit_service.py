"""Keeps runs from beginning, and lets them begin again."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import Interface

from aileron.values import (
    Actor,
    Approval,
    Halt,
    OwnCap,
    Pause,
    Run,
)


class ILimitService(Interface):
    """Lets the operator pause and resume, cap, and forgive denials."""

    async def hold() -> None:
        """Start no more effects in this life, and answer as soon as none is under way; then the vault can be locked.

        Cancelling ends the wait, not the hold.  Twice is safe.
        """

    def pauses() -> tuple[Pause, ...]:
        """What is paused, in the order in which it was."""

    async def pause(session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        """Let no run begin any more, and no further attempt of one that has begun; durable when it returns.

        It survives every restart.  Twice is safe: the first one stands.

        :param session_id: of whose runs; L{None}: of all.
        :return: the pause, and what is under way; nothing goes C{executing} after that.
        :raises LimitExceeded: a session would pause itself, and too many have; the operator has always room.
        :raises StoreUnavailable: it holds in this life and may not in the next.
        """

    async def resume(session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        """Lift a pause.  Whatever was approved and had not begun is put up for decision anew, one by one.

        :param session_id: of whose runs; L{None}: of all but the sessions that are paused for themselves.
        :return: what was put up.
        :raises VaultLocked, BindingFailed, StoreUnavailable: it stays paused.
        """

    def caps() -> tuple[OwnCap, ...]:
        """The operator's own caps; nothing while the vault was never unlocked in this life."""

    async def set_caps(caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """Set these, each in the place of the earlier one of its name, all or none; durable when it returns.

        :return: as they stand, with when and by whom.
        :raises VaultLocked, BindingFailed, StoreUnavailable: nothing was kept.
        """

    async def remove_cap(which: OwnCap, actor: Actor) -> None:
        """Remove the cap of that name.

        :raises NotFound: there is none.
        :raises VaultLocked, BindingFailed, StoreUnavailable: it stays.
        """

    async def forgive(run_id: str, actor: Actor) -> Approval:
        """Let agents ask again what was denied, before its cool-down is over; durable when it returns.  Twice is safe.

        :raises NotFound: no such approval.
        :raises Conflict: it was not denied.
        :raises StoreUnavailable: it counts on.
        """
