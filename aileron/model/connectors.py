"""The declarations of a connector, the request it would send, and the outcome of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType

from attrs import field, frozen

from aileron.base.addresses import read_origin
from aileron.base.json import JSON, digest_of_bytes

from .faults import Fault
from .places import UrlTemplate, fill
from .vault import Scope

READ, WRITE = "read", "write"

_NONE: Mapping[str, str] = MappingProxyType({})
_ESCAPED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})

PRESENTATIONS: Mapping[str, tuple[str, ...]] = {
    "message": ("to", "text"),
    "mail": ("to", "cc", "bcc", "subject", "body"),
    "issue": ("repository", "number", "title", "body"),
    "event": ("title", "start", "end", "place", "attendees", "text"),
    "file": ("name", "folder", "content"),
}
"""What an operation's inputs can be shown as, and the parts of each, in the order in which they are shown."""


@frozen
class Presentation:
    """A hint by which a person recognises what an operation is given.

    :ivar kind: of L{PRESENTATIONS}.
    :ivar parts: by part the inputs that it is made of, one behind the other.
    """

    kind: str
    parts: Mapping[str, tuple[str, ...]]


@frozen
class Operation:
    """One thing a connector can do.

    :ivar effect: L{READ} or L{WRITE}.
    :ivar idempotent: whether the same request with the same effect key may be sent twice.
    :ivar timeout_seconds: how long an answer is waited for.
    :ivar precondition: inputs that tie a write to what was shown before it (an etag, a message's id): they, and no
        others, may be filled from the preview.
    :ivar reconcilable: whether the connector can look whether such an effect happened.
    :ivar destructive: whether it may change or remove what was there; else it only adds.  Counts for writes.
    :ivar output_schema: JSON Schema of its output, where it is declared.
    :ivar presentation: as what its inputs are shown; L{None}: as they are.
    :ivar scopes: that its credential must have been given, where the service has such; empty: nothing is known.
    :ivar lookup: the operation that looks whether it happened, where that is another of the connector's.
    :ivar needs_approval: why it is done only where an approval comes before it, in a clause; empty: it need not.
    :ivar pin: the digest of how its server described it when it was reviewed; L{None}: no server describes it.
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


@frozen
class CredentialNeed:
    """The credential that a connector wants, and where it goes; C{format} contains C{{key}}.

    :ivar header: empty: no header carries it.
    :ivar settings: as of L{Scope}.
    """

    kind: str
    header: str
    format: str
    settings: Mapping[str, str] = field(factory=dict)

    @property
    def query(self) -> str | None:
        """The query parameter that carries it, if one does."""
        return self.settings.get("query")

    @property
    def path(self) -> str | None:
        """The beginning of the path that it fills, with C{{key}} in it, if it does."""
        return self.settings.get("path")

    @property
    def readers(self) -> str:
        """Those who can read it, in sentences, where it is for a program; empty: nobody but the service."""
        if "api" in self.settings:
            return f"Aileron adds it to requests to {self.settings['api']}. The program cannot read it."
        return "The program and everything that it starts can read it." if "variable" in self.settings else ""

    @property
    def place(self) -> str:
        """Its place in a request, in words."""
        if self.path is not None:
            return f"path {self.path}"
        if self.query is not None:
            return f"query parameter {self.query}"
        return f"header {self.header}" if self.header else "login"


@frozen
class ConnectorDescription:
    """The description of a connector, without running it.

    :ivar name: C{builtin://slack}, C{local://me/tracker}, …
    :ivar content_hash: C{sha256:…} of the content that would run.
    :ivar base_url: where it talks to unless a binding says otherwise; L{None}: a binding must say.
    :ivar bindable: whether a binding may choose another base URL: any, or one of C{template}.
    :ivar hosts: C{host:port} that may be talked to; of a template with its variables in braces.
    :ivar template: what the base URL is made of, where it has variables.
    :ivar places: the base URLs of other hosts, by the names that operations know them by.
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

    def scope(self, base_url: str, variables: Mapping[str, str] = _NONE) -> Scope | None:
        """Return where its credential may go when it talks to C{base_url}; L{None}: it needs none.

        A base URL that its template does not make leaves the variables as they stand, and so nothing that opens.

        :param variables: those that are not in the base URL; of one that is left out its default counts.
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
        """Return the variables that are not in the base URL, as they are in what a credential was sealed for."""
        found: dict[str, str] = {}
        if self.template is None or self.credential is None or sealed is None:
            return found
        for name, text in self.credential.settings.items():
            with suppress(ValueError):  # the connector has another setting now; what is asked for then differs anyway
                found |= UrlTemplate(text, self.template.variables).read(sealed.settings.get(name, ""))
        return {each.name: found[each.name] for each in self.template.unplaced if each.name in found}

    def url_of(self, place: str | None, base_url: str) -> str:
        """Return the base URL of one of its hosts, with the variables as in C{base_url}; L{None}: that itself."""
        return base_url if place is None else fill(self.places[place], self._values(base_url))

    def base_url_problem(self, base_url: str) -> str | None:
        """Tell why it cannot talk there, as the end of a sentence that begins with the base URL."""
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
    """A part of a body that carries files.

    :ivar name: of the field; empty: the part is the whole body.
    :ivar media_type: empty: it is a field of a form, and no file.
    """

    name: str
    content: bytes
    media_type: str = ""
    filename: str | None = None

    @property
    def head(self) -> bytes:
        """The lines before its content in C{multipart/form-data}, as browsers escape them."""
        pairs = [("name", self.name), *([("filename", self.filename)] if self.filename is not None else [])]
        named = "".join(f'; {key}="{text.translate(_ESCAPED)}"' for key, text in pairs)
        kind = f"Content-Type: {self.media_type}\r\n" if self.media_type else ""
        return f"Content-Disposition: form-data{named}\r\n{kind}".encode()

    def review(self) -> dict[str, JSON]:
        """Return what is shown of it: its text where it is one, and size and digest in any case."""
        shown: dict[str, JSON] = {"name": self.name, "filename": self.filename, "type": self.media_type}
        try:
            shown["text"] = self.content.decode("utf-8")  # whatever its type says
        except UnicodeDecodeError:
            shown["text"] = None
        more: dict[str, JSON] = {"size": len(self.content), "digest": digest_of_bytes(self.content)}
        return {**{key: text for key, text in shown.items() if text}, **more}


@frozen
class Request:
    """A request as it will be built, but for the credential: pure data, shown to the operator and bound by the digest.

    :ivar headers: name and value, in order, without the credential's.
    :ivar credential_header: the header that the credential will fill, or L{None}: none.
    :ivar credential_query: the query parameter that it will fill, or L{None}: none.
    :ivar parts: of which the body is made, where it carries files.
    :ivar credential_path: what it will put in front of the path, with C{{key}} in it, or L{None}: nothing.
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


@frozen
class Outcome:
    """The outcome of one attempt. Exactly one of C{fault} and success.

    :ivar output: the operation's result, where it succeeded.
    :ivar fault: what went wrong, else L{None}.
    :ivar sent: whether the transport was handed the first byte of the request.
    :ivar classified: whether the connector's declaration says what this answer means (a refused port is not an
        answer: C{sent} is false).  A fault that was C{sent} and is not classified may have happened.
    :ivar retry_after_seconds: what the service asked for, if it did.
    :ivar status: the HTTP status, if one came.
    :ivar notes: what else is worth recording; C{echoed}: the kinds of forms in which the secret came back
        (C{plain url json html hex base64 base64url split}), each place of which was replaced; C{more}: that a read in
        pages did not come to its end; C{refused}: what a server asked for meanwhile and did not get; C{api}: counts of
        its requests to its API; C{answer}: of a fault, what the service answered (C{text} and its C{type}), without
        secrets and cut.
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
        """The answer of the service and its media type, for the operator to read; both None for a success."""
        answer = self.notes.get("answer")
        if self.fault is None or not isinstance(answer, Mapping):
            return None, None
        return str(answer["text"]), str(answer["type"])


@frozen
class Sought:
    """An effect whose outcome is unknown, as it is looked for.

    :ivar inputs: of the operation, as its request was built from them.
    :ivar effect_key: which the request carried.
    :ivar first_at: when it was tried first.
    :ivar last_at: when the last attempt was given up.
    """

    operation: str
    inputs: Mapping[str, JSON]
    base_url: str
    effect_key: str
    first_at: datetime
    last_at: datetime


@frozen
class Finding:
    """The result of a look for an effect whose outcome is unknown.

    :ivar happened: C{True}: it is there; C{False}: it is certain that it did not happen; L{None}: nobody can say yet.
    :ivar output: the operation's result, as far as the look gives it, where it happened.
    :ivar fault: why nobody can say, where something went wrong.
    :ivar notes: what else is worth recording; C{matches}: how many were found, where it is more than one; C{echoed}
        as of L{Outcome}.
    """

    happened: bool | None
    output: JSON = None
    fault: Fault | None = None
    notes: Mapping[str, JSON] = field(factory=dict)
