"""Decides whether effects may begin: by the vault, the pauses and the rate limits of services."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from aileron.model.connectors import Outcome
from aileron.model.errors import LimitExceeded, StoreUnavailable, VaultLocked
from aileron.model.interfaces.vault import IBindings, IVault
from aileron.model.runs import Run
from aileron.model.vault import VaultState

from .pauses import Pauses
from .plan import PlannedStep
from .rate_limits import RateLimits
from .runs import Verify


@define(eq=False)
class EffectGate:
    """Decides whether effects may begin now: by the vault, the pauses and the rate limits of services."""

    _vault: IVault
    _bindings: IBindings
    _pauses: Pauses
    _rates: RateLimits
    _may_send: Callable[[], bool] = lambda: True
    _could_act: bool = field(default=False, init=False)  # at the last call of C{look}
    _held: bool = field(default=False, init=False)
    _generation: int = field(default=0, init=False)  # the generation of the bindings at the last call of C{look}

    def may_act(self) -> bool:
        """Return whether effects may begin now: the vault is unlocked, and L{hold} was not called."""
        # guard of promise 2: nothing begins while the vault is locked -> NoDecisionTests.test_locked_call,
        #    instead return not self._held
        return not self._held and self._vault.state() is VaultState.UNLOCKED

    def hold(self) -> None:
        """Refuse every effect from now on, until the daemon is restarted. Used before the vault is locked."""
        self._held = True

    def refuse_paused(self, session_id: str | None) -> None:
        """Check that runs of the session are not paused.

        :raises Paused: if they are.
        """
        self._pauses.refuse(session_id)

    def is_paused(self, session_id: str | None) -> bool:
        """Return whether runs of the session are paused."""
        return self._pauses.find(session_id) is not None

    async def wait_unpaused(self, session_id: str | None, seconds: float) -> bool:
        """Wait until runs of the session are not paused. Return False if they still are after C{seconds}."""
        return await self._pauses.wait_unpaused(session_id, seconds)

    def guard_opening(self, verify: Verify | None) -> Verify:
        """Return a check for the transaction that starts a run. It raises L{Paused} if the run is paused.

        :param verify: a further check to call, or None.
        """
        return self._pauses.guarded(verify)

    def note_rate(self, planned: PlannedStep, outcome: Outcome, *, of_preview: bool = False) -> Outcome:
        """If the service's response asks for no further requests for some time, store that, and return C{outcome}.

        :param of_preview: whether the response is that to the read of a preview. See L{RateLimits.noted}.
        """
        return self._rates.noted(planned, outcome, of_preview=of_preview)

    async def learn_rates(self) -> None:
        """Read the rate limits that other daemons know of. Call it before the pauses are checked, because it waits."""
        await self._rates.learn()

    def note_waiting(self) -> None:
        """Note that a run waits for the vault or a credential, so that the next L{should_resume} may return True."""
        self._could_act = False

    def note_recovered(self) -> None:
        """Note that the runs of the previous process are recovered, so that the next L{should_resume} returns False."""
        self._could_act = True

    def should_resume(self, can_act: bool) -> bool:
        """Return whether to resume runs that wait for the vault or a credential.

        They are resumed if effects can begin now and could not at the last call, or if a binding has changed or
        L{note_waiting} was called since.

        :param can_act: whether effects can begin now.
        """
        generation = self._bindings.bindings_generation()
        if generation != self._generation:
            self._generation = generation
            self.note_waiting()
        could, self._could_act = self._could_act, can_act
        return can_act and not could

    async def in_turn(self, planned: PlannedStep, run: Run, seconds: float) -> None:
        """Wait until the rate limit of the step's service is over. Return at once if there is none.

        :raises StoreUnavailable: if another daemon may have taken the run.
        :raises LimitExceeded: if the wait lasts longer than C{seconds}, also because of a pause that begins meanwhile.
        """
        # guard of several daemons: nothing is sent of a run that another daemon may have taken
        #    -> runner.test_several.LateTests.test_not_sent
        if not self._may_send():
            raise StoreUnavailable("This daemon was silent for too long, so this request was not sent.")
        left = self._rates.seconds_left(planned, run.id)
        if not left:
            return
        why = f"{self._rates.explain(planned, left)} This request was not sent."
        waited = await self._rates.wait(planned, run.id, seconds)
        if not waited or not await self._pauses.wait_unpaused(run.session_id, seconds - left):
            raise LimitExceeded(why, {"retry_after": max(1, round(left))})

    def require(self) -> None:
        """Check that effects may begin now.

        :raises VaultLocked: if L{may_act} is false.
        """
        if not self.may_act():
            state = self._vault.state().value
            raise VaultLocked("The vault is locked: run `aileron vault unlock`.", {"state": state})
