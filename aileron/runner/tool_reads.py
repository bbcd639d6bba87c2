"""Sends the reads that agents' own command-line tools request. Like previews, they have no effect and are no runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from attrs import define, evolve, field, frozen
from twisted.internet.defer import DeferredSemaphore
from twisted.internet.interfaces import IConsumer

from aileron.base.json import JSON
from aileron.model.actions import Action, Offer, Step
from aileron.model.connectors import FORWARD, FORWARD_READ, Outcome
from aileron.model.errors import Forbidden
from aileron.model.people import Owner
from aileron.model.sessions import Session
from aileron.model.streams import AnswerBody, AnswerCut, StreamedAnswer

from .effect_gate import EffectGate
from .offerings import Offerings
from .plan import PlannedStep, Planner
from .runs import RunRepository
from .session_filters import SessionFilters

TOOL_READ_SECONDS = 60.0
"""The time within which a service must begin to respond to a read."""

MOST_AT_ONCE = 12
"""The most reads that wait for the beginning of their answer at once. Further ones are not sent yet."""


@define(eq=False)
class ToolReads:
    """Sends reads that an agent's own command-line tools request.

    :param send: sends a planned read once, and returns its outcome or its opened answer within the given number of
        seconds. The last argument is the scope within which connections are used again.
    """

    _runs: RunRepository
    _offerings: Offerings
    _planner: Planner
    _effects: EffectGate
    _send: Callable[[PlannedStep, Owner | None, float, str], Awaitable[Outcome | StreamedAnswer]]
    _filters: SessionFilters
    _turns: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_AT_ONCE), init=False)

    def find(self, session: Session, action_name: str) -> Offer:
        """Return the offer of the action by which a session's tools use a service.

        :raises NotFound, Conflict: if the action is not offered, or disabled.
        :raises Forbidden: if the session may not use it, or it is no such action.
        """
        offer = self._offerings.find(action_name)
        # guard of own tools: a session's restriction applies to its tools
        #    -> runner.test_tools.ToolReadsTests.test_profile
        self._filters.check(session, offer)
        if find_forwarding_step(offer.action) is None:
            raise Forbidden(f"The action {action_name} sends no requests of tools.", {"action": action_name})
        return offer

    async def read(self, session: Session, action_name: str, inputs: Mapping[str, JSON]) -> Outcome | StreamedAnswer:
        """Send a read with the credential. Return its outcome, or its answer if it is long, both without the secret.

        Cancelling closes the connection.

        :param action_name: the action by which the session's tools use the service.
        :param inputs: the inputs of the operation C{forward_read}.
        :raises NotFound, Conflict: if the action is not offered, or disabled.
        :raises Forbidden: if the session may not use it.
        :raises Paused: if everything or the session is paused.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingRequired: if no credential is bound to the connector, or more than one.
        :raises InvalidRequest, CapabilityDenied: if the request cannot be sent.
        """
        offer = self.find(session, action_name)
        return await self._turns.run(self._read, session, offer, inputs)

    async def _read(self, session: Session, offer: Offer, inputs: Mapping[str, JSON]) -> Outcome | StreamedAnswer:
        # guard of own tools: a pause stops reads -> runner.test_tools.ToolReadsTests.test_paused
        self._effects.refuse_paused(session.id)
        # guard of own tools: nothing is read while the vault is locked
        #    -> runner.test_tools.ToolReadsTests.test_locked
        self._effects.require()
        step = find_forwarding_step(offer.action)
        if step is None:
            raise Forbidden(f"The action {offer.action.name} sends no requests of tools.")
        planned = self._planner.plan_read(step.connector, FORWARD_READ, inputs, session.owner)
        answer = await self._send(planned, session.owner, TOOL_READ_SECONDS, session.id)
        binding = None if planned.binding is None else planned.binding.name

        async def record(forms: JSON) -> None:
            event = self._runs.event_of_home("secret.echoed", step=step.id, binding=binding, forms=forms)
            await self._runs.record(evolve(event, session_id=session.id, connector=step.connector))

        outcome = answer.outcome if isinstance(answer, StreamedAnswer) else answer
        try:
            if outcome.notes.get("echoed"):
                await record(outcome.notes["echoed"])
        except BaseException:
            if isinstance(answer, StreamedAnswer):
                answer.body.close()
            raise
        if isinstance(answer, StreamedAnswer):
            return evolve(answer, body=_RecordedBody(answer.body, record))
        return outcome


@frozen
class _RecordedBody:
    """The body of an answer. If it contained the credential, this is recorded.

    :ivar record: records the forms in which the credential was found.
    """

    _body: AnswerBody
    _record: Callable[[JSON], Awaitable[None]]

    async def pass_on(self, consumer: IConsumer) -> None:
        try:
            await self._body.pass_on(consumer)
        except AnswerCut as cut:
            if cut.echoed:
                await self._record([cut.echoed])
            raise

    def close(self) -> None:
        self._body.close()


def find_forwarding_step(action: Action) -> Step | None:
    """Return the only step of an action by which tools use a service, or None if it is another action."""
    return action.steps[0] if len(action.steps) == 1 and action.steps[0].operation == FORWARD else None
