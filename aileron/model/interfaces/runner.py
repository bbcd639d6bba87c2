"""The seams of the runner: calls, their runs, and the decisions on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zope.interface import Interface

from aileron.base.json import JSON
from aileron.model.actions import Offering
from aileron.model.audit import Actor
from aileron.model.authority import Grant, NewGrant, Predicate
from aileron.model.precedents import Precedents
from aileron.model.queries import Page, RunQuery
from aileron.model.reviews import Card
from aileron.model.runs import Approval, AttemptRow, Call, Decision, DryRun, Run, StepRow


class ISubmission(Interface):
    """Takes calls and reports on runs; its caller limits an agent to runs of its own.

    Every invocation goes through here; nothing else reaches a connector.  Cancelling a wait ends the wait, never the
    run.
    """

    def offering() -> Offering:
        """Return the actions that can be run now, and why others did not load or are not trusted.

        Empty while the vault was never unlocked in this life.
        """

    async def offering_after(generation: int, seconds: float) -> Offering:
        """Return the offering once its generation differs from C{generation}, at the latest after C{seconds}."""

    async def submit(call: Call) -> Run:
        """Check C{call}, store it as a run, and start what follows.

        :return: the run as it then stands, durable: C{pending_approval}, C{awaiting_vault}, C{executing} or already
            settled; for a known idempotency key the earlier run.
        :raises NotFound: no such action, or it did not load, or the file of it or of its connector is not trusted.
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

    def dry_run(name: str, arguments: JSON) -> DryRun:
        """Work out what a call by the operator would send, and show it as its approval would.

        Nothing is sent, not even the read of a preview, and nothing is kept.  The action's file need not be trusted.

        :raises NotFound: no such action, or it did not load, or its connector is not there or not trusted.
        :raises InvalidRequest: arguments; every fault at once.
        :raises BindingRequired, CapabilityDenied: what it needs is not there.
        """

    async def undo(run_id: str, actor: Actor) -> Run:
        """Request what undoes a completed run, as its action's file says, and have the operator decide on it.

        :return: the new run, which needs approval in any case; for a run that is being undone, or was, that run.
        :raises NotFound: no such run; or its action or the one that undoes it is not there, or not trusted.
        :raises Conflict: it is not completed; or its action changed since, or the one that undoes it is switched off.
        :raises CapabilityDenied: its action does not say how it is undone.
        :raises InvalidRequest: what came of the run does not give the arguments.
        :raises Paused, LimitExceeded, BindingRequired, StoreUnavailable: as of L{submit}; nothing is kept.
        """

    async def wait(run_id: str, seconds: float) -> Run:
        """Return the run once it is settled, at the latest after C{seconds}.

        :raises NotFound: no such run.
        """

    async def run(run_id: str) -> Run:
        """Return one run.

        :raises NotFound: no such run.
        """

    async def runs(query: RunQuery) -> Page[Run]:
        """List runs, newest first."""

    async def count(query: RunQuery) -> int:
        """Count the runs that match; limit and cursor do not matter."""

    async def most_used(limit: int) -> tuple[str, ...]:
        """List the names of the actions executed most often lately, the most used first."""

    async def history(run_id: str) -> tuple[tuple[StepRow, ...], tuple[AttemptRow, ...]]:
        """Return the steps that ended and every attempt, each in order."""

    async def withdraw(run_id: str, actor: Actor, reason: str | None) -> Run:
        """Withdraw a run before anything is sent.

        :raises NotFound: no such run.
        :raises Conflict: too late.
        """


class IDecisions(Interface):
    """Shows the operator the pending approvals, edits them, and takes decisions."""

    async def approval(run_id: str, *, only_read: bool = False) -> Approval:
        """Return one approval in full, its staleness checked now; a missing preview is fetched if that is quick.

        :param only_read: fetch no preview and store nothing; staleness is computed for this answer alone.
        :raises NotFound: no such run, or it was never gated.
        """

    async def approvals(query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        """List approvals, oldest first.

        :param only_read: store nothing; staleness is computed for this answer alone.
        """

    async def pending(session_id: str | None) -> int:
        """Count the pending approvals of one session, or of all."""

    async def precedents(approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        """Compare each of C{approvals} with the newest 200 completed calls of its action; the same order."""

    def cards(approval: Approval) -> tuple[Card, ...]:
        """Show what C{approval} would send as what it is to a person, such as a message; nothing where no hint says so.

        Made of what is there now, and only where that has the digest of C{approval}.
        """

    def suggested(approval: Approval) -> tuple[Predicate, ...]:
        """Suggest argument patterns for a grant: the domains of the recipients of C{approval}."""

    async def edit(run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        """Replace the arguments of a pending approval; they are checked and shown anew in one step, or not at all.

        The original arguments are kept beside them.  Passing the same arguments again changes nothing.

        :param digest: of what was shown; L{None}: of whatever is.
        :return: the approval, with another digest.
        :raises NotFound: no such approval; or its action is not there, or not trusted.
        :raises Conflict: it is decided, withdrawn or expired; or the action is switched off.
        :raises ApprovalStale: the digest is not the present one: look again.
        :raises InvalidRequest: arguments; every fault at once.
        :raises BindingRequired, CapabilityDenied: it cannot run so.
        :raises StoreUnavailable: nothing is changed.
        """

    async def decide(run_id: str, decision: Decision) -> Approval:
        """Take the operator's decision and mark it; durable when it returns.

        An approved run starts at once, or when its undo window is over and its time has come; it is not waited for.

        :raises NotFound: no such approval.
        :raises Conflict: it is decided, withdrawn or expired; C{details["state"]} is the present state.
        :raises ApprovalStale: the digest is not the present one (it may have become another just now, for the preview
            is fetched once more), or what it binds cannot run; C{details} tell the present C{digest}, why it is
            C{stale}, and the C{changes}.
        :raises VaultLocked: the vault is not unlocked; nothing is decided.
        :raises Paused: it would be approved, and everything is paused, or its session; nothing is decided.
        :raises InvalidRequest: it would be put off for too long.
        :raises Forbidden: it needs a passkey, and none was used for exactly this; C{details["passkey"]} is true.
        """

    async def approve_and_grant(run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        """Approve one call and grant similar ones as C{wish} says; durable when it returns.

        The grant is in force first; where the call is then not approved, it is revoked again.

        :raises InvalidRequest: it cannot be granted, or does not match the call itself; every fault at once, each
            by its pointer from C{/grant} on.
        :raises Conflict: as of L{decide}; or as many grants are in force as can be.
        :raises NotFound, ApprovalStale, VaultLocked, StoreUnavailable, Forbidden: as of L{decide}; nothing is granted.
        """
