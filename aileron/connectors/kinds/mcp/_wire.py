"""The seam between a session with an MCP server and what carries its messages: HTTP, or a process's pipes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from attrs import define
from twisted.internet.defer import Deferred

from aileron.base.bridge import ThreadBridge
from aileron.base.json import JSON
from aileron.connectors._answer import Flight

Message = Mapping[str, JSON]
"""A message of JSON-RPC, as it is on the wire."""

Bridged = Callable[[], Awaitable[ThreadBridge]]
"""Returns the bridge to the loop in which the SDK runs, which it starts if need be."""


@define(eq=False)
class Delivery(Flight):
    """The progress of one request of a session.

    C{sent}, of L{Flight}, is whether any byte of this very request left; of the messages before it nothing is told.

    :ivar answer: the response to it, as it came: with C{result} or C{error}; L{None}: none yet.
    :ivar failure: why none can come, where the wire says so.
    :ivar left_out: tools of a page that the protocol has a client ignore: their headers would be none.
    :ivar withdrawn: whether nobody waits any more: what has not begun to leave by then never does.
    """

    answer: Message | None = None
    failure: Exception | None = None
    left_out: frozenset[str] = frozenset()
    withdrawn: bool = False


@define(eq=False)
class Refused(Exception):
    """The server refused a message at the level of HTTP.

    :ivar lacks_scope: whether it says that the credential lacks a scope.
    :ivar challenge: its C{WWW-Authenticate}.
    :ivar location: where a redirect leads, without its query; empty: nowhere.
    """

    status: int
    lacks_scope: bool = False
    challenge: str = ""
    location: str = ""


class Receiver(Protocol):
    """Takes the server's messages: a session does."""

    def receive(self, message: Message) -> None:
        """Take one message, whatever it is; those that answer no request of the session are dropped."""

    def lost(self, failure: Exception) -> None:
        """Note that no further message comes, whatever was asked for."""


class Wire(Protocol):
    """Carries the messages of one session to its server and back.  It lives in the reactor.

    It never sends a message a second time, and never connects anew for one that was sent.
    """

    def listen(self, receiver: Receiver) -> None:
        """Hand every message of the server to C{receiver} from now on, in order.  Called once, before anything is sent.

        A wire bounds what it hands on: the bytes of one message, and of everything that comes while a request waits.
        """

    def send(self, message: Message, headers: Mapping[str, str], delivery: Delivery) -> Deferred[None]:
        """Send C{message}, and keep C{delivery} true to what happens: C{sent} is set before its first byte can leave.

        Fires when it was handed over. Over HTTP that is when a request's response was received, or its stream ended.
        Cancelling gives up what has not left, and no longer waits for what has.

        :param headers: what the protocol asks for where messages travel over HTTP; another wire ignores them.
        :return: C{None}, or a failure: one of L{aileron.connectors._sending.FAILURES}, or L{Refused}.
        """

    def close(self) -> None:
        """End it, with whatever is under way, at once.  Twice is safe.  Nothing is received afterwards."""
