"""One approval, whole: who asks, every argument, every request that will leave, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer, tags

from aileron.values import JSON, Approval, Predicate, RunState, Session, StepRow, edits, visible
from aileron.web._parts import PageParts, Visit, template
from aileron.web._texts import STATES, agent, countdown, moment, process, request_text, sending, shown, size

from .differences import rows
from .grant_form import allowed
from .review import SentStep, arguments, seen, steps

_BEGUN = frozenset((RunState.EXECUTING, RunState.FAILED, RunState.UNKNOWN))


@frozen
class Shown:
    """What the page of one approval is made of.

    :ivar session: of the agent that asks; L{None}: it is not there.
    :ivar history: the steps that ended, in order.
    :ivar suggested: what could be granted with it.
    """

    approval: Approval
    session: Session | None = None
    history: tuple[StepRow, ...] = ()
    suggested: tuple[Predicate, ...] = ()


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
        yield from rows(tag, self._approval.changes, self._approval.review)

    @renderer
    def edits(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What was edited of what was asked for, where something was."""
        return tag if edits(self._run) else ""

    @renderer
    def edited(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """One argument each."""
        yield from rows(tag, edits(self._run), {})

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
        for line in () if found is None else found.lines:
            text = "(there is none)" if line.value is None else shown(line.value)
            cut = f"only the beginning of {visible(line.cut)} bytes" if line.cut else size(text)
            yield tag.clone().fillSlots(label=visible(line.label), size=cut, value=text)

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

    @renderer
    def fields(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Every argument, in full."""
        for given in arguments(self._approval):
            text = shown(given.value)
            yield tag.clone().fillSlots(label=visible(given.label), size=size(text), value=text)

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
            sent = request_text(step.request) if step.request else _later(step, lacking)
            yield tag.clone().fillSlots(
                number=str(number),
                operation=visible(step.operation),
                connector=visible(step.connector),
                effect="only reads" if step.request and not step.request.changes else "may change something there",
                account=visible(step.account),
                size=size(sent),
                request=sent,
            )

    @renderer
    def outcome(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What was decided, and what became of it."""
        rows = [(name, value) for name, value in self._outcome() if value]
        return tag([[tags.dt(name), tags.dd(value)] for name, value in rows]) if rows else ""

    def _outcome(self) -> Iterator[tuple[str, str | list[Tag | str]]]:
        run, approval = self._run, self._approval
        if run.state is RunState.PENDING:
            return
        if approval.decided_at is not None:
            word = "approved at " if approval.approved else "denied at "
            yield "Decision", [word, moment(approval.decided_at), f" by {visible(approval.decided_by or 'unknown')}"]
        yield "Reason", _unless_none(run.reason or approval.reason)
        yield "Result", _unless_none(run.result)
        yield "Failure", "" if run.fault is None else shown(run.fault.message)
        if run.state in _BEGUN:
            done = [visible(step.step_id) for step in self._page.history if step.state == "succeeded"]
            yield "Steps that were done", ", ".join(done) or "none"
        if run.state is RunState.UNKNOWN:
            yield "What to do", f"See whether it happened, then tell it: aileron runs settle {visible(run.id)}"
        yield "On record as", visible(run.audit_id or "")

    @renderer
    def begins(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """When an approved run begins, and the button to take it back until then."""
        if self._run.state is not RunState.APPROVED or self._run.start_after is None:
            return ""
        at, left, undo = countdown(self._run)
        return tag.fillSlots(at=at, left=left, undo=undo)

    @renderer
    def decide(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """The buttons, while it waits."""
        return tag if self._run.state is RunState.PENDING else ""

    @renderer
    def allowed(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Each argument with what can be granted of it; the strictest is chosen."""
        for each in allowed(self._run, self._page.suggested):
            choices = [tags.option(choice.words, value=choice.predicate) for choice in each.choices]
            select = tags.select(*choices, autocomplete="off", **{"data-argument": visible(each.argument)})
            yield tag.clone().fillSlots(argument=visible(each.argument), choices=select)

    @renderer
    def whose(self, request: IRequest | None, tag: Tag) -> Tag:
        """This session's calls, where there is a session, or everybody's."""
        mine = [tags.option("this agent's session", value="session")] if self._run.session_id is not None else []
        return tag(*mine, tags.option("ALL sessions of all agents", value="all"))


async def draw_approval(parts: PageParts, visit: Visit, run_id: str) -> ApprovalPage:
    """One approval as it stands now.

    :raises NotFound: there is none of that id.
    """
    found = await parts.runner.approval(run_id)
    session_id = found.run.session_id
    session = None if session_id is None else await parts.sessions.get(session_id)
    history = (await parts.runner.history(run_id))[0] if found.run.state in _BEGUN else ()
    suggested = parts.runner.suggested(found) if found.run.state is RunState.PENDING else ()
    return ApprovalPage(Shown(found, session, history, suggested))


def _later(step: SentStep, lacking: str) -> str:
    return visible(lacking or f"The request is built from what an earlier step answers. It goes to {step.base_url}")


def _unless_none(value: JSON) -> str:
    return "" if value is None else shown(value)
