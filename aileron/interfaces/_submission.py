"""Interface of the runner's part that agents reach: submit calls, follow them, withdraw them."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import (
    Actor,
    AttemptRow,
    Call,
    Offering,
    Page,
    Run,
    RunQuery,
    StepRow,
)


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

    async def most_used(limit: int) -> tuple[str, ...]:
        """List the names of the actions executed most often lately, the most used first."""

    async def history(run_id: str) -> tuple[tuple[StepRow, ...], tuple[AttemptRow, ...]]:
        """Return the steps that ended and every attempt, each in order."""

    async def withdraw(run_id: str, actor: Actor, reason: str | None) -> Run:
        """Withdraw a run before anything is sent.

        :raises NotFound: no such run.
        :raises Conflict: too late.
        """
