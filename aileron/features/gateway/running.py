"""The gateway as a feature that runs in the daemon, with the hooks for other features."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from attrs import define

from aileron.base.http1 import RelayHandler
from aileron.base.json import JSON
from aileron.features.core import Core, ListeningSites
from aileron.features.feature import RunningFeature
from aileron.model.features import RelayedPath
from aileron.model.usage import UsageSum

from ._completions import CompletionRecorder
from ._gateway import Gateway, build
from ._routes import published
from ._tally import ReadAnswer, Tally
from .interfaces import ITotals
from .settings import GatewayEnvironment
from .values import GatewaySettings, Provider, ToolCount
from .watching import RequestWatch, SpendGuard

if TYPE_CHECKING:
    from aileron.base.life import Life
    from aileron.model.interfaces.services import IAgentRoutes

_PAUSE_SECONDS = 0.004
"""The pause between two responses that are read for tokens, so that reading does not delay the relay."""


class SessionUsage(Protocol):
    """Reads the stored sums of LLM usage."""

    async def of_sessions(self, session_ids: Sequence[str]) -> Mapping[str, UsageSum]:
        """Return the usage of each session by its id. Sessions without usage are omitted."""


@define(eq=False)
class RunningGateway(RunningFeature):
    """The gateway, its settings and its counts.

    :ivar settings: the operator's settings, with the environment's overrides.
    :ivar totals: the counts since the daemon's start.
    :ivar relay: handles the requests.
    :ivar watch: reads requests for the tools that their provider is to run, or None.
    """

    settings: GatewaySettings
    totals: ITotals
    relay: Gateway
    _usage: SessionUsage
    _life: Life
    watch: RequestWatch | None = None

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that routes and pages can find by their class: this feature."""
        return (self,)

    def find_setting(self, key: str, default: Any) -> Any:
        """Return the value of a key that another feature adds to the gateway's settings, or C{default} if not set."""
        return self.settings.find_setting(key, default)

    @property
    def tools(self) -> tuple[ToolCount, ...]:
        """The counts of tools that providers were asked to run, from the requests that were read for tools."""
        return () if self.watch is None else self.watch.counts()

    def watch_requests(self, watch: RequestWatch) -> None:
        """Call C{watch} with each further request before it is sent, to find the tools that the provider is to run."""
        self.watch = watch
        self.relay.watch_requests(watch)

    def guard_spending(self, guard: SpendGuard) -> None:
        """Call C{guard}, which enforces limits on spending, before each further request that may cost something.

        Token counts are then read from all responses.
        """
        self.relay.guard_spending(guard)
        if isinstance(self.totals, Tally):
            self.totals.read_all()

    def read_answers(self, read_answer: ReadAnswer) -> None:
        """Pass the responses to sessions that are read for their token counts to C{read_answer}, too."""
        if isinstance(self.totals, Tally):
            self.totals.reading.read_answer = read_answer

    def read_usage(self, session_id: str | None, most: int) -> int:
        """Read now what the last responses of a session used, or of requests without a session.

        :param most: the most responses to read.
        :return: how many were read.
        """
        return self.totals.read_of(session_id, most) if isinstance(self.totals, Tally) else 0

    def take_requests(self, routes: IAgentRoutes) -> RelayHandler:
        return self.relay

    def relayed(self) -> Sequence[RelayedPath]:
        return published(self.settings)

    async def serve(self, sites: ListeningSites) -> None:
        self.relay.open(sites.ports)
        if isinstance(self.totals, Tally):
            self._life.at_end(self.totals.reading.read_rest)
        self._life.at_end(self.relay.close)

    def status(self) -> Mapping[str, JSON]:
        from .shapes import totals_json, upstreams_json

        upstreams = upstreams_json(self.settings, self.watch)
        return {"gateway": {**upstreams, "totals": totals_json(self.totals.snapshot(), self.tools)}}

    async def session_members(self, session_ids: Sequence[str]) -> Mapping[str, Mapping[str, JSON]]:
        from aileron.api.shapes.values import to_json

        used = await self._usage.of_sessions(session_ids)
        return {session_id: {"gateway": to_json(each)} for session_id, each in used.items()}

    def metrics(self) -> Iterable[Any]:
        from .metrics import describe_traffic

        return describe_traffic(self.totals.snapshot().providers)

    def find_scope(self, name: str) -> Provider | None:
        return self.settings.bound_by(name)


def start_gateway(core: Core, settings: GatewaySettings) -> RunningGateway:
    """Build the gateway. It neither listens nor connects yet.

    :raises InvalidRequest: if a variable of the environment holds no valid base URL.
    """
    store, process = core.store, core.process
    reactor, ids = process.reactor, process.ids
    settings = GatewayEnvironment.read(process.environ).over(settings)
    tally = Tally(
        time.perf_counter,
        partial(reactor.callLater, _PAUSE_SECONDS),
        store.usage.note,
        reads=settings.accounting,
        completions=CompletionRecorder(store.audit, reactor, ids) if settings.audit else None,
    )
    relay = build(
        settings,
        reactor,
        sessions=store.sessions,
        vault=core.vault,
        bindings=core.vault,
        flags=store.flags,
        tally=tally,
        ids=ids,
    )
    return RunningGateway(settings, tally, relay, store.usage, process.life)
