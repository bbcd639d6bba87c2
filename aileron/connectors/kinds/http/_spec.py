"""A declarative connector as it was read: its description, how each operation asks, and how it reads the answer."""

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

MOST_ATTACHED_BYTES = 6 * 1024 * 1024  # in base64 a run holds it up to three times
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
    """A rule by which a well-formed answer says that nothing was done.

    :ivar kind: the class of the fault.
    :ivar message: where the service's own word for it stands, if anywhere.
    """

    when: Condition | None = None
    kind: str = "external_api_error"
    message: Steps | None = None


@frozen
class HttpOperation:
    """One operation.

    :ivar segments: the path; a segment is either literal or exactly one reference.
    :ivar slashes: inputs of the path that may be of several segments.
    :ivar answer: C{json}, C{xml}, C{text}, C{file} or C{none}: how a success is read; C{auto}: as its type says.
    :ivar lists: elements of an XML answer that are arrays.
    :ivar result: which parts of a JSON or XML answer make the output; L{None}: all of it.
    :ivar refused: statuses that say that nothing happened, beside those that always do.
    :ivar follows: whether a redirect to the same origin is followed.
    :ivar lookup: how its effect is looked for, if it can be.
    :ivar answer_headers: which headers of the answer are part of the result, under which names.
    :ivar pages: how what it reads is divided; L{None}: it is not.
    :ivar place: the name of another host that it goes to; L{None}: the base URL's.
    :ivar optional_body: whether no body is sent if no input of it is given.
    :ivar joined: inputs whose parts stand behind each other in one text.
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
        """Tell whether it asks in GraphQL."""
        return self.body is not None and self.body.kind == "graphql"


@frozen
class HttpSpec(BaseSpec):
    """One connector file, read.

    :ivar private_network: whether it may be connected to loopback and private addresses.
    """

    operations: Mapping[str, HttpOperation]
    private_network: bool = False

    @property
    def reach(self) -> Reach:
        """The addresses that its requests may go to."""
        return Reach(self.description, self.private_network)

    def find_declared(self, name: str) -> HttpOperation:
        """Return an operation.

        :raises CapabilityDenied: there is no such operation.
        """
        self.find_operation(name)
        return self.operations[name]

    def check_own(self, request: Request) -> HttpOperation:
        """Return the operation of a request that the connector prepared itself, its host checked once more.

        :raises CapabilityDenied: it is another connector's, or was changed.
        """
        operation = self.find_declared(request.operation)
        self.reach.check_own(request, operation.operation, operation.method, operation.place)
        return operation
