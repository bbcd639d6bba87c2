"""Network access of sandboxed agents as the daemon runs it."""

from __future__ import annotations

from typing import Any, Protocol

from attrs import frozen

from aileron.connectors import system_resolver
from aileron.features.core import Core
from aileron.features.feature import RunningFeature
from aileron.model.audit import Actor
from aileron.model.sessions import Session
from aileron.model.tool_claims import ToolCaller

from ._file import EgressFile
from ._listener import build
from .values import EgressDecision, EgressHost, EgressState, TunnelOpener


class SessionHosts(Protocol):
    """The interface by which routes and pages use the hosts of sandboxed sessions."""

    async def open(self, session: Session, words: tuple[str, ...], caller: ToolCaller) -> tuple[int, str]:
        """Open network access for a session, and return the proxy's port and a ticket for one connection to it.

        :param caller: the process that opened the connection, as the launcher claims.
        :raises ValueError: if a word is no preset and no host, as a sentence.
        :raises Conflict: if other hosts were named for this session, or too many connections are being opened.
        :raises StoreUnavailable: if the audit log cannot be written.
        """

    def hosts(self) -> tuple[EgressHost, ...]:
        """Return the hosts that live sessions requested, pending ones first."""

    def pending(self, session_id: str | None = None) -> int:
        """Return how many hosts wait for a decision of the operator, for all sessions or for one."""

    async def decide(self, host_id: str, decision: EgressDecision, seen: EgressState, actor: Actor) -> EgressHost:
        """Record the operator's decision about a host, and return the host as it is then.

        :raises NotFound: if there is no such host.
        :raises Conflict: if the host's state is not C{seen}.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the decision could not be stored.
        """

    def end(self, session_id: str) -> None:
        """End the network access of a session. Idempotent."""

    def register_opener(self, opener: TunnelOpener) -> None:
        """Register the part of the daemon that answers connections to some hosts itself."""


@frozen(eq=False)
class RunningEgress(RunningFeature):
    """The running feature: the proxy, and the hosts that sandboxed sessions requested."""

    sessions: SessionHosts

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    def session_ended(self, session_id: str) -> None:
        self.sessions.end(session_id)

    def pending(self, session_id: str | None) -> int:
        return self.sessions.pending(session_id)


def start_egress(core: Core) -> RunningEgress:
    """Build the proxy. It listens once the first session is given network access."""
    process = core.process
    file: Any = core.files[EgressFile]
    listener = build(
        process.reactor,
        file,
        trust=core.runner.trust,
        audit=core.store.audit,
        operator_limits=core.vault,
        ids=process.ids,
        resolve=system_resolver(process.reactor),
        own_ports=process.own_ports,
    )
    process.life.at_end(listener.stop)
    return RunningEgress(listener.sessions)
