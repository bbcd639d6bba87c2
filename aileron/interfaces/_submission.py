"""Takes calls, and tells what became of them: all that an agent reaches of the runner."""

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
    """Takes calls and tells of runs: an agent's own, as its caller sees to.

    Every invocation, by whomever, goes through here; nothing else reaches a connector.  Whoever waits here only waits:
    cancelling ends the wait, never the run.
    """

    def offering() -> Offering:
        """What can be run now and is trusted, with what could not be loaded, or is not trusted, and why.

        Empty while the vault was never unlocked in this life.
        """

    async def offering_after(generation: int, seconds: float) -> Offering:
        """The offering as soon as its generation is another than C{generation}, or as it is after C{seconds}."""

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

    async def withdraw(run_id: str, actor: Actor, reason: str | None) -> Run:
        """Take it back before anything is sent.

        :raises NotFound: no such run.
        :raises Conflict: too late.
        """
