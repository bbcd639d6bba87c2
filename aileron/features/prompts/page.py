"""The part of the inbox with the agents' own permission prompts, each with buttons for the operator's answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.sessions import Session
from aileron.web.blocks import Part, act, answer, draw_whole, link, quiet
from aileron.web.parts import Visit
from aileron.web.texts import agent, moment, segment

from .running import RunningPrompts
from .trial_page import link_trial
from .values import AgentAsk, AskAnswer, AskState

MOST_DRAWN = 10
"""The number of prompts that are drawn. Each may be 64 KiB long."""

KEY = "q"
"""The key that moves to the first prompt."""

_WHAT = (
    "An agent asks whether it may run a command or change a file by itself. This approves no effect of your actions, "
    "and Aileron does not protect you from what the agent does. If the agent also asks in its terminal, the first "
    f"answer counts. Press {KEY} to go to the first question."
)
_DECIDES: Mapping[str, str] = {"data-decides": "yes"}


async def draw_asks(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the prompts that wait for an answer, for the page of approvals. Draw nothing if there are none."""
    running = deps.features.find(RunningPrompts)
    waiting = () if running is None else [each for each in running.asks.list() if each.state is AskState.WAITING]
    if not waiting:
        return ()
    drawn = waiting[:MOST_DRAWN]
    found = [await deps.sessions.get(each) for each in dict.fromkeys(each.session_id for each in drawn)]
    sessions = {session.id: session for session in found if session is not None}
    items = (_draw_ask(each, sessions.get(each.session_id), first=each is drawn[0]) for each in drawn)
    more = len(waiting) - len(drawn)
    section = tags.section(
        tags.h2(f"Asked by the agents themselves · {len(waiting)}"),
        quiet(_WHAT),
        tags.p(answer()),
        tags.ul(*items),
        quiet(f"{more} more: aileron ask list") if more else "",
        id="asks",
        **{"class": "questions", "data-part": "asks"},
    )
    return (section,)


def _draw_ask(ask: AgentAsk, session: Session | None, *, first: bool) -> Tag:
    who = link(f"/sessions/{segment(ask.session_id)}", agent(session))
    wants = tags.p(who, " asks to use ", tags.strong(visible(ask.tool)), " in ", tags.code(visible(ask.directory)))
    since = quiet("Waiting since ", moment(ask.asked_at))
    what = draw_whole(f"text-{ask.id}", ask.text, f"What {ask.tool} would do")
    more = draw_whole(f"rest-{ask.id}", ask.rest, "Further input of the tool") if ask.rest else ""
    return tags.li(wants, since, what, more, tags.div(*_draw_answers(ask, first=first)), **{"class": "question"})


def _draw_answers(ask: AgentAsk, *, first: bool) -> Iterator[Part]:
    """Draw the buttons that allow, and the form that denies with a reason."""
    path = f"POST /v1/asks/{segment(ask.id)}/answer"
    key = {"data-key": KEY} if first else {}
    once = {"answer": AskAnswer.ONCE.value}
    yield tags.p(act("Allow once", path, once, name=f"once-{ask.id}")(**_DECIDES, **key))
    for place, rule in enumerate(ask.patterns):
        body = {"answer": AskAnswer.SESSION.value, "pattern": rule}
        button = act("Allow in this session", path, body, name=f"session-{place}-{ask.id}")
        yield tags.p(button(**_DECIDES), " what matches ", tags.code(visible(rule)), " · ", link_trial(rule))
    label = tags.label("Reason, shown to the agent ", tags.input(type="text", name="reason", maxlength="2000"))
    deny = tags.button(
        "Deny", type="submit", disabled="disabled", id=f"deny-{visible(ask.id)}", **{"class": "small no"}
    )
    yield tags.form(label, " ", deny, **{"data-act": path, "data-body": '{"answer": "deny"}', **_DECIDES})
