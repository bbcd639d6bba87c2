"""Interfaces of what the operator governs beside single decisions: trust, grants, limits, unknown outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import Interface

from aileron.model.actions import Offer
from aileron.model.audit import Actor
from aileron.model.authority import Halt, OwnCap, Pause, StandingGrant
from aileron.model.connectors import Finding
from aileron.model.runs import Approval, Run
from aileron.model.trust import TrustItem, TrustKind


class ITrustService(Interface):
    """Lets the operator trust files, take trust back, and switch actions on and off."""

    async def set_enabled(name: str, enabled: bool, actor: Actor) -> Offer:
        """Switch an action on or off; durable when it returns.

        :raises NotFound: there is none of that name that loaded and is trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """

    async def trust_items() -> tuple[TrustItem, ...]:
        """List every file on disk, read now, and everything else that is trusted, by kind and name.

        :raises VaultLocked: the vault was never unlocked in this life, so nothing is known of what was trusted.
        """

    async def trust(items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        """Trust exactly these files, all or none; durable when it returns.  Twice is safe.

        :param items: kind, name and digest of each, as the operator was shown it.
        :return: each as it is then.
        :raises NotFound: one of them is not on disk.
        :raises Conflict: one of them has another digest now; C{details["items"]} lists kind, name and digest of what
            is on disk instead.  Nothing was trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """

    async def distrust(kind: TrustKind, name: str, actor: Actor) -> None:
        """Take trust back; what waits of it becomes stale.

        :raises NotFound: it is not trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """


class IGrantService(Interface):
    """Shows the operator the standing grants, and takes them back."""

    async def grants() -> tuple[StandingGrant, ...]:
        """List the standing grants, oldest first, each with whether it allows anything now.

        :raises VaultLocked: the vault was never unlocked in this life.
        """

    async def grant(grant_id: str) -> StandingGrant:
        """Return one standing grant.

        :raises NotFound: there is none of that id, or it ended some days ago.
        :raises VaultLocked: as of L{grants}.
        """

    async def revoke_grant(grant_id: str, actor: Actor) -> StandingGrant:
        """End a grant: once this returns, nothing more begins by it.  Twice is safe.

        :raises NotFound: as of L{grant}.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: the vault could not be written, and it stays; or the record could not, and it ended.
        """


class ILimitService(Interface):
    """Lets the operator pause and resume, cap, and forgive denials."""

    async def hold() -> None:
        """Start no more effects in this life, and answer as soon as none is under way; then the vault can be locked.

        Cancelling ends the wait, not the hold.  Twice is safe.
        """

    def pauses() -> tuple[Pause, ...]:
        """Return what is paused, in the order in which it was."""

    async def pause(session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        """Let no run begin any more, and no further attempt of one that has begun.

        It survives every restart, unless it says that it is not saved: then the database takes no write, and it is
        saved as soon as that works again.  Twice is safe: the first one stands.

        :param session_id: of whose runs; L{None}: of all.
        :return: the pause, and what is under way; nothing goes C{executing} after that.
        :raises LimitExceeded: a session would pause itself, and too many have; the operator has always room.
        :raises StoreUnavailable: it holds, but the runs under way cannot be read.
        """

    async def resume(session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        """Lift a pause.  Whatever was approved and had not begun is put up for decision anew, one by one.

        :param session_id: of whose runs; L{None}: of all but the sessions that are paused for themselves.
        :return: what was put up.
        :raises VaultLocked, BindingFailed, StoreUnavailable: it stays paused.
        """

    def caps() -> tuple[OwnCap, ...]:
        """Return the operator's own caps; nothing while the vault was never unlocked in this life."""

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


class IReconciliation(Interface):
    """Lets the operator look up, settle or repeat runs whose outcome is unknown."""

    async def settle(run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """Record what became of an C{unknown} run.

        :raises NotFound: no such run.
        :raises Conflict: it is not C{unknown}.
        """

    async def find_out(run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """Look up by the effect key whether an C{unknown} run happened, and settle it by what is found.

        Nothing but reads is sent.  Twice is safe.

        :return: the run as it then stands, and what was found.
        :raises NotFound: no such run.
        :raises Conflict: it is not C{unknown}, or what it would have done cannot be told any more.
        :raises CapabilityDenied: its connector declares no way to look.
        :raises VaultLocked: the vault is not unlocked.
        """

    async def is_reconcilable(run_id: str) -> bool:
        """Return whether L{find_out} can look, so far as that can be told now; nothing is sent.

        :raises NotFound: no such run.
        """

    async def run_again(run_id: str, note: str, actor: Actor) -> Run:
        """Create a run that repeats an C{unknown} one; it always needs approval.

        It has the old one's effect key where every write is declared idempotent, else a fresh one.  The old one stays
        C{unknown}, names it, and can still be settled.

        :return: the new run.
        :raises NotFound: no such run, or no such action any more.
        :raises Conflict: it is not C{unknown}; or a run that does it again is open, or C{unknown} itself: C{details}
            tell C{run_id} and C{state}.
        :raises InvalidRequest, BindingRequired, CapabilityDenied, LimitExceeded: as of L{ISubmission.submit}.
        """
