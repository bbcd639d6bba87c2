"""One approval, whole: who asks, every argument, every request that will leave, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from attrs import frozen
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer, tags

from aileron.values import JSON, Approval, Offer, Precedents, Predicate, RunState, Session, StepRow, edits, visible
from aileron.web._parts import Drawing, PageParts, Visit, template
from aileron.web._texts import STATES, agent, countdown, moment, process, request_text, sending, shown

from .decision import DecisionForm
from .edit_form import EditForm
from .reading import box, reading, rows
from .review import SentStep, arguments, seen, steps
from .risks import host_of, new_here, risks

BEGUN = frozenset((RunState.EXECUTING, RunState.FAILED, RunState.UNKNOWN))
"""Of which it matters what steps were done."""

_Words: TypeAlias = "Tag | str | list[Tag | str]"


def outcome(approval: Approval, history: Sequence[StepRow]) -> Iterator[tuple[str, _Words]]:
    """What there is to say of a request that waits no longer, each under its name.

    :param history: the steps that ended.
    """
    run = approval.run
    if run.state is RunState.PENDING:
        return
    if approval.decided_at is not None:
        word = "approved at " if approval.approved else "denied at "
        yield "Decision", [word, moment(approval.decided_at), f" by {visible(approval.decided_by or 'unknown')}"]
    yield from _said("Reason", run.reason or approval.reason)
    yield from _said("Result", run.result)
    if run.fault is not None:
        yield "Failure", shown(run.fault.message)
    if run.state in BEGUN:
        done = [visible(step.step_id) for step in history if step.state == "succeeded"]
        yield "Steps that were done", ", ".join(done) or "none"
    if run.state is RunState.UNKNOWN:
        page = tags.a("its page", href=f"/runs/{visible(run.id)}")
        command = f", or by: aileron runs settle {visible(run.id)}"
        yield "What to do", ["See whether it happened, then tell it on ", page, command]
    if run.audit_id:
        yield "On record as", tags.a(visible(run.audit_id), href=f"/audit/{visible(run.audit_id)}")


def _said(name: str, value: JSON) -> Iterator[tuple[str, _Words]]:
    if value is not None:
        yield name, box(reading(value), f"outcome-{name.lower()}")


@frozen
class Asked:
    """What one wants to know before deciding.

    :ivar before: what was done before.
    :ivar offer: the action as it is offered now; L{None}: it is not.
    :ivar suggested: what could be granted with it.
    :ivar waiting: how many requests of its session wait.
    """

    before: Precedents
    offer: Offer | None
    suggested: tuple[Predicate, ...]
    waiting: int


@frozen
class Shown:
    """What the page of one approval is made of.

    :ivar session: of the agent that asks; L{None}: it is not there.
    :ivar history: the steps that ended, in order.
    :ivar asked: what there is to know while it waits; L{None}: it does not.
    """

    approval: Approval
    session: Session | None = None
    history: tuple[StepRow, ...] = ()
    asked: Asked | None = None


class ApprovalPage(Element):
    """One approval."""

    loader = template("approval.xml")

    def __init__(self, page: Shown) -> None:
        super().__init__()
        self._page = page
        self._approval = page.approval
        self._run = page.approval.run

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """What the script needs to decide: the id, and the digest of what is on this page."""
        state = STATES[self._run.state]
        said = f"{visible(self._run.action)}: {state}"
        digest = visible(self._approval.digest)
        marks = {"data-id": visible(self._run.id), "data-digest": digest, "data-state": self._run.state.value}
        found = seen(self._approval)
        if found is not None and found.awaited:
            marks["data-fetching"] = "yes"
        return tag(**marks, **{"data-title": f"{said} – Aileron", "data-said": said}).fillSlots(
            action=visible(self._run.action),
            version=visible(self._run.action_version),
            state=state,
            sending=sending(self._run.state),
            digest=digest,
        )

    @renderer
    def stale(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """Why it is asked anew."""
        return tag(visible(self._approval.stale)) if self._approval.stale else ""

    @renderer
    def changes(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What is otherwise than it was shown before, where something is."""
        return tag if self._approval.changes else ""

    @renderer
    def changed(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """One place each."""
        yield from rows(tag, self._approval.changes, self._approval.review, "change")

    @renderer
    def edits(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What was edited of what was asked for, where something was."""
        return tag if edits(self._run) else ""

    @renderer
    def edited(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """One argument each."""
        yield from rows(tag, edits(self._run), {}, "edited")

    @renderer
    def preview(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What the service shows now, if the action asks it."""
        found = seen(self._approval)
        if found is None:
            return ""
        trouble = " ".join(filter(None, (found.trouble, found.lacking)))
        return tag.fillSlots(connector=visible(found.connector), trouble=visible(trouble))

    @renderer
    def seen(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Every line of it; one that was cut says so."""
        found = seen(self._approval)
        for number, line in enumerate(() if found is None else found.lines):
            label, read = visible(line.label), reading("(there is none)" if line.value is None else line.value)
            cut = f"only the beginning of {visible(line.cut)} bytes" if line.cut else read.size
            text = box(read, f"preview-{number}", label)
            yield tag.clone().fillSlots(label=label, size=cut, value=text, notes=read.notes)

    @renderer
    def asked(self, request: IRequest | None, tag: Tag) -> Tag:
        """When, by whom, and until when; what an agent says of itself is told as that."""
        asked_at: list[Tag | str] = ["Asked at ", moment(self._approval.requested_at)]
        until = self._approval.expires_at
        expires: list[Tag | str] = [" It expires at ", moment(until), "."] if until else []
        return tag(*asked_at, *self._asker(), *expires)

    def _asker(self) -> Iterator[Tag | str]:
        session = self._page.session
        if self._run.session_id is None:
            yield " by you, without an agent."
        elif session is None:
            yield f" in the session {visible(self._run.session_id)}, of which nothing is known."
        else:
            yield from (" by an agent that calls itself ", tags.bdi(agent(session)))
            yield from (" and says that it works in ", tags.bdi(visible(session.working_dir)))
            yield from (" (claims; ", tags.bdi(process(session.peer)), ").")
            yield from (" Session ", tags.a(visible(session.id), href=f"/sessions/{visible(session.id)}"), ".")

    @renderer
    def fields(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Every argument, in full."""
        before = None if self._page.asked is None else self._page.asked.before
        for number, given in enumerate(arguments(self._approval)):
            label = visible(given.label)
            read = reading(given.value, new_here(given.name, before))
            text = box(read, f"argument-{number}", label)
            yield tag.clone().fillSlots(label=label, size=read.size, value=text, notes=read.notes)

    @renderer
    def no_fields(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A sentence where there are no arguments."""
        return "" if arguments(self._approval) else tag

    @renderer
    def steps(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Every request as it will leave."""
        found = seen(self._approval)
        lacking = "" if found is None else found.lacking
        for number, step in enumerate(steps(self._approval), 1):
            sent = reading(request_text(step.request) if step.request else _later(step, lacking))
            yield tag.clone().fillSlots(
                number=str(number),
                operation=visible(step.operation),
                connector=visible(step.connector),
                effect="only reads" if step.request and not step.request.changes else "may change something there",
                account=visible(step.account),
                host=visible(host_of(step)),
                size=sent.size,
                request=box(sent, f"request-{number}", code=True),
            )

    @renderer
    def outcome(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What was decided, and what became of it."""
        found = list(outcome(self._approval, self._page.history))
        return tag([[tags.dt(name), tags.dd(words)] for name, words in found]) if found else ""

    @renderer
    def begins(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """When an approved run begins, and the button to take it back until then."""
        if self._run.state is not RunState.APPROVED or self._run.start_after is None:
            return ""
        at, left, undo = countdown(self._run)
        return tag.fillSlots(at=at, left=left, undo=undo)

    @renderer
    def risks(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What makes it one to look at twice, while it waits."""
        asked = self._page.asked
        if asked is None:
            return ""
        found = risks(self._approval, asked.before, asked.offer).sentences()
        if not any(found):
            return ""
        return tags.section(tags.h2("Look twice"), tags.ul([tags.li(sentence) for sentence in found]), id="risks")

    @renderer
    def edit(self, request: IRequest | None, tag: Tag) -> Element | str:
        """The arguments to be changed, while it waits and its action is there."""
        asked = self._page.asked
        if asked is None or asked.offer is None or not asked.offer.action.inputs:
            return ""
        return EditForm(self._run, asked.offer.action)

    @renderer
    def decide(self, request: IRequest | None, tag: Tag) -> Element | str:
        """The buttons, while it waits."""
        asked = self._page.asked
        return "" if asked is None else DecisionForm(self._run, asked.offer, asked.suggested, asked.waiting)


async def draw_approval(parts: PageParts, visit: Visit, run_id: str) -> Drawing:
    """One approval as it stands now.

    :raises NotFound: there is none of that id.
    """
    found = await parts.decisions.approval(run_id)
    session_id = found.run.session_id
    session = None if session_id is None else await parts.sessions.get(session_id)
    history = (await parts.submission.history(run_id))[0] if found.run.state in BEGUN else ()
    asked = await _asked(parts, found) if found.run.state is RunState.PENDING else None
    return Drawing(lambda: ApprovalPage(Shown(found, session, history, asked)))


async def _asked(parts: PageParts, approval: Approval) -> Asked:
    (before,) = await parts.decisions.precedents((approval,))
    session_id = approval.run.session_id
    waiting = 0 if session_id is None else await parts.decisions.pending(session_id)
    offer = parts.submission.offering().offers.get(approval.run.action)
    return Asked(before, offer, parts.decisions.suggested(approval), waiting)


def _later(step: SentStep, lacking: str) -> str:
    return visible(lacking or f"The request is built from what an earlier step answers. It goes to {step.base_url}")
