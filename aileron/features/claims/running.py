"""The claim check in the running daemon: it compares what agents say they did with their runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from aileron.api.shapes.schemas import TEXT, list_of
from aileron.base.json import JSON
from aileron.features.core import Core
from aileron.features.feature import RunningFeature
from aileron.features.gateway.running import RunningGateway
from aileron.model.actions import Offering
from aileron.model.failures import log_failure
from aileron.model.interfaces.store import IRuns
from aileron.model.queries import RunQuery
from aileron.model.runs import RunState

from ._answers import read_last_answer
from ._claims import Claim, find_claims, name_services
from .settings import SETTING

MOST_SESSIONS = 256
MOST_CLAIMS = 8
"""The most claims of one session that are kept. Further ones take the place of the oldest."""

MOST_CHECKS = 64
"""The most answers whose claims are looked up at once. Claims of further ones are ignored."""

_DONE = (RunState.EXECUTING, RunState.COMPLETED, RunState.UNKNOWN)
_MOST_RUNS = 500
_log = Logger()

CLAIMS = {**list_of(TEXT), "description": "effects that the agent claimed and no run of the session had"}


@define(eq=False)
class RunningClaimCheck(RunningFeature):
    """Finds what agents claim to have done, and stores it in memory by session.

    :param offering: returns the actions that can run now.
    """

    _offering: Callable[[], Offering]
    _runs: IRuns
    _claims: OrderedDict[str, list[Claim]] = field(factory=OrderedDict, init=False)
    _checks: int = field(default=0, init=False)

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    def read_answer(self, session_id: str, body: bytes, streamed: bool) -> None:
        """Look for claims in a response, and check them in the background."""
        text = read_last_answer(body, streamed=streamed)
        if text is None or self._checks >= MOST_CHECKS:
            return
        claims = list(dict.fromkeys(find_claims(text, name_services(self._list_services()))))[:MOST_CLAIMS]
        if claims:
            self._checks += 1
            checking = Deferred.fromCoroutine(self._check(session_id, claims))
            checking.addErrback(lambda why: log_failure(_log, "the claims of an answer could not be checked", why))

    async def list_claims(self, session_id: str) -> Sequence[Claim]:
        """Return the claims of a session's agent about services for which no run is known.

        :raises StoreUnavailable: if the runs cannot be read.
        """
        claims = self._claims.get(session_id, [])
        done = await self._list_done(session_id) if claims else frozenset()
        return [each for each in claims if done is not None and each.service not in done]

    async def session_members(self, session_ids: Sequence[str]) -> Mapping[str, Mapping[str, JSON]]:
        found = {each: await self.list_claims(each) for each in session_ids if each in self._claims}
        return {name: {"claims": [each.describe() for each in claims]} for name, claims in found.items() if claims}

    async def _check(self, session_id: str, claims: Sequence[Claim]) -> None:
        try:
            done = await self._list_done(session_id)
        finally:
            self._checks -= 1
        unfounded = [] if done is None else [each for each in claims if each.service not in done]
        if unfounded:
            kept = [each for each in self._claims.pop(session_id, []) if each not in unfounded]
            self._claims[session_id] = [*kept, *unfounded][-MOST_CLAIMS:]
            while len(self._claims) > MOST_SESSIONS:
                self._claims.popitem(last=False)

    async def _list_done(self, session_id: str) -> frozenset[str] | None:
        """Return the services in which a run of the session did something, or None if that is not known."""
        page = await self._runs.list(RunQuery(states=_DONE, session_id=session_id, limit=_MOST_RUNS))
        services = self._list_services()
        actions = {run.action for run in page.items}
        return frozenset(services[each] for each in actions) if actions <= services.keys() else None

    def _list_services(self) -> dict[str, str]:
        """Return the service of each action that changes something, and of its connectors' names."""
        found: dict[str, str] = {}
        for offer in self._offering().offers.values():
            names = [each.connector.rstrip("/").rpartition("/")[2] for each in offer.action.steps]
            if names:
                found.update({offer.action.name: names[-1], offer.action.tool_name: names[-1]})
                if not offer.read_only:
                    found[names[-1]] = names[-1]
        return found


def start_claim_check(core: Core) -> RunningClaimCheck | None:
    """Start reading the last answers that pass the gateway, and return the claim check.

    Return None if the gateway, or the check, is switched off.
    """
    gateway = core.find(RunningGateway)
    if gateway is None or not gateway.find_setting(SETTING, True):
        return None
    running = RunningClaimCheck(core.runner.submission.offering, core.store.runs)
    gateway.read_answers(running.read_answer)
    return running
