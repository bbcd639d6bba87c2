"""Interfaces of the runner: calls, their runs, and decisions on them."""

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
    """Accepts calls and reports on runs. Its caller restricts an agent to its own runs.

    Every call goes through this interface. No other code reaches a connector. Cancelling a wait ends only the wait, not
    the run.
    """

    def offering() -> Offering:
        """Return the actions that can run now, and why others did not load or are not trusted.

        If the vault was never unlocked in this process, the offering is empty.
        """

    async def offering_after(generation: int, seconds: float) -> Offering:
        """Return the offering when its generation differs from C{generation}, or after C{seconds}."""

    async def submit(call: Call) -> Run:
        """Validate C{call}, store it as a run and start it, or request approval.

        :return: the stored run: C{pending_approval}, C{awaiting_vault}, C{executing} or already settled. If the
            idempotency key was used before, the earlier run.
        :raises NotFound: if the action is unknown or did not load, or its file or its connector's file is not trusted.
        :raises Forbidden: if the session may not use the action.
        :raises Conflict: if the action is switched off, or the idempotency key was used with other arguments.
        :raises InvalidRequest: if the arguments are invalid. The error lists every problem.
        :raises Paused: if all runs or those of the session are paused. Nothing is stored.
        :raises LimitExceeded: if too many approvals are pending, a limit is reached, or the session or action is
            stopped for a while after denials or repeated calls. Nothing is stored.
        :raises ApprovalDenied: if an identical call of an agent was denied recently. Nothing is stored.
        :raises VaultLocked: if the action needs no approval, and the vault is not unlocked. Nothing is stored.
        :raises BindingRequired, CapabilityDenied: if a binding or capability is missing. Nothing is stored.
        :raises StoreUnavailable: if the write failed. Nothing is stored.
        """

    def dry_run(name: str, arguments: JSON) -> DryRun:
        """Return the requests that a call by the operator would send, as its approval would show them.

        Nothing is sent or stored, and no preview is read. The action's file need not be trusted.

        :raises NotFound: if the action is unknown or did not load, or its connector is missing or not trusted.
        :raises InvalidRequest: if the arguments are invalid. The error lists every problem.
        :raises BindingRequired, CapabilityDenied: if a binding or capability is missing.
        """

    async def undo(run_id: str, actor: Actor) -> Run:
        """Create the run that undoes a completed run, as the file of its action declares.

        The new run always needs the operator's approval.

        :return: the new run, or the existing undoing run if the run is being undone or was undone.
        :raises NotFound: if there is no such run, or its action or the undoing action is missing or not trusted.
        :raises Conflict: if the run is not completed, its action has changed since, or the undoing action is switched
            off.
        :raises CapabilityDenied: if the run's action declares no undo.
        :raises InvalidRequest: if the run's result lacks values for the arguments.
        :raises Paused, LimitExceeded, BindingRequired, StoreUnavailable: if L{submit} would raise it. Nothing is
            stored.
        """

    async def wait(run_id: str, seconds: float) -> Run:
        """Return the run when it is settled, or after C{seconds}.

        :raises NotFound: if there is no such run.
        """

    async def run(run_id: str) -> Run:
        """Return one run.

        :raises NotFound: if there is no such run.
        """

    async def runs(query: RunQuery) -> Page[Run]:
        """List runs, newest first."""

    async def count(query: RunQuery) -> int:
        """Count the runs that match. The query's limit and cursor are ignored."""

    async def most_used(limit: int) -> tuple[str, ...]:
        """Return the names of the recently most executed actions, the most used first."""

    async def history(run_id: str) -> tuple[tuple[StepRow, ...], tuple[AttemptRow, ...]]:
        """Return the completed steps and all attempts of a run, each in order. Both are empty for an unknown run."""

    async def withdraw(run_id: str, actor: Actor, reason: str | None) -> Run:
        """Withdraw a run before anything is sent.

        :raises NotFound: if there is no such run.
        :raises Conflict: if the run has already started.
        """


class IDecisions(Interface):
    """Shows pending approvals to the operator, edits them, and records decisions."""

    async def approval(run_id: str, *, only_read: bool = False) -> Approval:
        """Return one approval and update its staleness. If a missing preview can be fetched quickly, fetch it.

        :param only_read: True to fetch no preview and store nothing. Staleness is then computed for this result only.
        :raises NotFound: if there is no such run, or it never needed approval.
        """

    async def approvals(query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        """List approvals, oldest first.

        :param only_read: True to store nothing. Staleness is then computed for this result only.
        """

    async def progress(run: Run) -> str:
        """Return how many of several needed approvals a pending run has, or an empty text. See L{Approval.progress}."""

    async def pending(session_id: str | None) -> int:
        """Count the pending approvals of one session, or of all."""

    async def precedents(approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        """Compare each of C{approvals} with the newest 200 completed calls of its action.

        Results have the same order.
        """

    def cards(approval: Approval) -> tuple[Card, ...]:
        """Return the inputs of C{approval} in a familiar form, such as a message, or nothing if no hint defines one.

        If the run as planned now has another digest than C{approval}, return nothing.
        """

    def suggested(approval: Approval) -> tuple[Predicate, ...]:
        """Return argument patterns to suggest for a grant: the domains of C{approval}'s recipients."""

    async def edit(run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        """Replace the arguments of a pending approval.

        The new arguments are validated and shown in one step. If that fails, nothing changes.

        The original arguments stay stored. Passing identical arguments changes nothing.

        :param digest: the digest that was shown, or None to edit the current version.
        :return: the approval with its new digest.
        :raises NotFound: if there is no such approval, or its action is missing or not trusted.
        :raises Conflict: if the approval is decided, withdrawn or expired, or the action is switched off.
        :raises ApprovalStale: if the digest is not the current one.
        :raises InvalidRequest: if the arguments are invalid. The error lists every problem.
        :raises BindingRequired, CapabilityDenied: if a binding or capability is missing.
        :raises StoreUnavailable: if the write failed. Nothing is stored.
        """

    async def decide(run_id: str, decision: Decision) -> Approval:
        """Record the operator's decision durably, with the vault's signature of it.

        An approved run starts at once, or after its undo window and its start time. This method does not wait for it.

        :raises NotFound: if there is no such approval.
        :raises Conflict: if the approval is decided, withdrawn or expired. C{details["state"]} is the current state.
        :raises ApprovalStale: if the digest is not the current one (it may have just changed, since the preview is
            fetched again), or the run cannot start any more. C{details} contain the current C{digest}, the reason in
            C{stale}, and the C{changes}.
        :raises VaultLocked: if the vault is not unlocked. Nothing is decided.
        :raises Paused: if the decision is to approve, and all runs or those of the session are paused. Nothing is
            decided.
        :raises InvalidRequest: if the start time is too far in the future.
        :raises Forbidden: if the decision needs a passkey, and none was used for exactly this decision.
            C{details["passkey"]} is true.
        """

    async def approve_and_grant(run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        """Approve one call, and create the grant C{wish} for similar calls, durably.

        The grant takes effect first. If the call is then not approved, the grant is revoked.

        :raises InvalidRequest: if the grant is invalid or does not match the call. The error lists every problem with
            its pointer below C{/grant}.
        :raises Conflict: if L{decide} would raise it, or if the most grants are in force.
        :raises NotFound, ApprovalStale, VaultLocked, StoreUnavailable, Forbidden: if L{decide} would raise it. Nothing
            is granted.
        """
