"""The description of a foreign API. Readers of documents make it, and the writer of files makes files of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from attrs import field, frozen

from aileron.base.json import JSON
from aileron.model.connectors import WRITE

_MOST_NAMED = 250
PATH, QUERY, HEADER, BODY, GIVEN, ARGUMENT = "path", "query", "header", "body", "given", "argument"
"""The place of an operation's argument. C{BODY}: the member of the body to which its steps lead. C{GIVEN}: no place
of its own; other parts of the request refer to the argument. C{ARGUMENT}: an argument of an MCP tool, under its own
name at the server."""


@frozen
class ApiParameter:
    """One argument of an operation.

    :ivar name: the name of the action's input: C{a-z}, digits and C{_}.
    :ivar schema: a JSON Schema with the keywords that an input may have: no references, and always a C{type}.
    :ivar place: L{PATH}, L{QUERY}, L{HEADER}, L{BODY}, L{GIVEN} or L{ARGUMENT}.
    :ivar steps: the service's name of the argument; in a body, the path of names to it; empty for the whole body.
    :ivar description: the description for the model, not yet shortened or made visible.
    :ivar marks: texts about what could not be derived; each becomes a line C{# TODO(import): …}.
    """

    name: str
    schema: Mapping[str, JSON]
    place: str
    steps: tuple[str, ...]
    required: bool = True
    description: str = ""
    marks: tuple[str, ...] = ()

    def is_placed_like(self, other: ApiParameter) -> bool:
        """Return whether both arguments have the same place in the request. Header names are compared without case."""
        mine, others = ((each.place, each.steps) for each in (self, other))
        if self.place == HEADER:
            mine, others = ((place, tuple(map(str.lower, steps))) for place, steps in (mine, others))
        return mine == others


@frozen
class ApiOperation:
    """One operation of an API.

    :ivar name: the name in the connector file: C{a-z}, digits and C{_}.
    :ivar title: a few words, for the heading of its action.
    :ivar asked: whether a read needs approval because its response may contain a secret.
    :ivar method: the HTTP method; empty if the file describes no request.
    :ivar path: the path, with C{{name}} for each parameter, as a whole segment or next to literal text.
    :ivar body: the kind of the body, such as C{json}, C{form}, C{multipart} or C{graphql}; empty without a body.
    :ivar constant: constant members of the body: the path of names to the member, and its value.
    :ivar pages: the table C{pages}, if the read is paged.
    :ivar error: the table C{error}, if a failure can be recognised.
    :ivar scopes: the OAuth scopes that the operation needs.
    :ivar host: the name of one of the description's further hosts; empty for the host of the base URL.
    :ivar extra: further keys of the operation's table, such as C{tool} and C{pin}, constant C{headers}, or C{answer}.
    :ivar marks: texts about what could not be derived of the operation as a whole.
    :ivar refused: why the operation cannot be imported; empty if it can.
    """

    name: str
    title: str = ""
    description: str = ""
    effect: str = WRITE
    destructive: bool = True
    asked: bool = False
    method: str = ""
    path: str = ""
    parameters: tuple[ApiParameter, ...] = ()
    body: str = ""
    constant: tuple[tuple[tuple[str, ...], JSON], ...] = ()
    pages: Mapping[str, JSON] | None = None
    error: Mapping[str, JSON] | None = None
    scopes: tuple[str, ...] = ()
    host: str = ""
    extra: Mapping[str, JSON] = field(factory=dict)
    marks: tuple[str, ...] = ()
    refused: str = ""


@frozen
class ApiCredential:
    """The credential that an API requires.

    :ivar keys: the complete table C{[credential]}.
    :ivar marks: texts about what could not be derived.
    """

    keys: Mapping[str, JSON]
    marks: tuple[str, ...] = ()


@frozen
class ApiVariable:
    """A variable of the base URL, or of a setting of the credential."""

    name: str
    title: str
    pattern: str
    example: str
    default: str | None = None


@frozen
class ApiDescription:
    """The part of an API that is imported.

    :ivar name: the connector's name, such as C{local://stripe}.
    :ivar title: the API's own title.
    :ivar base_url: the base URL, with variables in braces; empty if the connector's kind has none or a binding sets it.
    :ivar operations: the chosen operations, refused ones included.
    :ivar kind: the kind of the connector.
    :ivar variables: the variables of the base URL.
    :ivar hosts: the base URLs of further hosts, by name.
    :ivar extra: further tables of the connector file, such as C{mcp}.
    :ivar marks: texts about what could not be derived of the API as a whole.
    """

    name: str
    title: str
    base_url: str
    operations: tuple[ApiOperation, ...]
    credential: ApiCredential | None = None
    kind: str = "http"
    variables: tuple[ApiVariable, ...] = ()
    hosts: Mapping[str, str] = field(factory=dict)
    extra: Mapping[str, Mapping[str, JSON]] = field(factory=dict)
    marks: tuple[str, ...] = ()


@frozen
class OperationSummary:
    """One row of the list from which a person chooses operations.

    :ivar name: the name that the operation gets in the connector file. C{--op} accepts C{name} and C{key}.
    :ivar key: the document's name of the operation.
    :ivar words: what the operation does, in one line.
    """

    name: str
    key: str
    method: str
    path: str
    effect: str
    words: str


def name_left_out(problem: str, names: Sequence[str]) -> Iterator[str]:
    """Yield texts that name everything left out for one reason, several texts if the names are many."""
    told = ""
    for name in names:
        if told and len(told) + len(name) > _MOST_NAMED:
            yield f"left out, because {problem}: {told}"
            told = ""
        told = f"{told}, {name}" if told else name
    yield f"left out, because {problem}: {told}"


class ApiReader(Protocol):
    """A recognised foreign document. Its operations are described in detail only when chosen."""

    @property
    def title(self) -> str:
        """Return the API's own title."""

    def list_operations(self) -> tuple[OperationSummary, ...]:
        """Return all operations, in the document's order."""

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the API with the operations C{chosen}.

        :param name: the connector's name.
        """


@frozen
class NotImported(ValueError):
    """Raised when a document cannot be imported.

    :ivar problem: a sentence with the reason.
    :ivar advice: what to do instead; empty if there is no advice.
    """

    problem: str
    advice: str = ""
