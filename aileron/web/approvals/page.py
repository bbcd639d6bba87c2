"""The page of one approval: the requester, every argument, every request to send, and the outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeAlias

from attrs import frozen
from twisted.web.template import Flattenable, Tag, tags

from aileron.api import Dependencies
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.actions import Offer
from aileron.model.authority import Predicate
from aileron.model.precedents import Precedents
from aileron.model.reviews import Card, PreviewField, PreviewStatus, Review, ReviewedArgument, ReviewedPreview
from aileron.model.runs import Approval, RunState, StepRow
from aileron.model.sessions import Session
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
    render_value,
    review_requests,
)
from aileron.web.parts import Drawing, Fragment, Visit, template, titled
from aileron.web.texts import COLOURS, STATES, agent, countdown, moment, process, process_name

from .decision import decision_form, options_form
from .listing import Inbox, draw_rows, read_inbox
from .reading import box, differences, reading
from .requests import draw_card, draw_request, find_open
from .review import preview_trouble

_TEMPLATE, _PAYLOAD, _REQUESTS = map(template, ("approval.xml", "approval_payload.xml", "approval_requests.xml"))
BEGUN = frozenset((RunState.EXECUTING, RunState.FAILED, RunState.UNKNOWN))
"""The states in which the completed steps are shown."""

_MOST_SUMMARY = 240
_ABOVE = tuple(
    each
    for each, kind in WARNINGS.items()
    if not kind.standing and each != STALE and (not kind.located or kind.severity is WarningSeverity.HIGH)
)
_RED = tuple(each for each, kind in WARNINGS.items() if kind.severity is WarningSeverity.HIGH)
_FACTS = tuple(each for each, kind in WARNINGS.items() if kind.standing)

_Words: TypeAlias = "Tag | str | list[Tag | str]"


def outcome(approval: Approval, history: Sequence[StepRow]) -> Iterator[tuple[str, _Words]]:
    """Yield labelled facts about a request that is no longer pending.

    :param history: the completed steps.
    """
    run = approval.run
    if run.state is RunState.PENDING:
        return
    if approval.decided_at is not None:
        word = "Approved " if approval.approved else "Denied "
        yield "Decision", [word, moment(approval.decided_at), " by you" if approval.grant_id is None else " by a grant"]
    yield from _draw_said("Reason", run.reason or approval.reason)
    yield from _draw_said("Result", run.result)
    if run.fault is not None:
        yield "Failure", render_value(run.fault.message)
    if run.state in BEGUN:
        done = [visible(step.step_id) for step in history if step.state == "succeeded"]
        yield "Completed steps", ", ".join(done) or "none"
    if run.state is RunState.UNKNOWN:
        page = tags.a("the run's page", href=f"/runs/{visible(run.id)}")
        command = f", or run: aileron run settle {visible(run.id)}"
        yield "What to do", ["Check whether it happened. Then record it on ", page, command]
    if run.audit_id:
        yield "Audit record", tags.a(visible(run.audit_id), href=f"/audit/{visible(run.audit_id)}")


def _draw_said(name: str, value: JSON) -> Iterator[tuple[str, _Words]]:
    if value is not None:
        yield name, box(reading(value), f"outcome-{name.lower()}")


@frozen
class ApprovalQuestion:
    """A pending approval as the operator needs it to decide.

    :ivar review: the request with its warnings.
    :ivar suggested: the suggested grant.
    :ivar waiting: how many requests of its session are pending.
    """

    review: RequestReview
    suggested: tuple[Predicate, ...] = ()
    waiting: int = 0


def _page(
    approval: Approval,
    session: Session | None,
    history: Sequence[StepRow],
    asked: ApprovalQuestion | None,
    inbox: Inbox,
) -> Fragment:
    """Draw one approval. A preview, a warning or a form is drawn only if there is one.

    :param session: the requesting session, or None if it is not stored.
    :param history: the completed steps, in order.
    :param asked: the question while the approval is pending, or None if it is not pending.
    :param inbox: the pending approvals beside it.
    """
    run, review, edited = approval.run, approval.review, edits(approval.run)
    undoable = run.state is RunState.APPROVED and run.start_after is not None
    ended = [[tags.dt(name), tags.dd(words)] for name, words in outcome(approval, history)]
    offer = None if asked is None else asked.review.offer
    summary = "" if offer is None else _summary(approval, offer)
    return Fragment(
        _TEMPLATE,
        root=_root(approval, () if asked is None else asked.review.warnings),
        rows=draw_rows(inbox, run.id),
        place=_draw_place(inbox, run.id),
        risks="" if asked is None else draw_warnings(asked.review.warnings),
        headline=lambda tag: tag(headline(approval), *draw_red(() if asked is None else asked.review.warnings)),
        summary=lambda tag: tag(summary) if summary else "",
        stale=lambda tag: tag(visible(approval.stale)) if approval.stale else "",
        asked=lambda tag: tag(*_asked_by(approval, session, () if asked is None else asked.review.cards)),
        begins=dict(zip(("at", "left", "undo"), countdown(run), strict=True)) if undoable else False,
        outcome=lambda tag: tag(ended) if ended else "",
        changes=bool(approval.changes),
        changed=list(differences(approval.changes, review, "change")),
        edits=bool(edited),
        edited=list(differences(edited, Review(), "edited")),
        payload=draw_payload(approval, asked),
        facts="" if asked is None else draw_facts(asked.review.warnings),
        requests=draw_requests(approval, asked),
        unread="" if review.unread is None else _unread(review.unread),
        origin=lambda tag: tag(*_origin(approval, session)),
        digest=lambda tag: tag(visible(approval.digest)),
        options="" if asked is None else options_form(approval, offer, asked.suggested, asked.waiting),
        decide="" if asked is None else decision_form(offer),
    )


def _draw_place(inbox: Inbox, run_id: str) -> Tag | str:
    """Draw which of the listed requests this is, with links to the one before and the one after."""
    order = inbox.order
    if run_id not in order:
        return ""
    at = order.index(run_id)
    before, after = order[at - 1] if at else "", order[at + 1] if at + 1 < len(order) else ""
    links = [
        tags.a(words, href=f"/approvals/{visible(each)}", rel=rel) if each else ""
        for words, rel, each in (("Previous", "prev", before), ("Next", "next", after))
    ]
    return tags.span(f"{at + 1} of {inbox.count}", " ", links[0], " ", links[1])


def draw_payload(approval: Approval, asked: ApprovalQuestion | None) -> Fragment:
    """Draw what would be sent, as a person knows it: cards, arguments and the preview."""
    preview, given = approval.review.preview, list_arguments(approval)
    before, cards = (None, ()) if asked is None else (asked.review.before, asked.review.cards)
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


def draw_requests(approval: Approval, asked: ApprovalQuestion | None) -> Fragment:
    """Draw the requests to send."""
    review, preview = approval.review, approval.review.preview
    is_open = find_open(approval, list_arguments(approval), () if asked is None else asked.review.cards)
    lacking, key = None if preview is None else preview.lacking, approval.run.effect_key
    return Fragment(
        _REQUESTS,
        steps=[draw_request(number, step, lacking, is_open, key) for number, step in enumerate(review.steps, 1)],
    )


def _root(approval: Approval, warnings: Sequence[ReviewWarning]) -> Callable[[Tag], Tag]:
    """Return a renderer that adds the data the script needs to decide: the ID and the digest of the page's content."""
    run, state, digest = approval.run, STATES[approval.run.state], visible(approval.digest)
    said = f"{visible(run.action)}: {state}"
    marks = {"data-id": visible(run.id), "data-digest": digest, "data-state": run.state.value}
    marks["data-severity"] = most_severe(warnings)
    preview = approval.review.preview
    if preview is not None and preview.shown.status is PreviewStatus.FETCHING:
        marks["data-fetching"] = "yes"
    return lambda tag: titled(f"{said} – Aileron", said)(tag(**marks)).fillSlots(state=state)


def headline(approval: Approval) -> Tag:
    """Draw what would be done."""
    return tags.bdi(find_title(approval.run.action, approval.review), **{"class": "title"})


def draw_red(warnings: Sequence[ReviewWarning]) -> Iterator[Tag | str]:
    """Draw the label of each kind of red warning, for a heading."""
    found = {each.id for each in warnings}
    for each in _RED:
        yield from (" ", tags.span(WARNINGS[each].label if each in found else "", **{"class": "chip red"}))


def origin(approval: Approval, session: Session | None, cards: Sequence[Card]) -> Iterator[Tag | str]:
    """Draw who requests which action, where the agent works, on which hosts, for whom and by which account."""
    run, own = approval.run, approval.run.session_id is None
    said = Headline.of(run.action, run.state, own, approval.review, cards)
    yield "You" if own else tags.bdi(agent(session), title="Self-reported name", **{"class": "claimed"})
    yield from (" ", said.verb, " ", visible(said.action))
    yield from (" on " if said.hosts else "", visible(", ".join(said.hosts)))
    yield "".join(f" · {visible(each)}" for each in said.places)
    if session is not None:
        yield from (" · in ", tags.bdi(visible(session.working_dir)), " (self-reported)")
    elif not own:
        yield f" · in the unknown session {visible(str(run.session_id))}"


def _summary(approval: Approval, offer: Offer) -> str:
    """Return the first paragraph of the action's file if the file is still the reviewed version."""
    if offer.action.digest != approval.review.manifest_digest:
        return ""
    paragraphs = (" ".join(each.split()) for each in offer.action.description.split("\n\n"))
    words = next((each for each in paragraphs if each and not each.startswith("#")), "")
    return visible(words if len(words) <= _MOST_SUMMARY else f"{words[:_MOST_SUMMARY]}…")


def _asked_by(approval: Approval, session: Session | None, cards: Sequence[Card]) -> Iterator[Tag | str]:
    """Draw by whom and when the run was requested, and when it expires. What the agent says of itself is marked."""
    yield from origin(approval, session, cards)
    yield from (" · ", moment(approval.requested_at))
    if approval.run.parent_id is not None:
        yield from (". Repeats ", tags.a("an earlier run", href=f"/runs/{visible(approval.run.parent_id)}"))
    if approval.run.undoes is not None:
        yield from (". Undoes ", tags.a("an earlier run", href=f"/runs/{visible(approval.run.undoes)}"))
    if approval.expires_at:
        yield from (". Expires ", moment(approval.expires_at))


def _origin(approval: Approval, session: Session | None) -> Iterator[Tag | str]:
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
    """Draw the warnings about the whole request and the red ones about its texts, the most severe first."""
    return tags.section(
        tags.h2("Check before you approve"),
        tags.ul([_draw_warning(each, _find_kind(warnings, each)) for each in _ABOVE]),
        id="risks",
        **{"class": "warnings", "data-severity": most_severe(warnings)},
    )


def draw_facts(warnings: Sequence[ReviewWarning]) -> Tag:
    """Draw what holds at every call of the action."""
    rows = [_draw_warning(each, _find_kind(warnings, each)) for each in _FACTS]
    return tags.section(tags.h2("At every call of this action"), tags.ul(rows), id="facts", **{"class": "warnings"})


def _find_kind(warnings: Sequence[ReviewWarning], warning_id: str) -> Sequence[ReviewWarning]:
    return [each for each in warnings if each.id == warning_id]


def _draw_warning(warning_id: str, found: Sequence[ReviewWarning]) -> Tag:
    """Draw one kind of warning with the same markup whether or not it is present: foreign text never adds an element.

    A sentence that begins with the label continues after it.
    """
    label, why = (found[0].label, found[0].why) if found else ("", "")
    colour = COLOURS[WARNINGS[warning_id].severity]
    return tags.li(
        tags.span(label, **{"class": f"chip {colour}"}),
        " ",
        tags.span(" ".join(each.text.removeprefix(label).lstrip(". ") for each in found)),
        tags.details(tags.summary("Why"), why, id=f"why-{warning_id}"),
        **{"class": colour},
    )


def _newness(
    given: Sequence[ReviewedArgument], in_cards: Collection[str], before: Precedents | None
) -> Callable[[JSON], str]:
    """Return a function that describes whether an argument had a card's value before."""
    said = [(each.value, new_here(each.name, before)) for each in given if each.name in in_cards]
    return lambda value: next((new for known, new in said if known == value), "")


def _argument(number: int, given: ReviewedArgument, new: str, in_cards: Collection[str]) -> dict[str, Flattenable]:
    """Draw an argument in full. If a card shows its value, refer to the card."""
    label, read = visible(given.label), reading(given.value, new)
    value = box(read, f"argument-{number}", "" if given.name in in_cards else label)
    return {"label": label, "size": read.size, "value": value, "notes": read.notes, "part": f"note-{number}"}


def _preview(preview: ReviewedPreview) -> dict[str, Flattenable]:
    """Draw the preview of the service's current state."""
    trouble = " ".join(filter(None, (preview_trouble(preview.shown), preview.lacking)))
    return {"connector": visible(preview.connector), "trouble": visible(trouble)}


def _draw_seen(number: int, line: PreviewField) -> dict[str, Flattenable]:
    """Draw a line of the preview, with a note if it was cut."""
    label, read = visible(line.label), reading("(none)" if line.value is None else line.value)
    cut = f"truncated, {line.cut.size} bytes in total" if line.cut else read.size
    return {"label": label, "size": cut, "value": box(read, f"preview-{number}", label), "notes": read.notes}


def _unread(review: JSON) -> Tag:
    """Draw a review in an unknown format as raw stored data."""
    words = "This version of Aileron cannot read the review of this request. It is shown as stored:"
    return tags.section(tags.h2("Review"), tags.p(words), box(reading(review), "unread", code=True))


async def draw_approval(deps: Dependencies, visit: Visit, run_id: str) -> Drawing:
    """Draw the current state of one approval.

    :raises NotFound: no approval has that ID.
    """
    found = await deps.decisions.approval(run_id, only_read=visit.only_reads)
    session_id = found.run.session_id
    session = None if session_id is None else await deps.sessions.get(session_id)
    history = (await deps.submission.history(run_id))[0] if found.run.state in BEGUN else ()
    asked = await _draw_asked(deps, found) if found.run.state is RunState.PENDING else None
    inbox = await read_inbox(deps, visit)
    return Drawing(lambda: _page(found, session, history, asked, inbox))


async def _draw_asked(deps: Dependencies, approval: Approval) -> ApprovalQuestion:
    offers, session_id = deps.submission.offering().offers, approval.run.session_id
    (review,) = await review_requests(deps.decisions, offers, (approval,))
    waiting = 0 if session_id is None else await deps.decisions.pending(session_id)
    return ApprovalQuestion(review, deps.decisions.suggested(approval), waiting)
