"""Agents' own tools as the daemon runs them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from twisted.internet.defer import Deferred

from aileron.api.shapes.schemas import COUNT, TEXT, list_of, made_of
from aileron.base.json import JSON
from aileron.features.core import Core
from aileron.features.egress.running import RunningEgress
from aileron.features.feature import RunningFeature
from aileron.home.stored_contents import StoredContents

from ._contents import SWEEP_SECONDS, ToolContents
from ._door import Door
from ._graphql import load_parser
from ._reads import SessionReads
from ._recorder import ToolRecorder
from ._services import ToolServices
from ._spool import BodySpools
from ._writes import Writes
from .opening import ToolSessions
from .settings import OwnToolsSettings

_MOST_WRITERS = 4  # threads that write bodies to the disk
STATUS = made_of(
    {
        "reads": {**COUNT, "description": "requests of tools that only read, since the daemon started"},
        "services": {**list_of(TEXT), "description": "the services that were added, or that config.yaml names"},
        "problems": {**list_of(TEXT), "description": "what keeps tools from using these services"},
    }
)


@frozen(eq=False)
class RunningOwnTools(RunningFeature):
    """The running feature: it answers the requests of agents' own tools."""

    sessions: ToolSessions
    recorder: ToolRecorder
    reads: SessionReads
    writes: Writes
    services: ToolServices
    settings: OwnToolsSettings

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    def session_ended(self, session_id: str) -> None:
        self.sessions.end(session_id)
        self.reads.session_ended(session_id)
        self.writes.session_ended(session_id)
        self.recorder.session_ended(session_id)

    def status(self) -> Mapping[str, JSON]:
        names = tuple(dict.fromkeys((*self.settings.services, *self.services.list_names())))
        problems = list(self.services.list_problems(names))
        return {"own_tools": {"reads": self.recorder.reads, "services": list(names), "problems": problems}}


async def start_own_tools(core: Core, settings: OwnToolsSettings) -> RunningOwnTools | None:
    """Build the objects that answer tools' requests, and register them with the proxy of sandboxes.

    What is recorded is written before the daemon ends. Return None if the daemon has no proxy.
    """
    egress = core.find(RunningEgress)
    if egress is None:
        return None
    process, store, runner = core.process, core.store, core.runner
    recorder = ToolRecorder(store.audit, process.reactor, process.ids)
    reads = SessionReads(runner.tool_reads)
    spools = BodySpools(StoredContents.of_home(core.home.root), process.in_thread(at_once=_MOST_WRITERS))
    contents = ToolContents(spools, runner.submission)
    await contents.start()
    process.life.repeat(process.reactor, SWEEP_SECONDS, lambda: Deferred.fromCoroutine(contents.sweep()))
    claims, reactor, life = store.tool_claims, process.reactor, process.ids()
    writes = Writes(runner.submission, claims, contents, reactor, life, settings.hold_seconds)
    services = ToolServices(core.connectors, core.vault, runner.submission)
    door = Door(
        store.sessions,
        services,
        reads,
        writes,
        runner.submission,
        recorder,
        lambda run_id: f"{process.operator_url()}/approvals/{run_id}",
    )
    sessions = ToolSessions(door, process.reactor, recorder, lambda: process.reactor.callInThread(load_parser), spools)
    egress.sessions.register_opener(sessions)
    process.life.at_end(recorder.stop)
    process.life.at_end(spools.stop)
    return RunningOwnTools(sessions, recorder, reads, writes, services, settings)
