"""A foreign API as it is imported: what its readers find out, and what the writer of files makes files of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from attrs import field, frozen

from aileron.base.json import JSON
from aileron.model.connectors import WRITE

_MOST_NAMED = 250
PATH, QUERY, HEADER, BODY, GIVEN, ARGUMENT = "path", "query", "header", "body", "given", "argument"
"""Where an argument of an operation goes; C{BODY} with the names that lead to it, C{GIVEN} to no part of a request that
the connector file describes, and C{ARGUMENT} to none either, but under the name that an MCP server has for it."""


@frozen
class ApiParameter:
    """One argument of an operation.

    :ivar name: of the action's input: C{a-z}, digits and C{_}.
    :ivar schema: a JSON Schema of the keywords that an input may have: no references, and a C{type} of its own.
    :ivar place: L{PATH}, L{QUERY}, L{HEADER}, L{BODY}, L{GIVEN} or L{ARGUMENT}.
    :ivar steps: what the service calls it: one name, or in a body the names that lead to it; none: the whole body.
    :ivar description: for the model, not yet cut or made visible.
    :ivar marks: what could not be derived of it; each becomes a line C{# TODO(import): …}.
    """

    name: str
    schema: Mapping[str, JSON]
    place: str
    steps: tuple[str, ...]
    required: bool = True
    description: str = ""
    marks: tuple[str, ...] = ()

    def is_placed_like(self, other: ApiParameter) -> bool:
        """Return whether only one of two arguments would reach the request. Names of headers are equal in any case."""
        mine, others = ((each.place, each.steps) for each in (self, other))
        if self.place == HEADER:
            mine, others = ((place, tuple(map(str.lower, steps))) for place, steps in (mine, others))
        return mine == others


@frozen
class ApiOperation:
    """One operation of an API.

    :ivar name: in the connector file: C{a-z}, digits and C{_}.
    :ivar title: a few words, for the heading of its action.
    :ivar asked: whether a person is asked although it only reads, as its answer may hold a secret.
    :ivar method: of HTTP; empty: the operation has no request that the file describes.
    :ivar path: with C{{name}} where a parameter stands, alone in its segment or beside literal text.
    :ivar body: C{json}, C{form}, C{multipart} or C{graphql}, if parameters have their place in it.
    :ivar constant: what is in the body beside them: names that lead there, and the value.
    :ivar pages: the table C{pages}, if the read is paged.
    :ivar error: the table C{error}, if a failure can be recognised.
    :ivar scopes: of OAuth that it needs.
    :ivar host: the name of one of the description's other hosts, if it goes to one.
    :ivar extra: further keys of its table, such as C{tool} and C{pin}, C{headers} that are the same in every request,
        or C{answer}.
    :ivar marks: what could not be derived of it as a whole.
    :ivar refused: why it cannot be imported; empty: it can.
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
    """The credential that an API asks for.

    :ivar keys: the table C{[credential]}, whole.
    :ivar marks: what could not be derived of it.
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
    """An API, as far as it is imported.

    :ivar name: of the connector, such as C{local://stripe}.
    :ivar title: what the API calls itself.
    :ivar base_url: with variables in braces; empty: the kind has none, or of HTTP a binding says it.
    :ivar operations: those that were chosen, refused ones among them.
    :ivar kind: of connector.
    :ivar variables: of the base URL.
    :ivar hosts: base URLs of further hosts, by name.
    :ivar extra: further tables of the file, such as C{mcp}.
    :ivar marks: what could not be derived of it as a whole.
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
    """An operation in a list of hundreds: what a person picks it by.

    :ivar name: as it will be called in the connector file.
    :ivar key: as the document calls it; both can be said after C{--op}.
    :ivar words: what it does, in a line.
    """

    name: str
    key: str
    method: str
    path: str
    effect: str
    words: str


def name_left_out(problem: str, names: Sequence[str]) -> Iterator[str]:
    """Write the marks of what is left out for one reason; all names are told, if need be in several."""
    told = ""
    for name in names:
        if told and len(told) + len(name) > _MOST_NAMED:
            yield f"left out, because {problem}: {told}"
            told = ""
        told = f"{told}, {name}" if told else name
    yield f"left out, because {problem}: {told}"


class ApiReader(Protocol):
    """A foreign document that was recognised and read; its operations are looked into when they are wanted."""

    @property
    def title(self) -> str:
        """Return what the API calls itself."""

    def list_operations(self) -> tuple[OperationSummary, ...]:
        """List all operations, in the document's order."""

    def describe(self, name: str, chosen: tuple[OperationSummary, ...]) -> ApiDescription:
        """Describe the API with the operations C{chosen}.

        :param name: of the connector.
        """


@frozen
class NotImported(ValueError):
    """A document that is not imported.

    :ivar problem: a sentence that says why.
    :ivar advice: what to do instead; may be empty.
    """

    problem: str
    advice: str = ""
