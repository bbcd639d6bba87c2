"""Writes a request as the text that a person reads, signs and sends back.

Values of the request and of the agent stand behind a margin, so that none can be mistaken for a line of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from attrs import frozen

from aileron.base.json import JSON, timestamp
from aileron.base.text import visible
from aileron.model.reviews import PreviewStatus, ReviewedRequest, ReviewedStep
from aileron.model.runs import Approval, Decision
from aileron.model.sessions import Session
from aileron.model.signing import NAMESPACE
from aileron.review import Headline, RequestReview, find_deceptive, render_value

MOST_CHARACTERS = 64 * 1024
"""The longest text. The audit log stores the text with the decision."""

_MOST_TITLE = 48
"""The longest title in a short text, whose QR code should fit into a terminal of 80 columns."""

_MARGIN = "  | "
_LAST = "The decision (do not change anything in this file):"


@frozen
class PortableRequest:
    """A request and the decision to be signed.

    :ivar session: the agent's session, or None if the operator made the request.
    :ivar until: the time until which the signature can be imported.
    """

    review: RequestReview
    session: Session | None
    decision: Decision
    until: datetime

    @property
    def _approval(self) -> Approval:
        return self.review.approval

    def write(self) -> str:
        """Return the text with the review in full, up to the line before the statement."""
        return _join(
            *self._head(), *self._warnings(), *self._arguments(), *self._preview(), *self._steps(), *self._end()
        )

    def write_short(self) -> str:
        """Return a short text that names the request by its run and digest instead of showing the request.

        The reader must look at the request elsewhere.
        """
        title = self.review.title
        shown = title if len(title) <= _MOST_TITLE else f"{title[: _MOST_TITLE - 1]}…"
        return "\n".join((f"{self._verb} this request of Aileron? Details are left out.", *_quote(shown), ""))

    @property
    def _verb(self) -> str:
        return "Approve" if self.decision.approved else "Deny"

    def _head(self) -> Iterator[str]:
        run, session = self._approval.run, self.session
        said = Headline.of(run.action, run.state, run.session_id is None, self._approval.review, self.review.cards)
        yield f"{self._verb} this request of Aileron?"
        yield from _quote(said.title)
        yield ""
        yield from _named("Requested by", "you" if session is None else f"{session.agent} (self-reported)")
        if run.owner is not None:
            yield from _named("For the account", run.owner.name)
        if session is not None:
            yield from _named("Working directory", f"{session.working_dir} (self-reported)")
        yield from _named("Requested at", timestamp(self._approval.requested_at))
        yield from _named("Action", said.action)
        yield from _named("Hosts", ", ".join(said.hosts))
        yield from _named("Places", ", ".join(said.places))
        yield from _named("Your reason", self.decision.reason or "")

    def _warnings(self) -> Iterator[str]:
        warnings = self.review.warnings
        if warnings or self._approval.stale:
            yield from ("", "Check before you approve:")
        if self._approval.stale:
            yield from _quote(f"Changed since it was first shown: {self._approval.stale}")
        for each in warnings:
            yield from _quote(f"[{each.severity.value}] {each.label}: {each.text}")

    def _arguments(self) -> Iterator[str]:
        shown, run, novel = self._approval.review.arguments, self._approval.run, self.review.novel
        named = [(each.name, each.label, each.value) for each in shown]
        named = named or [(name, name, value) for name, value in run.arguments.items()]
        yield from ("", "Arguments:" if named else "Arguments: none")
        for name, label, value in named:
            yield from _valued(label, value, novel.get(name, ""))

    def _preview(self) -> Iterator[str]:
        preview = self._approval.review.preview
        if preview is None:
            return
        yield from ("", "Preview from the service:")
        if preview.shown.status is not PreviewStatus.SHOWN:
            yield from _quote("Not available." if preview.shown.fault is None else preview.shown.fault.message)
        for each in preview.shown.fields:
            yield from _valued(each.label, each.value)
            if each.cut is not None:
                yield f"  Only the beginning is shown; the full value has {each.cut.size} bytes."

    def _steps(self) -> Iterator[str]:
        for number, step in enumerate(self._approval.review.steps, 1):
            yield from ("", f"Request {number}:")
            yield from _quote_step(step)
        if self._approval.review.unread is not None:
            yield from ("", "This version of Aileron cannot read this review. Stored form:")
            yield from _quote(render_value(self._approval.review.unread))

    def _end(self) -> Iterator[str]:
        yield ""
        yield from _named("Run", self._approval.run.id)
        yield from _named("Digest", self._approval.digest)
        yield from _named("Valid until", f"{timestamp(self.until)}, if the daemon is not restarted before")
        yield from _named("To sign", f"ssh-keygen -Y sign -n {NAMESPACE} -f KEY FILE")


def _quote_step(step: ReviewedStep) -> Iterator[str]:
    binding = step.binding
    yield from _named("Connector", f"{step.connector} {step.version}, {step.operation}")
    yield from _named("Credential", "none" if binding is None else f"{binding.name} {binding.account or ''}".rstrip())
    if step.request is None:
        yield from _named("Sent to", f"{step.base_url} (built from the response of an earlier step)")
    else:
        yield from _quote_request(step.request)


def _quote_request(request: ReviewedRequest) -> Iterator[str]:
    yield from _quote(f"{request.method} {request.url}")
    for name, text in request.headers:
        yield from _quote(f"{name}: {text}")
    if request.body is not None:
        yield from _valued("Body", request.body)


def _named(name: str, text: str) -> Iterator[str]:
    """Yield a line of ours with a short value, or nothing if the value is empty."""
    if text:
        yield f"{name}: {visible(text)}"


def _valued(name: str, value: JSON, note: str = "") -> Iterator[str]:
    yield f"  {visible(name)}:"
    yield from _quote(render_value(value))
    for caution in dict.fromkeys((*filter(None, [note]), *find_deceptive(value))):
        yield f"  Caution: {visible(caution)}"


def _quote(text: str) -> Iterator[str]:
    """Yield foreign text with a margin before each line."""
    for line in visible(text, multiline=True).split("\n"):
        yield (_MARGIN + line).rstrip()


def _join(*lines: str) -> str:
    return "\n".join((*lines, _LAST, ""))
