"""The page of a pending approval: the requester, every argument, every request to send, and the decision."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

from attrs import evolve, frozen
from twisted.web.template import Flattenable, Tag, tags

from aileron.api import Dependencies
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.actions import Offer
from aileron.model.audit import Actor, Event
from aileron.model.authority import Predicate
from aileron.model.errors import StoreUnavailable
from aileron.model.precedents import Precedents
from aileron.model.queries import AuditQuery
from aileron.model.reviews import Card, PreviewField, PreviewStatus, Review, ReviewedArgument, ReviewedPreview
from aileron.model.runs import Approval, RunState
from aileron.model.sessions import OperatorSession, Session
from aileron.review import (
    STALE,
    WARNINGS,
    Headline,
    RequestReview,
    ReviewWarning,
    WarningSeverity,
    edits,
    find_in_cards,
    find_title,
    list_arguments,
    new_here,
    review_requests,
    strip_label,
)
from aileron.web.blocks import copied
from aileron.web.event_names import PERSON
from aileron.web.parts import Drawing, Fragment, Visit, template, titled
from aileron.web.texts import COLOURS, STATES, agent, find_address, moment, process, process_name

from .decision import decision_form, find_lack, find_refusal, options_form
from .listing import Inbox, draw_identical, draw_list, draw_rows, read_inbox
from .reading import box, differences, reading
from .requests import draw_card, draw_request, find_open
from .review import preview_trouble

_TEMPLATE, _PAYLOAD, _REQUESTS = map(template, ("approval.xml", "approval_payload.xml", "approval_requests.xml"))
_SHOWN = "approval.shown"
_MOST_SUMMARY = 240
_ABOVE = tuple(
    each
    for each, kind in WARNINGS.items()
    if kind.severity is not WarningSeverity.LOW
    and each != STALE
    and (not kind.located or kind.severity is WarningSeverity.HIGH)
)
_RED = tuple(each for each, kind in WARNINGS.items() if kind.severity is WarningSeverity.HIGH)
_BELOW = tuple(each for each, kind in WARNINGS.items() if kind.severity is WarningSeverity.LOW and not kind.located)


@frozen
class ApprovalQuestion:
    """A pending approval as the operator needs it to decide.

    :ivar review: the request with its warnings.
    :ivar suggested: the suggested grant.
    :ivar waiting: how many requests of its session are pending.
    :ivar refusal: why the login may not approve, or None if it may.
    :ivar lack: which approvals are missing if the login may approve without them, or None.
    """

    review: RequestReview
    suggested: tuple[Predicate, ...] = ()
    waiting: int = 0
    refusal: str | None = None
    lack: str | None = None


def _page(approval: Approval, session: Session | None, asked: ApprovalQuestion, inbox: Inbox) -> Fragment:
    """Draw a pending approval. A preview, a warning or a form is drawn only if there is one.

    :param session: the requesting session, or None if it is not stored.
    :param inbox: the pending approvals beside it.
    """
    run, review, edited = approval.run, approval.review, edits(approval.run)
    warnings, offer, cards = asked.review.warnings, asked.review.offer, asked.review.cards
    summary = "" if offer is None else _summary(approval, offer)
    return Fragment(
        _TEMPLATE,
        root=_root(approval, warnings),
        rows=draw_rows(inbox, run.id),
        place=_draw_place(inbox, run.id),
        risks=draw_warnings(warnings),
        headline=lambda tag: tag(headline(approval), *draw_red(warnings)),
        summary=lambda tag: tag(summary) if summary else "",
        stale=lambda tag: tag(visible(approval.stale)) if approval.stale else "",
        asked=lambda tag: tag(*draw_asked_by(approval, session, cards)),
        changes=bool(approval.changes),
        changed=list(differences(approval.changes, review, "change")),
        edits=bool(edited),
        edited=list(differences(edited, Review(), "edited")),
        payload=draw_payload(approval, cards, asked.review.before),
        facts=draw_facts(warnings),
        requests=draw_requests(approval, cards),
        unread="" if review.unread is None else draw_unread(review.unread),
        origin=lambda tag: tag(*draw_origin(approval, session)),
        run_id=copied(run.id, "run ID"),
        digest=copied(approval.digest, "digest"),
        options=options_form(approval, offer, asked.suggested, asked.waiting),
        decide=decision_form(offer, draw_identical(approval, inbox.find(run.id)), asked.refusal, asked.lack),
    )


def _draw_place(inbox: Inbox, run_id: str) -> Tag | str:
    """Draw which of the listed requests this is, with links to the one before and the one after.

    Draw nothing if it is not listed.
    """
    order, row = inbox.order, inbox.find(run_id)
    if row is None or row.approval.run.id not in order:
        return ""
    at = order.index(row.approval.run.id)
    before, after = order[at - 1] if at else "", order[at + 1] if at + 1 < len(order) else ""
    links = [
        tags.a(words, href=f"/approvals/{visible(each)}", rel=rel) if each else ""
        for words, rel, each in (("Previous", "prev", before), ("Next", "next", after))
    ]
    return tags.span(f"{at + 1} of {inbox.total}", " ", links[0], " ", links[1])


def draw_payload(approval: Approval, cards: Sequence[Card] = (), before: Precedents | None = None) -> Fragment:
    """Draw the content of a request as cards, arguments and the preview.

    :param before: the earlier calls that new values are marked by, or None to mark no value.
    """
    preview, given = approval.review.preview, list_arguments(approval)
    in_cards = find_in_cards(given, cards)
    drawn = [_argument(number, each, new_here(each.name, before), in_cards) for number, each in enumerate(given)]
    return Fragment(
        _PAYLOAD,
        cards=[draw_card(card, _newness(given, in_cards, before)) for card in cards],
        any_fields=len(in_cards) < len(given) or not given,
        fields=[slots for each, slots in zip(given, drawn, strict=True) if each.name not in in_cards],
        no_fields=not given,
        raw=bool(in_cards),
        raw_fields=[slots for each, slots in zip(given, drawn, strict=True) if each.name in in_cards],
        preview=False if preview is None else _preview(preview),
        seen=[_draw_seen(number, each) for number, each in enumerate(approval.review.shown_preview.fields)],
    )


def draw_requests(approval: Approval, cards: Sequence[Card] = ()) -> Fragment:
    """Draw the HTTP requests that the approved run would send."""
    review, preview = approval.review, approval.review.preview
    is_open = find_open(approval, list_arguments(approval), cards)
    lacking, key = None if preview is None else preview.lacking, approval.run.effect_key
    return Fragment(
        _REQUESTS,
        steps=[draw_request(number, step, lacking, is_open, key) for number, step in enumerate(review.steps, 1)],
    )


def _root(approval: Approval, warnings: Sequence[ReviewWarning]) -> Callable[[Tag], Tag]:
    """Return a function that adds the data to a page that its script needs for a decision.

    These are the ID, and the digest of what the page shows.
    """
    run, digest = approval.run, visible(approval.digest)
    said = f"{visible(run.action)}: {STATES[run.state]}"
    marks = {"data-id": visible(run.id), "data-digest": digest, "data-state": run.state.value}
    marks |= {"data-severity": most_severe(warnings), "data-address": find_address(run)}
    preview = approval.review.preview
    if preview is not None and preview.shown.status is PreviewStatus.FETCHING:
        marks["data-fetching"] = "yes"
    return lambda tag: titled(f"{said} – Aileron", said)(tag(**marks))


def headline(approval: Approval) -> Tag:
    """Draw the description of the requested change."""
    return tags.bdi(find_title(approval.run.action, approval.review), **{"class": "title"})


def draw_red(warnings: Sequence[ReviewWarning]) -> Iterator[Tag | str]:
    """Draw the label of each kind of red warning, for a heading."""
    found = {each.id for each in warnings}
    for each in _RED:
        yield from (" ", tags.span(WARNINGS[each].label if each in found else "", **{"class": "chip red"}))


def origin(approval: Approval, session: Session | None, cards: Sequence[Card]) -> Iterator[Tag | str]:
    """Draw the requester, the action, the agent's directory, the hosts, and the account."""
    run, own = approval.run, approval.run.session_id is None
    said = Headline.of(run.action, run.state, own, approval.review, cards)
    yield "You" if own else tags.bdi(agent(session), title="Self-reported name", **{"class": "claimed"})
    if run.owner is not None:
        yield from (" for ", tags.bdi(visible(run.owner.name), title="The account that it belongs to"))
    yield from (" ", said.verb, " ", visible(said.action))
    yield from (" on " if said.hosts else "", visible(", ".join(said.hosts)))
    yield "".join(f" · {visible(each)}" for each in said.places)
    if session is not None:
        yield from (" · in ", tags.bdi(visible(session.working_dir)), " (self-reported)")
    elif not own:
        yield f" · in the unknown session {visible(str(run.session_id))}"


def _summary(approval: Approval, offer: Offer) -> str:
    """Return the first paragraph of the action's file, or an empty text if the file has changed since the request."""
    if offer.action.digest != approval.review.manifest_digest:
        return ""
    paragraphs = (" ".join(each.split()) for each in offer.action.description.split("\n\n"))
    words = next((each for each in paragraphs if each and not each.startswith("#")), "")
    return visible(words if len(words) <= _MOST_SUMMARY else f"{words[:_MOST_SUMMARY]}…")


def draw_asked_by(approval: Approval, session: Session | None, cards: Sequence[Card]) -> Iterator[Tag | str]:
    """Draw the requester of the run, when it was requested, and when it expires. The agent's own claims are marked."""
    yield from origin(approval, session, cards)
    yield from (" · ", moment(approval.requested_at))
    if approval.run.parent_id is not None:
        yield from (". Repeats ", tags.a("an earlier run", href=f"/runs/{visible(approval.run.parent_id)}"))
    if approval.run.undoes is not None:
        yield from (". Undoes ", tags.a("an earlier run", href=f"/runs/{visible(approval.run.undoes)}"))
    if approval.expires_at:
        yield from (". Expires ", moment(approval.expires_at))
    if approval.progress:
        yield " · "
    yield tags.strong(visible(approval.progress), id="progress")


def draw_origin(approval: Approval, session: Session | None) -> Iterator[Tag | str]:
    """Draw the session, the process that opened it, and the action's file."""
    review = approval.review
    if session is not None:
        yield from (tags.a("Session", href=f"/sessions/{visible(session.id)}"), " opened by ")
        yield from (tags.bdi(process_name(session.peer), title=process(session.peer)), ". ")
    source = visible(review.action.source or review.action.name or approval.run.action)
    yield from ("Action file: ", source, " ", tags.code(visible(review.manifest_digest)))


def most_severe(warnings: Sequence[ReviewWarning]) -> str:
    """Return the highest severity among the warnings, or an empty text if there are only facts or none."""
    found = {each.severity for each in warnings if not each.standing}
    return next((each.value for each in WarningSeverity if each in found), "")


def draw_warnings(warnings: Sequence[ReviewWarning]) -> Tag:
    """Draw the red warnings and the amber ones about the whole request, the most severe first."""
    return tags.section(
        tags.h2("Check before you approve"),
        tags.ul([_draw_warning(each, _find_kind(warnings, each)) for each in _ABOVE]),
        id="risks",
        **{"class": "warnings", "data-severity": most_severe(warnings)},
    )


def draw_facts(warnings: Sequence[ReviewWarning]) -> Tag:
    """Draw the grey warnings about the whole request, and those that apply to every call of the action."""
    rows = [_draw_warning(each, _find_kind(warnings, each)) for each in _BELOW]
    return tags.section(tags.h2("About this action"), tags.ul(rows), id="facts", **{"class": "warnings"})


def _find_kind(warnings: Sequence[ReviewWarning], warning_id: str) -> Sequence[ReviewWarning]:
    return [each for each in warnings if each.id == warning_id]


def _draw_warning(warning_id: str, found: Sequence[ReviewWarning]) -> Tag:
    """Draw all warnings of one kind, or an element without text if there are none.

    The markup is the same in both cases, so that foreign text never adds an element. The label is drawn first, and
    removed from the beginning of each sentence.
    """
    label, why = (found[0].label, found[0].why) if found else ("", "")
    colour = COLOURS[WARNINGS[warning_id].severity]
    return tags.li(
        tags.span(label, **{"class": f"chip {colour}"}),
        " ",
        tags.span(" ".join(strip_label(each.text, label) for each in found)),
        tags.details(tags.summary("Why"), why, id=f"why-{warning_id}"),
        **{"class": colour},
    )


def _newness(
    given: Sequence[ReviewedArgument], in_cards: Collection[str], before: Precedents | None
) -> Callable[[JSON], str]:
    """Return a function that returns a note on a card's value if no earlier call had the value, else an empty text."""
    said = [(each.value, new_here(each.name, before)) for each in given if each.name in in_cards]
    return lambda value: next((new for known, new in said if known == value), "")


def _argument(number: int, given: ReviewedArgument, new: str, in_cards: Collection[str]) -> dict[str, Flattenable]:
    """Draw an argument in full. If a card shows its value, refer to the card."""
    label, read = visible(given.label), reading(given.value, new)
    value = box(read, f"argument-{number}", "" if given.name in in_cards else label)
    return {"label": label, "size": read.size, "value": value, "notes": read.draw_notes(), "part": f"note-{number}"}


def _preview(preview: ReviewedPreview) -> dict[str, Flattenable]:
    """Draw the preview of the service's current state."""
    trouble = " ".join(filter(None, (preview_trouble(preview.shown), preview.lacking)))
    return {"connector": visible(preview.connector), "trouble": visible(trouble)}


def _draw_seen(number: int, line: PreviewField) -> dict[str, Flattenable]:
    """Draw a line of the preview, with a note if it was cut."""
    label, read = visible(line.label), reading("(none)" if line.value is None else line.value)
    cut = f"truncated, {line.cut.size} bytes in total" if line.cut else read.size
    return {"label": label, "size": cut, "value": box(read, f"preview-{number}", label), "notes": read.draw_notes()}


def draw_unread(review: JSON) -> Tag:
    """Draw a review in an unknown format as raw stored data."""
    words = "This version of Aileron cannot read the review of this request. It is shown as stored:"
    return tags.section(tags.h2("Review"), tags.p(words), box(reading(review), "unread", code=True))


async def draw_inbox(deps: Dependencies, visit: Visit) -> Drawing:
    """Draw the pending approvals. If the query has C{beside=yes} and any are listed, the first one is beside them.

    :raises InvalidRequest: if the cursor is not from this list.
    """
    inbox = await read_inbox(deps, visit)
    if visit.query.get("beside") == "yes" and inbox.order:
        approval = await deps.decisions.approval(inbox.order[0], only_read=visit.only_reads)
        if approval.run.state is RunState.PENDING:
            return await draw_approval(deps, visit, approval, inbox)
    return Drawing(lambda: draw_list(inbox))


async def draw_approval(deps: Dependencies, visit: Visit, approval: Approval, inbox: Inbox | None = None) -> Drawing:
    """Draw a pending approval beside the other ones. A login that may decide is recorded as shown the approval.

    :param inbox: the pending approvals, or None to read them.
    """
    preview, session_id = approval.review.preview, approval.run.session_id
    if not visit.only_reads and (preview is None or preview.shown.status is not PreviewStatus.FETCHING):
        await _record_shown(deps, approval, visit.operator)
    session = None if session_id is None else await deps.sessions.get(session_id)
    asked = await _draw_asked(deps, approval)
    refusal = find_refusal(approval, asked.review.offer, visit)
    needs_passkey = deps.passkeys.passkey_rule().needs(approval.run.action)
    asked = evolve(asked, refusal=refusal, lack=find_lack(approval, refusal, visit, needs_passkey=needs_passkey))
    beside = inbox or await read_inbox(deps, visit)
    return Drawing(lambda: _page(approval, session, asked, beside))


async def _record_shown(deps: Dependencies, approval: Approval, operator: OperatorSession) -> None:
    """Record in the audit log that a login that may decide opened the approval, once for each content.

    If the log cannot be written because the disk is full, the approval is shown all the same.
    """
    run, payload = approval.run, {"digest": approval.digest}
    known = await deps.audit.list(AuditQuery(run_id=run.id, type=_SHOWN, limit=1))
    if any(record.event.payload.get("digest") == approval.digest for record in known.items if not record.altered):
        return
    actor = Actor(PERSON, operator.id)
    event = Event(deps.ids(), _SHOWN, deps.now(), actor, payload, run.id, run.session_id, run.action)
    with suppress(StoreUnavailable):
        await deps.audit.append(event)


async def _draw_asked(deps: Dependencies, approval: Approval) -> ApprovalQuestion:
    offers, session_id = deps.submission.offering().offers, approval.run.session_id
    (review,) = await review_requests(deps.decisions, offers, (approval,))
    waiting = 0 if session_id is None else await deps.decisions.pending(session_id)
    return ApprovalQuestion(review, deps.decisions.suggested(approval), waiting)
