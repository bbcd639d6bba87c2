"""Reviews: what the operator is shown of a run before they decide, as the runner works it out and a row keeps it."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from enum import StrEnum

from attrs import field, frozen

from aileron.base.converter import FALLBACK, Member, differ, from_json, to_json
from aileron.base.json import JSON, digest, strings_in

from .connectors import Request
from .vault import Binding


@frozen
class ReviewedAction:
    """The action that would run; C{source} is C{<directory>@<version>}, or empty where it is gone."""

    name: str = ""
    version: str = ""
    source: str = ""


@frozen
class ReviewedArgument:
    """One argument.

    :ivar label: the name that a person reads.
    :ivar multiline: whether a person writes it in several lines.
    """

    name: str
    label: str
    value: JSON
    multiline: bool = False


@frozen
class ReviewedBinding:
    """A binding as far as a decision rests on it: whose credential it is, and nothing that a rebinding keeps."""

    name: str
    kind: str
    connector: str
    revision: int
    base_url: str | None
    account: str | None

    @classmethod
    def of(cls, binding: Binding) -> ReviewedBinding:
        """Take of C{binding} what is reviewed."""
        return cls(
            name=binding.name,
            kind=binding.kind,
            connector=binding.connector,
            revision=binding.revision,
            base_url=binding.base_url,
            account=binding.account,
        )


@frozen
class ReviewedRequest:
    """A request as it will leave, but for the credential.

    :ivar body: its text; where it is no UTF-8, C{{"base64": …}}; where it carries files, C{{"parts": […]}}.
    :ivar credential_header: the header that the credential will fill, or L{None}: none.
    :ivar credential_query: the query parameter that it will fill, or L{None}: none.
    :ivar credential_path: what it will put in front of the path, with C{{key}} in it, or L{None}: nothing.
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
        """Take of C{request} what is reviewed."""
        return cls(
            connector=request.connector,
            operation=request.operation,
            effect=request.effect,
            method=request.method,
            url=request.url,
            headers=request.headers,
            body={"parts": [each.review() for each in request.parts]} if request.parts else _text(request.body),
            credential_header=request.credential_header,
            credential_query=request.credential_query,
            credential_path=request.credential_path,
        )


def _text(body: bytes | None) -> JSON:
    """Write a body for the eyes of people: what is no UTF-8, as base64."""
    if body is None:
        return None
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}


@frozen
class ReviewedStep:
    """One step with everything that it will use.

    :ivar connector: by its full name.
    :ivar request: L{None}: built when an earlier step has answered, or lacking what the preview does not show.
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
    """The inputs of one step as what a person knows them; another view of what the digest binds.

    :ivar kind: of L{PRESENTATIONS}.
    :ivar parts: in order, each with the values that it is made of.
    """

    step: str
    kind: str
    parts: tuple[tuple[str, tuple[JSON, ...]], ...]

    def plainly_shown(self) -> Iterator[JSON]:
        """Yield the values that a reader can tell apart: none where a slash may belong to either of two."""
        for _, values in self.parts:
            if len(values) == 1 or not any("/" in text for text in strings_in(values)):
                yield from values


class PreviewStatus(StrEnum):
    """The state of a preview."""

    FETCHING = "fetching"
    SHOWN = "shown"
    UNAVAILABLE = "unavailable"


@frozen
class Cut:
    """The size and the digest of a value of which only the beginning is shown.

    :ivar size: how many bytes it has.
    :ivar digest: of the whole.
    """

    size: int
    digest: str


@frozen
class PreviewField:
    """One value of the service's, in words.

    :ivar value: L{None}: C{missing}.
    """

    label: str
    value: str | None
    missing: bool
    multiline: bool
    cut: Cut | None = None


@frozen
class PreviewFault:
    """The reason why a preview is unavailable.

    :ivar kind: as of L{Fault}.
    """

    kind: str
    message: str


@frozen
class Preview:
    """One look at the service's side, or why there is none.

    :ivar carried: what steps take from it, by path; what is not there they cannot take.
    """

    status: PreviewStatus
    fields: tuple[PreviewField, ...] = ()
    fault: PreviewFault | None = None
    carried: Mapping[str, JSON] = field(factory=dict)

    def digest(self) -> str:
        """Binds all that is shown and carried; of why there is nothing to show only the class: words change.

        :raises ValueError: it holds what no digest can bind.
        """
        failure = None if self.fault is None else self.fault.kind
        shown: JSON = [to_json(each) for each in self.fields]
        return digest({"status": self.status, "fields": shown, "carried": self.carried, "failure": failure})


NOT_YET = Preview(PreviewStatus.FETCHING)


@frozen
class ReviewedPreview:
    """The preview with the read that shows it.

    :ivar connector: as the action names it, like C{operation}.
    :ivar lacking: why the run cannot be approved, where a step needs what the preview does not show.
    """

    connector: str
    operation: str
    shown: Preview
    read: ReviewedStep
    lacking: str | None = None


@frozen
class Review:
    """The review of a run: every argument, every request as it will leave, and the preview.

    :ivar preview: L{None}: the action has none.
    :ivar unread: the JSON of a review in a form that this version does not read, as it was kept; all else is empty.
    """

    action: ReviewedAction = field(factory=ReviewedAction)
    manifest_digest: str = ""
    arguments: tuple[ReviewedArgument, ...] = ()
    steps: tuple[ReviewedStep, ...] = ()
    preview: ReviewedPreview | None = None
    unread: Mapping[str, JSON] | None = None

    def order_arguments(self, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the arguments of the run in the order of the action's inputs, as the review lists them."""
        names = (*(each.name for each in self.arguments), *arguments)
        return {name: arguments[name] for name in names if name in arguments}

    @property
    def shown_preview(self) -> Preview:
        """The preview that was shown, to be compared; L{NOT_YET}: none was, as far as can be read."""
        return NOT_YET if self.preview is None else self.preview.shown

    @property
    def may_have_preview(self) -> bool:
        """False if it is certain that there is no preview."""
        return self.preview is not None or self.unread is not None


def _read_preview(value: JSON) -> Preview:
    """Read what a row keeps of a preview, which a digest must be able to bind."""
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
differ(Cut, size=Member("bytes"))
differ(PreviewField, cut=Member(optional=True))
differ(PreviewFault, kind=Member("class"))
differ(ReviewedPreview, shown=Member(inline=True, read=_read_preview))
differ(Review, arguments=Member("fields"), unread=FALLBACK)
