"""Asks services for previews, a few at once, and never but with the vault open and nothing paused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import define, field, frozen
from twisted.internet.defer import DeferredSemaphore
from twisted.internet.interfaces import IReactorTime

from aileron.errors import VaultLocked
from aileron.runner._executor import Executor
from aileron.runner.limits.effects import EffectGate
from aileron.runner.limits.pauses import Pauses
from aileron.runner.runs.echoes import Echoes, find_echoes
from aileron.runner.runs.events import EventFactory
from aileron.runner.runs.offerings import Offerings
from aileron.runner.runs.preview import Preview, render_preview
from aileron.values import Run

from .requests import ApprovalRequests

SECONDS = 5.0
"""How long a service has to answer."""

AGAIN_SECONDS = 10.0
"""What has failed is not tried again by looking before so long."""

MOST_IN_BACKGROUND, MOST_FOR_THE_OPERATOR, MOST_BEFORE_EFFECTS = 6, 2, 4
"""How many are fetched at once: what agents ask for never keeps the operator's own decisions waiting."""


@frozen
class Fetched:
    """A preview as it is now, and what is to be put on record of how it came."""

    preview: Preview
    echoes: Echoes


@define(eq=False)
class PreviewFetcher:
    """One turn after the other, in three queues."""

    _offerings: Offerings
    _requests: ApprovalRequests
    _executor: Executor
    _clock: IReactorTime
    _events: EventFactory
    _effects: EffectGate
    _pauses: Pauses
    _background: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_IN_BACKGROUND), init=False)
    _foreground: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_FOR_THE_OPERATOR), init=False)
    _before_effects: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_BEFORE_EFFECTS), init=False)
    _tried: dict[str, float] = field(factory=dict, init=False)  # by run, when

    def may_be_now(self) -> bool:
        """Whether the vault is open."""
        return self._effects.may_act()

    def was_tried(self, run_id: str) -> bool:
        """Whether its service was asked just now."""
        return run_id in self._recent()

    async def for_the_agent(self, run: Run, wanted: Callable[[], Awaitable[bool]]) -> Fetched | None:
        """The preview of C{run}, in the turn of those that nobody waits for; L{None} if its action has none.

        :param wanted: asked when its turn has come: many may have been taken back by then.

        :raises VaultLocked, Paused: it cannot be fetched now.
        :raises AileronError: what the run needs is not there.
        """
        return await self._in_turn(run, self._background, wanted)

    async def for_the_operator(self, run: Run) -> Fetched | None:
        """The same, for a decision or an edit."""
        return await self._in_turn(run, self._foreground)

    async def for_the_effect(self, run: Run) -> Fetched | None:
        """The same, for a run that is to begin: a standing grant may have allowed very many."""
        return await self._in_turn(run, self._before_effects)

    async def _in_turn(
        self, run: Run, turns: DeferredSemaphore, wanted: Callable[[], Awaitable[bool]] | None = None
    ) -> Fetched | None:
        if self._requests.plan(run).preview is None:
            return None
        return await turns.run(self._fetch_wanted, run, wanted)

    async def _fetch_wanted(self, run: Run, wanted: Callable[[], Awaitable[bool]] | None) -> Fetched | None:
        return await self._fetch(run) if wanted is None or await wanted() else None

    async def _fetch(self, run: Run) -> Fetched | None:
        """Plan by what is there now, and ask the service, once."""
        if not self._effects.may_act():
            raise VaultLocked("The preview cannot be fetched while the vault is locked.")
        self._pauses.refuse(run.session_id)
        self._tried = {**self._recent(), run.id: self._clock.seconds()}
        self._offerings.refresh()
        planned = self._requests.plan(run).preview
        if planned is None:
            return None
        outcome = await self._executor.preview(planned.read, SECONDS)
        if outcome.fault is not None and outcome.fault.kind == VaultLocked.kind:
            raise VaultLocked(outcome.fault.message)
        return Fetched(
            render_preview(planned.rule, outcome, planned.carried),
            find_echoes(self._events, run, planned.read, outcome),
        )

    def _recent(self) -> dict[str, float]:
        """Those that were tried just now; a clock that was set back forgets them."""
        now = self._clock.seconds()
        return {run_id: at for run_id, at in self._tried.items() if 0 <= now - at < AGAIN_SECONDS}
