"""The specification of an HTTP connector: its description, and the requests and responses of its operations."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from aileron.connectors._answer import DEFAULT_MAX_RESPONSE_BYTES
from aileron.connectors._reach import Reach
from aileron.connectors._spec import BaseSpec
from aileron.connectors._template import Template
from aileron.model.connectors import Operation, Request

from ._joined import JoinedInput
from ._lookup import Lookup
from ._pages import Pages
from ._result import Parts
from ._when import Condition, Steps

MOST_ATTACHED_BYTES = 6 * 1024 * 1024  # a run stores up to three copies in base64
DEFAULT_TIMEOUT_SECONDS = 30.0
MOST_TIMEOUT_SECONDS = 300.0


@frozen
class RequestBody:
    """The body of a request, as the file declares it.

    :ivar kind: C{json}, C{graphql}, C{form}, C{text}, C{mail}, C{multipart} or C{file}.
    """

    kind: str
    template: Template


@frozen
class ErrorRule:
    """The rule by which a response with status 2xx is a failure in which nothing was done.

    :ivar when: the condition that such a response meets, or None if there is no rule.
    :ivar kind: the class of the fault.
    :ivar message: the path of the service's error code, or None.
    """

    when: Condition | None = None
    kind: str = "external_api_error"
    message: Steps | None = None


@frozen
class HttpOperation:
    """One operation.

    :ivar segments: the path. Each segment consists of encoded text and references.
    :ivar slashes: inputs of the path that may have several segments.
    :ivar answer: the form of a success: C{json}, C{xml}, C{text}, C{file}, C{none}, or C{auto} by its media type.
    :ivar lists: elements of an XML response that are arrays.
    :ivar result: the parts of the response that make the output, or None for all of it.
    :ivar refused: further statuses that mean that nothing happened.
    :ivar follows: whether a redirect to the same origin is followed.
    :ivar lookup: the search for its effect, or None.
    :ivar answer_headers: headers of the response that are part of the result, by name in the result.
    :ivar pages: its pagination, or None.
    :ivar place: the name of another host, or None for the base URL's.
    :ivar optional_body: whether no body is sent if no input of it is given.
    :ivar joined: inputs whose parts are joined into one text.
    """

    operation: Operation
    method: str
    segments: tuple[str, ...]
    query: Mapping[str, Template] = field(factory=dict)
    headers: Mapping[str, str] = field(factory=dict)
    body: RequestBody | None = None
    answer: str = "json"
    error: ErrorRule = field(factory=ErrorRule)
    result: Parts | None = None
    refused: frozenset[int] = frozenset()
    follows: bool = False
    max_response_bytes: int = DEFAULT_MAX_RESPONSE_BYTES
    inputs: frozenset[str] = frozenset()
    lookup: Lookup | None = None
    answer_headers: Mapping[str, str] = field(factory=dict)
    pages: Pages | None = None
    place: str | None = None
    slashes: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    optional_body: bool = False
    joined: Mapping[str, JoinedInput] = field(factory=dict)

    @property
    def is_graphql(self) -> bool:
        """Return whether the operation uses GraphQL."""
        return self.body is not None and self.body.kind == "graphql"


@frozen
class HttpSpec(BaseSpec):
    """The parsed connector file.

    :ivar private_network: whether loopback and private addresses are permitted.
    :ivar forwarding: the operations that send requests of an agent's own tools, if the file has C{[own_tools]}.
    """

    operations: Mapping[str, HttpOperation]
    private_network: bool = False
    forwarding: Mapping[str, HttpOperation] = field(factory=dict)

    @property
    def reach(self) -> Reach:
        """The addresses to which the connector may send requests."""
        return Reach(self.description, self.private_network)

    def find_declared(self, name: str) -> HttpOperation:
        """Return an operation.

        :raises CapabilityDenied: if there is no such operation.
        """
        self.find_operation(name)
        return self.operations.get(name) or self.forwarding[name]

    def check_own(self, request: Request) -> HttpOperation:
        """Return the operation of a request that the connector prepared itself, after checking its host.

        :raises CapabilityDenied: if the operation is unknown, or the request is of another connector, was changed, or
            has a host that is not declared.
        """
        operation = self.find_declared(request.operation)
        if request.operation in self.forwarding:
            self.reach.check_own(
                request, operation.operation, request.method, None, *self.description.places, listed=True
            )
        else:
            self.reach.check_own(request, operation.operation, operation.method, operation.place)
        return operation
