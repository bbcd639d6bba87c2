"""The values of in-band mode: offered tools, calls of the model, their results, and hidden parts of replies."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.base.json import JSON
from aileron.model.errors import ExternalApiError

MOST_ARGUMENTS = 2**20
"""The most characters of one call's arguments."""

MOST_CALLS = 128
"""The most calls of our tools in one response."""

MOST_HELD = 16 * 2**20
"""The most bytes held of one reply: an incomplete event, and all turns so far."""


class BrokenReply(ExternalApiError):
    """The error for a provider's reply that ended early or is malformed, so that the client's reply is incomplete."""


@frozen
class OfferedTool:
    """An action offered to the model as a tool.

    :ivar name: the tool's own name. If the client has a tool of this name, the model sees another name.
    """

    name: str
    description: str
    input_schema: Mapping[str, JSON]


@frozen
class ModelCall:
    """A call of one of our tools by the model.

    :ivar id: the provider's id, unique in its reply.
    :ivar name: the name of the L{OfferedTool}.
    :ivar arguments: the model's arguments if they are a JSON object, else empty.
    :ivar problem: the reason why the call cannot be run, as an error text for the model, or empty if it can be run.
    """

    id: str
    name: str
    arguments: Mapping[str, JSON]
    problem: str = ""


@frozen
class CallResult:
    """The result of a call, as the model reads it.

    :ivar id: the id of the L{ModelCall}.
    """

    id: str
    text: str
    is_error: bool = False


@frozen
class Turn:
    """One complete response of the provider.

    :ivar calls: the calls of our tools to run, in order. If empty, the reply to the client is finished.
    :ivar mixed: True if the client also got calls of its own tools. Then the client sends the next request.
    :ivar completion: the id of the gateway's record of the response, or empty if there is none.
    """

    calls: tuple[ModelCall, ...] = ()
    mixed: bool = False
    completion: str = ""


@frozen
class Memory:
    """The hidden part of a reply, restored into the client's next request.

    :ivar keys: the keys by which the memory is found: identifiers in the client's history, unique at the provider.
    :ivar content: the hidden part as JSON, in the form of its protocol.
    """

    keys: tuple[str, ...]
    content: str
