"""The contract of in-band mode's protocols: what is offered, what a model called, and how a reply is carried on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen
from zope.interface import Attribute, Interface

from aileron.errors import ExternalApiError
from aileron.values import JSON

MOST_ARGUMENTS = 2**20
"""Most bytes of one call's arguments."""

MOST_CALLS = 128
"""Most calls of our tools in one response."""

MOST_HELD = 16 * 2**20
"""Most bytes that are kept of one reply: an event that is not complete, and all turns so far."""


class BrokenReply(ExternalApiError):
    """The provider's reply ended early, or is none: what the client has so far is not complete."""


@frozen
class OfferedTool:
    """An action as it is offered to the model.

    :ivar name: the tool's own name; the model may see another, where the client has a tool of this name.
    """

    name: str
    description: str
    input_schema: Mapping[str, JSON]


@frozen
class ModelCall:
    """A call of one of our tools, as the model made it.

    :ivar id: the provider's, unique in its reply.
    :ivar name: the name of the L{OfferedTool}.
    :ivar arguments: what the model wrote, when it is a JSON object; else empty.
    :ivar problem: why it cannot be run, for the model to read; empty: it can.  Its result is this text, as an error.
    """

    id: str
    name: str
    arguments: Mapping[str, JSON]
    problem: str = ""


@frozen
class CallResult:
    """The result of a call, as the model reads it.

    :ivar id: of the L{ModelCall}.
    """

    id: str
    text: str
    is_error: bool = False


@frozen
class Turn:
    """One response of the provider, when it is complete.

    :ivar calls: those of our tools, to be run, in order.  None: the reply is finished.
    :ivar mixed: whether the client was given calls of its own as well, so that it must answer next.
    """

    calls: tuple[ModelCall, ...] = ()
    mixed: bool = False


@frozen
class Memory:
    """The part of a reply that was hidden from its client, to be put back into the history that it sends later.

    :ivar keys: by which it is found: identifiers in the client's history, unique at the provider.
    :ivar content: JSON, for the protocol that made it.
    """

    keys: tuple[str, ...]
    content: str


class IExchange(Interface):
    """One request of a client, from its body to the end of the reply, over several requests to the provider.

    A server calls, in this order: send L{body}; L{feed} for each piece of the answer; L{end}.  While there are calls
    it runs them, calls L{answer}, and unless the turn is mixed begins again with the new L{body}.  At last it stores
    L{memory} if there is one, and writes what L{finish} returns.  At any time it may write L{keep_alive}, and end the
    reply with L{fail}.  It has no clock, no sockets and no state outside itself.
    """

    streams = Attribute("Whether the client reads events; else an answer is one document, and feed() returns nothing.")
    body = Attribute("The bytes of the next request to the provider.")
    warnings = Attribute("What is to be put on record: texts without content of the client's beyond names of tools.")

    def feed(data: bytes) -> bytes:
        """Take a piece of a successful answer's body, as it came; return what the client is sent now.

        :raises BrokenReply: it is not what this protocol says, or too much is held.
        """

    def end() -> Turn:
        """Take the end of the answer's body.

        :raises BrokenReply: the answer is not complete.
        """

    def answer(results: Sequence[CallResult], *, last: bool = False) -> None:
        """Take the results of the turn's calls, one for each, in any order; C{body} is then the next request.

        :param last: offer our tools no more.
        """

    def memory() -> Memory | None:
        """Return what has to be kept for this client's next request; call it after the last L{answer}."""

    def finish() -> bytes:
        """Return the end of the client's response: the last events, or the whole document."""

    def fail(message: str, status: int = 502) -> bytes:
        """Return what ends the response visibly: the protocol's error event, or its error document.

        :param status: of HTTP, for the error's type; after the first byte no client sees it itself.
        """

    def keep_alive() -> bytes:
        """Return an event that says nothing; empty where there are no events."""


class IRequest(Interface):
    """A client's request, read once."""

    keys = Attribute("Keys of all that the store may remember of this history: L{Memory.keys} of earlier replies.")

    def open(offered: Sequence[OfferedTool], memories: Sequence[Memory] = ()) -> IExchange:
        """Offer our tools beside the client's own, and put back into the history what was hidden.

        :param memories: those found by L{keys}, each once.
        :raises InvalidRequest: this request asks for what in-band mode has not.
        """


class IProtocol(Interface):
    """A provider's protocol."""

    def read(body: bytes) -> IRequest:
        """Read a request's body, which has no content coding.

        :raises InvalidRequest: it is no JSON object.
        """

    def error(message: str, status: int) -> bytes:
        """Write an error document of this protocol."""
