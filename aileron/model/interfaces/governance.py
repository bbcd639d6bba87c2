"""Interfaces for the operator's control beside single approvals: trust, grants, limits, unknown outcomes."""

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
    """Stores which files the operator trusts, and which actions are switched on."""

    async def set_enabled(name: str, enabled: bool, actor: Actor) -> Offer:
        """Switch an action on or off, durably.

        :raises NotFound: if no loaded and trusted action has this name.
        :raises VaultLocked: if the vault is not unlocked.
        :raises StoreUnavailable: if the write failed. Nothing was stored.
        """

    async def trust_items() -> tuple[TrustItem, ...]:
        """Read every file on disk now. Return these files and the trusted files missing there, sorted by kind and name.

        :raises VaultLocked: if the vault was never unlocked in this process, so trust is unknown.
        """

    async def trust(items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        """Trust exactly these files, all or none, durably. Idempotent.

        :param items: kind, name and digest of each file, as shown to the operator.
        :return: the files with their new state.
        :raises NotFound: if a file is not on disk.
        :raises Conflict: if a file has another digest now. C{details["items"]} lists kind, name and digest of the file
            on disk. Nothing was trusted.
        :raises VaultLocked: if the vault is not unlocked.
        :raises StoreUnavailable: if the write failed. Nothing was stored.
        """

    async def distrust(kind: TrustKind, name: str, actor: Actor) -> None:
        """Remove the trust in a file. Its pending approvals become stale.

        :raises NotFound: if the file is not trusted.
        :raises VaultLocked: if the vault is not unlocked.
        :raises StoreUnavailable: if the write failed. Nothing was stored.
        """


class IGrantService(Interface):
    """The operator's view of standing grants, and their revocation."""

    async def grants() -> tuple[StandingGrant, ...]:
        """Return the standing grants, oldest first, each with its state and the reason if it is suspended.

        :raises VaultLocked: if the vault was never unlocked in this process.
        """

    async def grant(grant_id: str) -> StandingGrant:
        """Return one standing grant.

        :raises NotFound: if there is no such grant, or it ended some days ago.
        :raises VaultLocked: if L{grants} would raise it.
        """

    async def revoke_grant(grant_id: str, actor: Actor) -> StandingGrant:
        """Revoke a grant. When this returns, no further run starts by it. Idempotent.

        :raises NotFound: if there is no such grant.
        :raises VaultLocked: if the vault is not unlocked.
        :raises StoreUnavailable: if the vault could not be written, so the grant stays. Or the grant is revoked, but
            the event could not be recorded.
        """


class ILimitService(Interface):
    """The operator's pauses, caps and lifted denials."""

    async def hold() -> None:
        """Stop starting effects in this process, and return when none is executing, so that the vault can be locked.

        Cancelling ends the wait. No effect starts afterwards in any case. Idempotent.
        """

    def pauses() -> tuple[Pause, ...]:
        """Return the pauses, oldest first."""

    async def pause(session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        """Prevent runs from starting, and started runs from making further attempts.

        The pause survives a restart. If it is not saved because the database accepts no writes, it is saved as soon as
        they work again. If the session is already paused, the earlier pause stays, but a pause by the operator replaces
        a pause by the session itself.

        :param session_id: the session to pause, or None for all.
        :return: the pause and the runs that are executing. No run becomes C{executing} after this returns.
        :raises LimitExceeded: if a session pauses itself, and too many sessions are paused. The operator's pauses are
            not limited.
        :raises StoreUnavailable: if the pause is in effect, but the executing runs cannot be read.
        """

    async def resume(session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        """Lift a pause. Every approved run that the pause delayed needs a new decision. Without a pause, do nothing.

        :param session_id: the session to resume, or None for all sessions without a pause of their own.
        :return: the runs that need a new decision.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault could not be written. The pause stays.
        """

    def caps() -> tuple[OwnCap, ...]:
        """Return the operator's caps, or nothing if the vault was never unlocked in this process."""

    async def set_caps(caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """Store these caps durably, all or none. Each replaces an earlier one of its name.

        :return: the stored caps, with time and author.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault could not be written. Nothing was stored.
        """

    async def remove_cap(which: OwnCap, actor: Actor) -> None:
        """Remove the cap with the name of C{which}.

        :raises NotFound: if there is no such cap.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault could not be written. The cap stays.
        """

    async def forgive(run_id: str, actor: Actor) -> Approval:
        """Lift a denial durably before its cool-down is over: agents may send the denied call again. Idempotent.

        :raises NotFound: if there is no such approval.
        :raises Conflict: if the approval was not denied.
        :raises StoreUnavailable: if the write failed. The denial stays in effect.
        """


class IReconciliation(Interface):
    """The operator's ways to settle or repeat runs whose outcome is unknown."""

    async def settle(run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """Record the operator's statement whether an C{unknown} run happened, and end the run.

        :return: the run, completed if it happened, else failed.
        :raises NotFound: if there is no such run.
        :raises Conflict: if the run is not C{unknown}.
        """

    async def find_out(run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """Search the service for the effect of an C{unknown} run by its effect key, and record the finding.

        If the finding is certain, the run is settled. Only reads are sent.

        :return: the run afterwards, and the finding.
        :raises NotFound: if there is no such run.
        :raises Conflict: if the run is not C{unknown}, or its effect can no longer be reconstructed.
        :raises CapabilityDenied: if the run's connector does not support the search.
        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file or the credential was altered.
        """

    async def is_reconcilable(run_id: str) -> bool:
        """Return whether L{find_out} can search for this run, as far as is known. Nothing is sent.

        :raises NotFound: if there is no such run.
        """

    async def run_again(run_id: str, note: str, actor: Actor) -> Run:
        """Create a run that repeats an C{unknown} run. The new run always needs approval.

        If every write is declared idempotent, the new run has the old effect key, else a new one. The old run stays
        C{unknown}, names the new one, and can still be settled.

        :return: the new run.
        :raises NotFound: if there is no such run, or its action no longer exists.
        :raises Conflict: if the run is not C{unknown}, or a run that repeats it is not settled or is C{unknown} itself.
            C{details} contain C{run_id} and C{state}.
        :raises InvalidRequest, BindingRequired, CapabilityDenied, LimitExceeded: if L{ISubmission.submit} would raise
            it.
        """
