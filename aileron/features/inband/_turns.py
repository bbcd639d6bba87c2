"""The words of in-band mode: what is offered, what a model called, what it is told, and what is remembered of it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.base.json import JSON
from aileron.model.errors import ExternalApiError

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
    :ivar completion: the id under which the gateway records the response; empty if it does not.
    """

    calls: tuple[ModelCall, ...] = ()
    mixed: bool = False
    completion: str = ""


@frozen
class Memory:
    """The part of a reply that was hidden from its client, to be put back into the history that it sends later.

    :ivar keys: by which it is found: identifiers in the client's history, unique at the provider.
    :ivar content: JSON, for the protocol that made it.
    """

    keys: tuple[str, ...]
    content: str
