"""The chokepoint's door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zope.interface import Interface

from aileron.values import (
    JSON,
    Actor,
    Approval,
    AttemptRow,
    Call,
    Decision,
    Finding,
    Grant,
    Halt,
    NewGrant,
    Offer,
    Offering,
    OwnCap,
    Page,
    Pause,
    Precedents,
    Predicate,
    Run,
    RunQuery,
    StandingGrant,
    StepRow,
    TrustItem,
    TrustKind,
)


class IRunner(Interface):
    """Every invocation, by whomever, goes through here; nothing else reaches a connector.

    Whoever waits here only waits: cancelling ends the wait, never the run.
    """

    def offering() -> Offering:
        """What can be run now and is trusted, with what could not be loaded, or is not trusted, and why.

        Empty while the vault was never unlocked in this life.
        """

    async def offering_after(generation: int, seconds: float) -> Offering:
        """The offering as soon as its generation is another than C{generation}, or as it is after C{seconds}."""

    async def set_enabled(name: str, enabled: bool, actor: Actor) -> Offer:
        """Switch an action on or off; durable when it returns.

        :raises NotFound: there is none of that name that loaded and is trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """

    async def trust_items() -> tuple[TrustItem, ...]:
        """Every file as it lies there now, and whatever else is trusted, by kind and name.

        :raises VaultLocked: the vault was never unlocked in this life, so that nobody's word is known.
        """

    async def trust(items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        """Trust exactly these files, all or none; durable when it returns.  Twice is safe.

        :param items: kind, name and digest of each, as the operator was shown it.
        :return: each as it is then.
        :raises NotFound: one of them does not lie there.
        :raises Conflict: one of them has another digest now; C{details["items"]} lists kind, name and digest of what
            lies there instead.  Nothing was trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """

    async def distrust(kind: TrustKind, name: str, actor: Actor) -> None:
        """Take trust back; what waits of it becomes stale.

        :raises NotFound: it is not trusted.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: nothing was kept.
        """

    async def submit(call: Call) -> Run:
        """Check C{call}, keep it, and start what follows; the run as it then stands.

        :return: durable: C{pending_approval}, C{awaiting_vault}, C{executing} or already settled; for a known
            idempotency key the run of then.
        :raises NotFound: no such action, or it did not load, or it or its connector is not trusted as it lies there.
        :raises Conflict: the action is switched off; or the idempotency key was used with other arguments.
        :raises InvalidRequest: arguments; every fault at once.
        :raises Paused: everything is, or its session; nothing is kept.
        :raises LimitExceeded: too many pending; a limit is full; or its session or action is stopped for a while, for
            what was denied or called too often; nothing is kept.
        :raises ApprovalDenied: an agent's, and the same was denied lately; nothing is kept.
        :raises VaultLocked: ungated, and the vault is not unlocked; nothing is kept.
        :raises BindingRequired, CapabilityDenied: what it needs is not there; nothing is kept.
        :raises StoreUnavailable: nothing is kept.
        """

    async def wait(run_id: str, seconds: float) -> Run:
        """The run as soon as it is settled, or as it is after C{seconds}.

        :raises NotFound: no such run.
        """

    async def run(run_id: str) -> Run:
        """One run.

        :raises NotFound: no such run.
        """

    async def runs(query: RunQuery) -> Page[Run]:
        """Runs, newest first."""

    async def most_used(limit: int) -> tuple[str, ...]:
        """The names of the actions that were lately carried out most often, first things first."""

    async def history(run_id: str) -> tuple[tuple[StepRow, ...], tuple[AttemptRow, ...]]:
        """The steps that ended and every attempt, in order."""

    async def approval(run_id: str) -> Approval:
        """One approval, whole, its staleness checked now, and a preview that was missed fetched if that is soon done.

        :raises NotFound: no such run, or it was never gated.
        """

    async def approvals(query: RunQuery) -> Page[Approval]:
        """Approvals, oldest first."""

    async def precedents(approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        """How each of C{approvals} compares with the newest 200 calls of its action that were done before, in order."""

    async def decide(run_id: str, decision: Decision) -> Approval:
        """Take the operator's decision and mark it; durable when it returns.

        An approved run starts at once, or when its undo window is over and its time has come; it is not waited for.

        :raises NotFound: no such approval.
        :raises Conflict: it is decided, withdrawn or expired; C{details["state"]} is the present state.
        :raises ApprovalStale: the digest is not the present one (it may have become another just now, for the preview
            is fetched once more), or what it binds cannot run; C{details} tell the present C{digest}, why it is
            C{stale}, and the C{changes}.
        :raises Paused: nothing may begin now; nothing is decided.
        :raises VaultLocked: the vault is not unlocked; nothing is decided.
        :raises Paused: it would be approved, and everything is paused, or its session.
        :raises InvalidRequest: it would be put off for too long.
        :raises Forbidden: it needs a passkey, and none was used for exactly this; C{details["passkey"]} is true.
        """

    async def withdraw(run_id: str, actor: Actor, reason: str | None) -> Run:
        """Take it back before anything is sent.

        :raises NotFound: no such run.
        :raises Conflict: too late.
        """

    async def settle(run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """Say what became of an C{unknown} run.

        :raises NotFound: no such run.
        :raises Conflict: it is not C{unknown}.
        """

    async def pending(session_id: str | None) -> int:
        """How many approvals wait, of one session or of all."""

    async def approve_and_grant(run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        """Approve one call, and from now on those like it, as C{wish} says; durable when it returns.

        The grant is in force first; where the call is then not approved, it is revoked again.

        :raises InvalidRequest: it cannot be granted, or does not match the call itself; every fault at once, each
            by its pointer from C{/grant} on.
        :raises Conflict: as of L{decide}; or as many grants are in force as can be.
        :raises NotFound, ApprovalStale, VaultLocked, StoreUnavailable, Forbidden: as of L{decide}; nothing is granted.
        """

    async def grants() -> tuple[StandingGrant, ...]:
        """The standing grants, oldest first, and whether each allows anything now.

        :raises VaultLocked: the vault was never unlocked in this life.
        """

    async def grant(grant_id: str) -> StandingGrant:
        """One standing grant.

        :raises NotFound: there is none of that id, or it ended some days ago.
        :raises VaultLocked: as of L{grants}.
        """

    async def revoke_grant(grant_id: str, actor: Actor) -> StandingGrant:
        """Let a grant be in force no more: when it returns, nothing more begins by it.  Twice is safe.

        :raises NotFound: as of L{grant}.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: the vault could not be written, and it stays; or the record could not, and it ended.
        """

    def suggested(approval: Approval) -> tuple[Predicate, ...]:
        """What could be granted of the arguments of C{approval} without much thought: the same recipients' domains."""

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

    async def find_out(run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """Look now, by the effect key, whether an C{unknown} run happened; what is found settles it.

        Nothing but reads is sent.  Twice is safe.

        :return: the run as it then stands, and what was found.
        :raises NotFound: no such run.
        :raises Conflict: it is not C{unknown}, or what it would have done cannot be told any more.
        :raises CapabilityDenied: its connector declares no way to look.
        :raises VaultLocked: the vault is not unlocked.
        """

    async def run_again(run_id: str, note: str, actor: Actor) -> Run:
        """Put up for decision, whatever the action says, a new run that does again what an C{unknown} one was to do.

        It has the old one's effect key where every write is declared idempotent, else a fresh one.  The old one stays
        C{unknown}, names it, and can still be settled.

        :return: the new run.
        :raises NotFound: no such run, or no such action any more.
        :raises Conflict: it is not C{unknown}; or a run that does it again is open, or C{unknown} itself: C{details}
            tell C{run_id} and C{state}.
        :raises InvalidRequest, BindingRequired, CapabilityDenied, LimitExceeded: as of L{submit}.
        """

    async def edit(run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        """Replace the arguments of what waits for a decision; it is checked and asked anew in one step, or not at all.

        What was asked for stays beside them.  The same arguments once more change nothing.

        :param digest: of what was shown; L{None}: of whatever is.
        :return: the approval, with another digest.
        :raises NotFound: no such approval; or its action is not there, or not trusted.
        :raises Conflict: it is decided, withdrawn or expired; or the action is switched off.
        :raises ApprovalStale: the digest is not the present one: look again.
        :raises InvalidRequest: arguments; every fault at once.
        :raises BindingRequired, CapabilityDenied: it cannot run so.
        :raises StoreUnavailable: nothing is changed.
        """

    async def forgive(run_id: str, actor: Actor) -> Approval:
        """Let agents ask again what was denied, before its cool-down is over; durable when it returns.  Twice is safe.

        :raises NotFound: no such approval.
        :raises Conflict: it was not denied.
        :raises StoreUnavailable: it counts on.
        """
