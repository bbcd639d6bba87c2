"""The interface between a session with an MCP server and the transport of its messages: HTTP, or a process's pipes."""

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

    C{sent}, of L{Flight}, is whether any byte of this request was sent; earlier messages do not count.

    :ivar answer: the response as received, with C{result} or C{error}, or None if there is none yet.
    :ivar failure: the reason why no response can come, if the wire knows one.
    :ivar left_out: the names of tools that a client must ignore because their headers would be invalid.
    :ivar withdrawn: whether the caller has stopped waiting. A message that is not yet being sent is then never sent.
    """

    answer: Message | None = None
    failure: Exception | None = None
    left_out: frozenset[str] = frozenset()
    withdrawn: bool = False


@define(eq=False)
class Refused(Exception):
    """The server refused a message with an HTTP status.

    :ivar lacks_scope: whether the reason is a missing scope of the credential.
    :ivar challenge: the C{WWW-Authenticate} header.
    :ivar location: the target of a redirect without its query, or an empty text.
    """

    status: int
    lacks_scope: bool = False
    challenge: str = ""
    location: str = ""


class Receiver(Protocol):
    """The object that is given the messages of an MCP server."""

    def receive(self, message: Message) -> None:
        """Process a message. A response to no request of the session is ignored."""

    def lost(self, failure: Exception) -> None:
        """Handle the end of the connection to the server, from which no further message will come."""


class Wire(Protocol):
    """The connection that carries the messages of one session, over HTTP or a process's streams.

    It runs in the reactor.

    It never sends a message twice, and never reconnects for a message that was sent.
    """

    def listen(self, receiver: Receiver) -> None:
        """Pass every message of the server to C{receiver}, in order. Called once, before any message is sent.

        A wire limits the bytes of one message and of all messages that arrive while a request waits.
        """

    def send(self, message: Message, headers: Mapping[str, str], delivery: Delivery) -> Deferred[None]:
        """Send C{message}, and update C{delivery}: C{sent} is set before the first byte is sent.

        :param headers: the headers that the protocol requires over HTTP; other wires ignore them.
        :return: a Deferred that fires with None when the message was sent. Over HTTP, it fires when the response to a
            request was received, or its stream ended. It fails with one of L{aileron.connectors._sending.FAILURES} or
            L{Refused}. If it is cancelled, an unsent message is never sent.
        """

    def close(self) -> None:
        """Close the connection and end all requests in progress at once. Idempotent.

        No message is received afterwards.
        """
