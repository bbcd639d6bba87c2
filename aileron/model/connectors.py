"""The declarations of a connector, the request it would send, and the outcome of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType

from attrs import evolve, field, frozen

from aileron.base.addresses import read_base_url, read_origin
from aileron.base.json import JSON, digest_of_bytes

from .faults import Fault
from .own_tools import ToolDeclaration
from .places import UrlTemplate, fill
from .vault import Scope

READ, WRITE = "read", "write"

FORWARD, FORWARD_READ = "forward", "forward_read"
"""The operations by which a connector sends requests of an agent's own tools: one that writes, and one that reads."""

_NONE: Mapping[str, str] = MappingProxyType({})
_ESCAPED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})

PRESENTATIONS: Mapping[str, tuple[str, ...]] = {
    "message": ("to", "text"),
    "mail": ("to", "cc", "bcc", "subject", "body"),
    "issue": ("repository", "number", "title", "body"),
    "event": ("title", "start", "end", "place", "attendees", "text"),
    "file": ("name", "folder", "content"),
    "delete": ("place", "name"),
    "command": ("directory", "command", "input"),
    "push": ("repository", "branch", "text"),
    "sql": ("database", "statement"),
    "request": ("to", "text"),
}
"""The ways to present an operation's inputs, and the parts of each in display order."""


@frozen
class Presentation:
    """A hint for showing an operation's inputs to a person.

    :ivar kind: a key of L{PRESENTATIONS}.
    :ivar parts: the inputs that make up each part, in order.
    :ivar titles: templates of a line that says what a request does, such as C{Delete ${in.branch}}. The first one whose
        inputs are all given is used.
    """

    kind: str
    parts: Mapping[str, tuple[str, ...]] = field(factory=dict)
    titles: tuple[str, ...] = ()


@frozen
class Operation:
    """One operation of a connector.

    :ivar effect: L{READ} or L{WRITE}.
    :ivar idempotent: True if the same request with the same effect key may be sent twice.
    :ivar timeout_seconds: the longest wait for an answer.
    :ivar precondition: the inputs that tie a write to the state that the preview showed (an etag, a message's id). Only
        these inputs may be filled from the preview.
    :ivar reconcilable: True if the connector can check whether an effect of this operation happened.
    :ivar destructive: True if a write may change or remove existing things, and not only add.
    :ivar irreversible: True if a change made by a write cannot be reversed.
    :ivar output_schema: the JSON Schema of its output, if declared.
    :ivar presentation: the presentation of its inputs, or None to show them plainly.
    :ivar scopes: the scopes that its credential needs, or empty if that is unknown.
    :ivar lookup: the connector's other operation that checks whether the effect happened, if there is one.
    :ivar needs_approval: the reason why the operation always needs an approval, as a clause, or empty if it does not.
    :ivar pin: the digest of the server's description when it was reviewed, or None if no server describes it.
    :ivar tools_only: True if only the requests of an agent's own tools may use it, and no call of an action.
    """

    name: str
    effect: str
    idempotent: bool
    description: str = ""
    timeout_seconds: float = 30.0
    precondition: tuple[str, ...] = ()
    reconcilable: bool = False
    destructive: bool = True
    output_schema: Mapping[str, JSON] | None = None
    presentation: Presentation | None = None
    scopes: tuple[str, ...] = ()
    lookup: str | None = None
    needs_approval: str = ""
    pin: str | None = None
    irreversible: bool = False
    tools_only: bool = False


@frozen
class CredentialNeed:
    """The credential that a connector needs, and its place in requests. C{format} contains C{{key}}.

    :ivar header: the header that carries the credential, or empty.
    :ivar settings: further settings of the credential's kind, see L{Scope}.
    """

    kind: str
    header: str
    format: str
    settings: Mapping[str, str] = field(factory=dict)

    @property
    def query(self) -> str | None:
        """The query parameter that carries the credential, or None."""
        return self.settings.get("query")

    @property
    def path(self) -> str | None:
        """The path prefix that contains the credential, with C{{key}} in its place, or None."""
        return self.settings.get("path")

    @property
    def readers(self) -> str:
        """The sentences that name the programs that can read the credential, or empty if only the service can."""
        if "api" in self.settings:
            return f"Aileron adds it to requests to {self.settings['api']}. The program cannot read it."
        return "The program and everything that it starts can read it." if "variable" in self.settings else ""

    @property
    def place(self) -> str:
        """The place of the credential in a request, as text for people."""
        if self.path is not None:
            return f"path {self.path}"
        if self.query is not None:
            return f"query parameter {self.query}"
        return f"header {self.header}" if self.header else "login"


@frozen
class ConnectorDescription:
    """The description of a connector.

    :ivar name: C{builtin://slack}, C{local://me/tracker}, …
    :ivar content_hash: C{sha256:…} of the content that would run.
    :ivar base_url: the default base URL, or None if a binding must set it.
    :ivar bindable: True if a binding may set another base URL: any, or one that matches C{template}.
    :ivar hosts: the allowed C{host:port}. Those of a template contain its variables in braces. One that begins with
        C{*.} stands for all hosts with one label more.
    :ivar template: the template of the base URL, if it has variables.
    :ivar places: the base URLs of other hosts, by the names that operations use.
    :ivar own_tools: the declarations for an agent's own command-line tools, or None if there are none.
    :ivar traced: whether requests of runs may have the header C{traceparent}.
    """

    name: str
    version: str
    content_hash: str
    base_url: str | None
    bindable: bool
    hosts: tuple[str, ...]
    operations: Mapping[str, Operation]
    credential: CredentialNeed | None = None
    template: UrlTemplate | None = None
    places: Mapping[str, str] = field(factory=dict)
    own_tools: ToolDeclaration | None = None
    traced: bool = False

    def find_tools(self, base_url: str | None) -> ToolDeclaration | None:
        """Return the declarations for own tools if the connector is used at C{base_url}, or None if there are none.

        If a binding has a base URL of its own, its host is in place of the default one's. It is left out if its path is
        another one, since the declared paths are not there. Variables have their values.

        :raises ValueError: if the base URL is invalid.
        """
        tools, default = self.own_tools, self.base_url
        if tools is not None and self.template is not None:
            return tools.fill(self._values(base_url or default or ""))
        if tools is None or not self.bindable or default is None or base_url is None:
            return tools
        before, after = read_base_url(default), read_base_url(base_url)
        host = after.origin.host_and_port.removesuffix(":443") if before.path == after.path else ""
        return tools.moved(before.origin.host_and_port.removesuffix(":443"), host)

    def find_presented(
        self, operation: Operation, inputs: Mapping[str, JSON]
    ) -> tuple[Presentation | None, Mapping[str, JSON]]:
        """Return how a request is presented to a person, and the inputs that are presented.

        A tool's request that was recognised as a declared operation is presented as that operation, with the inputs
        that were read back from it. A GraphQL mutation has the further input C{mutation}: the names of its fields. A
        request that publishes a package has the further inputs C{package}, its name, and C{version}. A request to AWS
        has C{call}: the service, the operation and the region.

        :param inputs: the inputs of C{operation}.
        """
        recognised = inputs.get("recognised") if operation.name == FORWARD and operation.tools_only else None
        if not isinstance(recognised, Mapping):
            return operation.presentation, inputs
        declared, shown = self.operations.get(str(recognised.get("operation", ""))), recognised.get("inputs", {})
        if declared is not None and declared.presentation is not None and isinstance(shown, Mapping):
            return declared.presentation, shown
        package = recognised.get("package")
        named = package if isinstance(package, Mapping) else {}
        further = {
            "mutation": recognised.get("fields"),
            "package": named.get("name"),
            "version": named.get("version"),
            "call": recognised.get("call"),
        }
        return operation.presentation, {**inputs, **{name: value for name, value in further.items() if value}}

    def scope(self, base_url: str, variables: Mapping[str, str] = _NONE) -> Scope | None:
        """Return the scope of the connector's credential at C{base_url}, or None if it needs no credential.

        If the template does not match the base URL, the variables remain unfilled, so the scope opens no credential.

        :param variables: the values of variables that are not in the base URL. A missing one has its default.
        """
        need = self.credential
        if need is None:
            return None
        unplaced = self.template.unplaced if self.template is not None else ()
        own = {each.name: variables.get(each.name, each.default) for each in unplaced}
        values = {**self._values(base_url), **{name: text for name, text in own.items() if text is not None}}
        hosts = tuple(fill(each, values) for each in self.hosts)
        settings = {name: fill(text, values) for name, text in need.settings.items()}
        return Scope(hosts, base_url, need.header, need.format, settings)

    def sealed_variables(self, sealed: Scope | None) -> Mapping[str, str]:
        """Return the values of the variables outside the base URL, read from the scope of an encrypted credential.

        If there is none, return none.
        """
        found: dict[str, str] = {}
        if self.template is None or self.credential is None or sealed is None:
            return found
        for name, text in self.credential.settings.items():
            with suppress(ValueError):  # the connector's setting has changed, so the scopes differ anyway
                found |= UrlTemplate(text, self.template.variables).read(sealed.settings.get(name, ""))
        return {each.name: found[each.name] for each in self.template.unplaced if each.name in found}

    def fill(self, base_url: str | None) -> ConnectorDescription:
        """Return the description as it is at C{base_url}, or at the default base URL: variables have their values.

        If the template does not match the base URL, the variables remain unfilled.

        :raises ValueError: if the base URL is invalid.
        """
        values, need = self._values(base_url or self.base_url or ""), self.credential
        settings = {} if need is None else {name: fill(text, values) for name, text in need.settings.items()}
        return evolve(
            self,
            hosts=tuple(fill(each, values) for each in self.hosts),
            credential=None if need is None else evolve(need, settings=settings),
            own_tools=self.find_tools(base_url),
        )

    def url_of(self, place: str | None, base_url: str) -> str:
        """Return the base URL of the host named C{place}, filled with the variables of C{base_url}.

        :param place: a key of C{places}, or None to return C{base_url} unchanged.
        """
        return base_url if place is None else fill(self.places[place], self._values(base_url))

    def base_url_problem(self, base_url: str) -> str | None:
        """Return why this base URL cannot be used, as the end of a sentence that begins with the URL, or None."""
        if self.template is None:
            declared = self.bindable or read_origin(base_url, ssh=True).host_and_port in self.hosts
            return None if declared else "must be on a host that the connector declares"
        try:
            self.template.values_of(base_url)
        except ValueError as error:
            return str(error)
        return None

    def _values(self, base_url: str) -> Mapping[str, str]:
        if self.template is None or self.base_url_problem(base_url) is not None:
            return {}
        return self.template.values_of(base_url)


@frozen
class UploadPart:
    """A part of a request body that carries files.

    :ivar name: the field's name, or empty if the part is the whole body.
    :ivar media_type: the file's type, or empty if it is a plain form field.
    """

    name: str
    content: bytes
    media_type: str = ""
    filename: str | None = None

    @property
    def head(self) -> bytes:
        """The part's header lines in C{multipart/form-data}, escaped as browsers do."""
        pairs = [("name", self.name), *([("filename", self.filename)] if self.filename is not None else [])]
        named = "".join(f'; {key}="{text.translate(_ESCAPED)}"' for key, text in pairs)
        kind = f"Content-Type: {self.media_type}\r\n" if self.media_type else ""
        return f"Content-Disposition: form-data{named}\r\n{kind}".encode()

    def review(self) -> dict[str, JSON]:
        """Return the part as shown for review: its size and digest, and its text if it is text."""
        shown: dict[str, JSON] = {"name": self.name, "filename": self.filename, "type": self.media_type}
        try:
            shown["text"] = self.content.decode("utf-8")  # regardless of its declared type
        except UnicodeDecodeError:
            shown["text"] = None
        more: dict[str, JSON] = {"size": len(self.content), "digest": digest_of_bytes(self.content)}
        return {**{key: text for key, text in shown.items() if text}, **more}


@frozen
class StoredBody:
    """A request body that is stored in a file, because it is too long for the arguments of a run.

    :ivar digest: the digest of its bytes, as C{sha256:<64 hex>}.
    :ivar size: the number of its bytes.
    :ivar summary: what else is shown of it, such as its beginning.
    """

    digest: str
    size: int
    summary: Mapping[str, JSON] = _NONE

    def review(self) -> dict[str, JSON]:
        """Return the body as shown for review."""
        return {**self.summary, "size": self.size, "digest": self.digest}


@frozen
class Request:
    """A request without its credential: pure data, shown to the operator and covered by the digest.

    :ivar headers: names and values in order, without the credential's header.
    :ivar credential_header: the header that the credential fills, or None.
    :ivar credential_query: the query parameter that the credential fills, or None.
    :ivar parts: the parts of a body that carries files.
    :ivar credential_path: the path prefix with C{{key}} that the credential fills, or None.
    :ivar stored: the body, if it is stored in a file. Then C{body} is None.
    """

    connector: str
    operation: str
    effect: str
    idempotent: bool
    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    credential_header: str | None = None
    credential_query: str | None = None
    parts: tuple[UploadPart, ...] = ()
    credential_path: str | None = None
    stored: StoredBody | None = None


@frozen
class Outcome:
    """The outcome of one attempt: either a success or a C{fault}.

    :ivar output: the operation's result, if it succeeded.
    :ivar fault: the failure, or None.
    :ivar sent: True if the first byte of the request was passed to the transport.
    :ivar classified: True if the connector's declaration defines the meaning of this answer. If a request was C{sent},
        has a C{fault} and is not classified, its effect may have happened.
    :ivar retry_after_seconds: the delay that the service asked for, or None.
    :ivar status: the HTTP status, or None.
    :ivar notes: further details to record. C{echoed}: the kinds of forms in which the secret came back
        (C{plain url json html hex base64 base64url split}), each of which was replaced. C{more}: a read in pages was
        not completed. C{refused}: a request of the server that was refused. C{api}: counts of its requests to its API.
        C{answer}: the service's answer to a failed attempt (C{text} and its C{type}), without
        secrets and truncated.
    """

    output: JSON = None
    fault: Fault | None = None
    sent: bool = True
    classified: bool = True
    retry_after_seconds: float | None = None
    status: int | None = None
    notes: Mapping[str, JSON] = field(factory=dict)

    @property
    def kept_answer(self) -> tuple[str | None, str | None]:
        """The service's answer to a failed attempt and its media type, for the operator, or (None, None)."""
        answer = self.notes.get("answer")
        if self.fault is None or not isinstance(answer, Mapping):
            return None, None
        return str(answer["text"]), str(answer["type"])


@frozen
class Sought:
    """A search for an effect whose outcome is unknown: all that a connector needs to find it at the service.

    :ivar inputs: the operation's inputs from which its request was built.
    :ivar effect_key: the effect key in the request.
    :ivar first_at: when the first attempt started.
    :ivar last_at: when the last attempt was abandoned.
    """

    operation: str
    inputs: Mapping[str, JSON]
    base_url: str
    effect_key: str
    first_at: datetime
    last_at: datetime


@frozen
class Finding:
    """The result of a search for an effect whose outcome is unknown.

    :ivar happened: True if the effect was found, False if it certainly did not happen, or None if the search could not
        decide.
    :ivar output: the operation's result, as far as the search found it.
    :ivar fault: the failure of the search, if it failed.
    :ivar notes: further details to record. C{matches}: the number of effects found if more than one. C{echoed}: as in
        L{Outcome}.
    """

    happened: bool | None
    output: JSON = None
    fault: Fault | None = None
    notes: Mapping[str, JSON] = field(factory=dict)
