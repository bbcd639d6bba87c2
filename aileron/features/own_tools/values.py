"""Requests of an agent's own tools, and the answers to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import field, frozen

from aileron.model.streams import AnswerBody
from aileron.model.tool_claims import NO_CALLER, ToolCaller

from ._bodies import LongBody
from ._spool import BodySpool


@frozen
class ToolRequest:
    """One HTTP request of a tool, read strictly from a connection that was opened.

    The host of the C{CONNECT} request, the server name of TLS and the C{Host} header are equal.

    :ivar session_id: the session of the agent whose tool it is.
    :ivar connection: a number that tells connections of this daemon apart.
    :ivar host: the host in lower case, with its port unless that is 443.
    :ivar method: the method as it was sent, in upper case.
    :ivar target: path and query exactly as they were sent. It begins with a slash.
    :ivar headers: the end-to-end headers as pairs, in their order: names as sent, values without surrounding space.
        C{Host}, C{Content-Length} and C{Transfer-Encoding} and what C{Connection} names are left out.
    :ivar body: the whole content, without its transfer coding. Empty if the content is long.
    :ivar long: the content, if it is too long for the arguments of a run.
    :ivar spool: holds the long content, until it is stored or discarded.
    :ivar caller: the process that opened the connection. It is shown, and tells repetitions apart.
    :ivar services: the names of the services that the session opened at this host.
    """

    session_id: str
    connection: int
    host: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    caller: ToolCaller = NO_CALLER
    services: frozenset[str] = frozenset()
    long: LongBody | None = None
    spool: BodySpool | None = field(default=None, repr=False, eq=False)

    @property
    def query(self) -> str:
        """The query as it was sent, without the question mark, or an empty text."""
        return self.target.partition("?")[2]

    @property
    def first_label(self) -> str:
        """The first label of the host."""
        return self.host.partition(".")[0]


def _ignore(*_: object) -> None:
    return None


@frozen
class ToolAnswer:
    """The answer to a tool's request.

    :ivar reason: the reason phrase, in ASCII. Some tools show nothing else.
    :ivar headers: the end-to-end headers as pairs. The connection adds C{Content-Length}.
    :ivar delivered: called once all bytes were written to a connection that was still open.
    :ivar stream: the body of a long answer, which is passed on while it arrives, in place of C{body}, or None.
    :ivar length: the length of the long body, or None if it is not known.
    :ivar ended: called at the end of a long body, with the number of bytes passed on, and whether the body was cut.
    """

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = field(default=b"", repr=False)
    delivered: Callable[[], object] = field(default=_ignore, repr=False)
    stream: AnswerBody | None = field(default=None, repr=False)
    length: int | None = None
    ended: Callable[[int, bool], object] = field(default=_ignore, repr=False)


@frozen
class ToolService:
    """A connector whose hosts are opened for the tools of one session.

    :ivar name: the name by which the user asks for it, such as C{github}.
    :ivar connector: the connector's full name.
    :ivar hosts: the hosts in lower case, each with its port unless that is 443. One may begin with C{*.}.
    :ivar variables: the environment variables that tools want, with placeholders as values. No value is a secret.
    :ivar is_git: True if its tool is git.
    """

    name: str
    connector: str
    hosts: frozenset[str]
    variables: Mapping[str, str] = field(factory=dict)
    is_git: bool = False


class ToolDoor(Protocol):
    """The interface through which requests of tools enter the daemon."""

    def find_services(self, names: tuple[str, ...]) -> tuple[ToolService, ...]:
        """Return the services with these names. Each must have a credential now.

        :raises NotFound: if no connector with C{[own_tools]} has the name.
        :raises BindingRequired: if no credential is bound to it.
        """

    async def handle(self, request: ToolRequest) -> ToolAnswer:
        """Answer a request: send it if it reads, have it approved and sent if it writes, or refuse it.

        Cancelling stops the waiting only. A run that was created goes on, and its answer is kept.
        """
