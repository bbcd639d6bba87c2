"""A part of the daemon that answers connections to some hosts itself, as tests say."""

from __future__ import annotations

from typing import Any

from attrs import define, field
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from aileron.model.tool_claims import ToolCaller


class ServedConnection(Protocol):
    """A connection that is served here; it remembers what came."""

    transport: Any

    def __init__(self) -> None:
        self.got = b""
        self.lost = 0

    def dataReceived(self, data: bytes) -> None:
        """Remember it."""
        self.got += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Count that."""
        self.lost += 1


@define(eq=False)
class FakeOpener:
    """Answers connections to one host of each session.

    :ivar opened: the host with its port.
    :ivar problem: why sessions may not connect to that host, or empty.
    :ivar ended: whether the session has ended when its connection is to be served.
    :ivar recalled: the sessions that were recalled.
    :ivar callers: the processes that opened the served connections.
    """

    opened: str
    problem: str = ""
    ended: bool = False
    has_any: bool = True
    recalled: list[str] = field(factory=list)
    served: list[ServedConnection] = field(factory=list)
    callers: list[ToolCaller] = field(factory=list)

    async def recall(self, session_id: str) -> None:
        """Remember it."""
        self.recalled.append(session_id)

    def list_hosts(self, session_id: str) -> frozenset[str]:
        """Return the host if the session was recalled, unless a test says otherwise."""
        return frozenset((self.opened,)) if self.has_any and session_id in self.recalled else frozenset()

    def find_problem(self, session_id: str, host: str) -> str:
        """Return the problem of the host."""
        return self.problem if host == self.opened else ""

    def find_basis(self, session_id: str, host: str) -> str:
        """Return the reason for the host."""
        return "opened here" if host == self.opened and not self.problem else ""

    def serve(self, session_id: str, host: str, transport: Any, caller: ToolCaller) -> Any:
        """Serve a connection."""
        if self.ended:
            return None
        self.callers.append(caller)
        connection = ServedConnection()
        self.served.append(connection)
        connection.makeConnection(transport)
        return connection
