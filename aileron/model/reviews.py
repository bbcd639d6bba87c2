"""Reviews: the data about a run that the operator sees before deciding.

The runner builds them, and a row stores them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from enum import StrEnum

from attrs import field, frozen

from aileron.base.converter import FALLBACK, Member, differ, from_json, to_json
from aileron.base.json import JSON, digest, strings_in

from .connectors import Request
from .people import Owner
from .vault import Binding


@frozen
class ReviewedAction:
    """The action that would run. C{source} is C{<directory>@<version>}, or empty if the action no longer exists."""

    name: str = ""
    version: str = ""
    source: str = ""


@frozen
class ReviewedArgument:
    """One argument of a reviewed run.

    :ivar label: the name shown to people.
    :ivar multiline: True if it is shown in several lines.
    """

    name: str
    label: str
    value: JSON
    multiline: bool = False


@frozen
class ReviewedBinding:
    """The parts of a step's binding that are shown to the person who decides and covered by the approval's digest.

    None of them is secret. If one changes before the step runs, the run needs a new approval.

    :ivar kind: the kind of the credential.
    :ivar connector: the connector that may use the credential.
    :ivar revision: a number that grows with each change of the binding.
    :ivar base_url: the base URL set by the binding, or None if the connector's file sets it.
    :ivar account: the account at the service to which the credential belongs, or None if it is unknown.
    :ivar owner: the account of Aileron whose agents alone use the credential, or None if it is shared.
    """

    name: str
    kind: str
    connector: str
    revision: int
    base_url: str | None
    account: str | None
    owner: Owner | None = None

    @classmethod
    def of(cls, binding: Binding) -> ReviewedBinding:
        """Return the parts of C{binding} that are shown to the person who decides."""
        return cls(
            name=binding.name,
            kind=binding.kind,
            connector=binding.connector,
            revision=binding.revision,
            base_url=binding.base_url,
            account=binding.account,
            owner=binding.owner,
        )


@frozen
class ReviewedRequest:
    """A request without its credential, as it will be sent.

    :ivar body: the body's text, or C{{"base64": …}} if it is not UTF-8, or C{{"parts": […]}} if it carries files.
    :ivar credential_header: the header that the credential fills, or None.
    :ivar credential_query: the query parameter that the credential fills, or None.
    :ivar credential_path: the path prefix with C{{key}} that the credential fills, or None.
    """

    connector: str
    operation: str
    effect: str
    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: JSON = None
    credential_header: str | None = None
    credential_query: str | None = None
    credential_path: str | None = None

    @classmethod
    def of(cls, request: Request) -> ReviewedRequest:
        """Return the parts of C{request} that are shown to the person who decides."""
        return cls(
            connector=request.connector,
            operation=request.operation,
            effect=request.effect,
            method=request.method,
            url=request.url,
            headers=request.headers,
            body=_show_body(request),
            credential_header=request.credential_header,
            credential_query=request.credential_query,
            credential_path=request.credential_path,
        )


def _show_body(request: Request) -> JSON:
    # guard of own tools: a stored body is shown, and covered by the digest that is approved
    #    -> features.own_tools.test_service.LongTests.test_sent, instead parts = request.parts
    parts = request.parts if request.stored is None else (request.stored,)
    return {"parts": [each.review() for each in parts]} if parts else _text(request.body)


def _text(body: bytes | None) -> JSON:
    """Return a body as text for people, or as base64 if it is not UTF-8, or None for no body."""
    if body is None:
        return None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}


@frozen
class ReviewedStep:
    """One step with everything that it uses.

    :ivar connector: the full name of the connector.
    :ivar request: the request, or None if it needs an earlier step's output or a value that the preview lacks.
    """

    id: str
    connector: str
    version: str
    content_hash: str
    operation: str
    base_url: str
    binding: ReviewedBinding | None
    request: ReviewedRequest | None


@frozen
class Card:
    """The inputs of one step in a familiar form, such as a message. It shows data that the digest covers.

    :ivar kind: a key of L{PRESENTATIONS}.
    :ivar parts: the parts in order, each with its values.
    """

    step: str
    kind: str
    parts: tuple[tuple[str, tuple[JSON, ...]], ...]

    def plainly_shown(self) -> Iterator[JSON]:
        """Yield the values that a reader can tell apart.

        The values of one part are shown joined by slashes. If a part has several values and one contains a slash, its
        values are left out.
        """
        for _, values in self.parts:
            if len(values) == 1 or not any("/" in text for text in strings_in(values)):
                yield from values


class PreviewStatus(StrEnum):
    """The state of a preview, which is what a service shows of the thing that would be changed.

    C{FETCHING}: the read has not ended. C{SHOWN}: the values are known. C{UNAVAILABLE}: the read failed.
    """

    FETCHING = "fetching"
    SHOWN = "shown"
    UNAVAILABLE = "unavailable"


@frozen
class Cut:
    """The size and the digest of a value of which only the beginning is shown.

    :ivar size: the size of the whole value in bytes.
    :ivar digest: the digest of the whole value.
    """

    size: int
    digest: str


@frozen
class PreviewField:
    """One value of a preview, as text.

    :ivar value: the text, or None if C{missing}.
    """

    label: str
    value: str | None
    missing: bool
    multiline: bool
    cut: Cut | None = None


IRREVERSIBLE = "Irreversible"
"""The label of a field of a preview that says what cannot be undone. If it has a value, the request is marked."""


@frozen
class PreviewFault:
    """The reason why a preview is unavailable.

    :ivar kind: the class of failure, as in L{Fault}.
    """

    kind: str
    message: str


@frozen
class Preview:
    """The thing that would be changed, as its service shows it: the result of one read, or the reason for its lack.

    :ivar carried: the values that steps use, by path. A step cannot use a value that is not in it.
    """

    status: PreviewStatus
    fields: tuple[PreviewField, ...] = ()
    fault: PreviewFault | None = None
    carried: Mapping[str, JSON] = field(factory=dict)

    def digest(self) -> str:
        """Return the digest of everything that the preview shows and carries. Of a fault, only the class is covered.

        :raises ValueError: if a value cannot be part of a digest.
        """
        failure = None if self.fault is None else self.fault.kind
        shown: JSON = [to_json(each) for each in self.fields]
        return digest({"status": self.status, "fields": shown, "carried": self.carried, "failure": failure})


NOT_YET = Preview(PreviewStatus.FETCHING)


@frozen
class ReviewedPreview:
    """The preview of a reviewed run, together with the read that fetches the preview.

    :ivar connector: the connector's name in the action, as C{operation} is the name of its operation.
    :ivar lacking: the reason why the run cannot be approved if a step needs a value that the preview lacks, else None.
    """

    connector: str
    operation: str
    shown: Preview
    read: ReviewedStep
    lacking: str | None = None


@frozen
class Review:
    """The review of a run: every argument, every request as it will be sent, and the preview.

    :ivar preview: the preview, or None if the action has none.
    :ivar title: one line that says what would be done, in the words of the connector's file, or empty. The digest does
        not cover the title, but covers all data that the title is written from.
    :ivar unread: the stored JSON of a review in a form that this version cannot parse. Then all other fields are empty.
    """

    action: ReviewedAction = field(factory=ReviewedAction)
    manifest_digest: str = ""
    arguments: tuple[ReviewedArgument, ...] = ()
    steps: tuple[ReviewedStep, ...] = ()
    preview: ReviewedPreview | None = None
    title: str = ""
    unread: Mapping[str, JSON] | None = None

    def order_arguments(self, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the arguments of the run in the order of the action's inputs, as the review lists them."""
        names = (*(each.name for each in self.arguments), *arguments)
        return {name: arguments[name] for name in names if name in arguments}

    @property
    def shown_preview(self) -> Preview:
        """The preview that was shown, for comparison, or L{NOT_YET} if none was shown or it cannot be parsed."""
        return NOT_YET if self.preview is None else self.preview.shown

    @property
    def may_have_preview(self) -> bool:
        """False if the action certainly has no preview, else True."""
        return self.preview is not None or self.unread is not None


def _read_preview(value: JSON) -> Preview:
    """Parse a stored preview.

    :raises ValueError: if it is not a preview, or a digest cannot cover it.
    """
    found = from_json(Preview, value)
    try:
        found.digest()
    except RecursionError:
        raise ValueError("is nested too deep") from None
    return found


differ(
    ReviewedRequest,
    credential_header=Member("credential"),
    credential_query=Member(optional=True),
    credential_path=Member(optional=True),
)
differ(ReviewedBinding, owner=Member(optional=True))
differ(Cut, size=Member("bytes"))
differ(PreviewField, cut=Member(optional=True))
differ(PreviewFault, kind=Member("class"))
differ(ReviewedPreview, shown=Member(inline=True, read=_read_preview))
differ(Review, arguments=Member("fields"), title=Member(optional=True), unread=FALLBACK)
