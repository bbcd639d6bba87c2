"""Network access of sandboxed agents: a proxy to the hosts that the operator allows. Each connection is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command, NoticeRule

if TYPE_CHECKING:
    from aileron.features.core import Core
    from aileron.home.paths import Home
    from aileron.model.interfaces.authority import ITrust
    from aileron.model.interfaces.connectors import IConfigFile


class Egress(Feature):
    """The feature that lets sandboxed agents reach the hosts that the operator allows."""

    name = "egress"
    summary = "Lets sandboxed agents connect to the hosts that you allow."
    file_names: ClassVar[Sequence[str]] = ("egress.toml",)

    def commands(self) -> Mapping[str, Command]:
        return {"network": Command("aileron.features.egress.commands:egress", "Decide", 100, old=("egress",))}

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "egress.opened": EventName("Network access opened", "sessions"),
            "egress.admitted": EventName("Connecting to a host", "sessions"),
            "egress.connected": EventName("Connected to a host", "sessions"),
            "egress.failed": EventName("Connection to a host failed", "sessions"),
            "egress.refused": EventName("Host refused, waiting for approval", "sessions", "waits"),
            "egress.allowed": EventName("Host allowed", "sessions"),
            "egress.denied": EventName("Host denied", "sessions"),
            "egress.blocked": EventName("Connection blocked: another server name", "sessions", "bad"),
            "egress.ended": EventName("Network access ended", "sessions"),
        }

    def notices(self) -> Mapping[str, NoticeRule]:
        one, many = "a sandboxed agent wants to connect to a host", "{n} hosts are waiting for your approval"
        return {"egress.refused": NoticeRule("host_refused", one, many, rank=100)}

    def trusted_files(self, home: Home, trust: ITrust) -> Sequence[IConfigFile]:
        from ._file import NAME, EgressFile

        return (EgressFile(home.root / NAME, trust),)

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_session_hosts, draw_waiting_hosts

        return {"approvals": draw_waiting_hosts, "session": draw_session_hosts}

    async def start(self, core: Core) -> RunningFeature:
        from .running import start_egress

        return start_egress(core)


FEATURE = Egress()
