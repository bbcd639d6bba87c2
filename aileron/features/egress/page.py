"""Parts of pages about the hosts that sandboxed agents requested, each with buttons for the operator's decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.sessions import Session
from aileron.web.blocks import Cell, Part, act, answer, chip, link, quiet, table
from aileron.web.parts import Visit
from aileron.web.texts import agent

from .running import RunningEgress
from .values import EgressDecision, EgressHost, EgressState

_ALWAYS = "Confirm: always allow in this project"
_ANSWERS = (
    (EgressDecision.SESSION, "Allow for this session", ""),
    (EgressDecision.ALWAYS, "Always allow in this project", _ALWAYS),
    (EgressDecision.DENY, "Deny", ""),
)
_CHIPS = {EgressState.PENDING: "waits", EgressState.ALLOWED: "good", EgressState.DENIED: "bad"}
_BYTES_ONLY = "Aileron checks the host name and counts bytes. It cannot see what is sent, or limit it to reading."


async def draw_waiting_hosts(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw the hosts that wait for a decision, for the page of approvals. Draw nothing if there are none."""
    waiting = [each for each in _list_hosts(deps) if each.state is EgressState.PENDING]
    found = [await deps.sessions.get(each) for each in dict.fromkeys(each.session_id for each in waiting)]
    sessions = {session.id: session for session in found if session is not None}
    return [_draw_waiting(waiting, sessions)] if waiting else []


async def draw_session_hosts(deps: Dependencies, visit: Visit, subject: Session) -> Sequence[Part]:
    """Draw the hosts that a session requested, for the page of the session. Draw nothing if there are none."""
    return list(_draw_hosts([each for each in _list_hosts(deps) if each.session_id == subject.id]))


def _list_hosts(deps: Dependencies) -> Sequence[EgressHost]:
    running = deps.features.find(RunningEgress)
    return () if running is None else running.sessions.hosts()


def _draw_waiting(waiting: Sequence[EgressHost], sessions: Mapping[str, Session]) -> Tag:
    return tags.section(
        tags.h2("Network access"),
        quiet(_BYTES_ONLY),
        tags.p(answer()),
        tags.ul(*(_waiting(each, sessions.get(each.session_id)) for each in waiting)),
        id="egress",
    )


def _draw_hosts(hosts: Sequence[EgressHost]) -> Iterator[Part]:
    if hosts:
        heads = ("Host", "State", "Allowed by", "Requests", "Bytes sent", "Bytes received", "")
        yield tags.h2("Network access")
        yield quiet(_BYTES_ONLY)
        yield table("Hosts", heads, map(_row, hosts), "")


def _waiting(host: EgressHost, session: Session | None) -> Tag:
    who = link(f"/sessions/{host.session_id}", agent(session))
    wants = tags.p(who, " wants to connect to ", tags.code(host.host), " in ", tags.code(visible(host.project)))
    return tags.li(wants, tags.p(*_buttons(host)))


def _row(host: EgressHost) -> tuple[Cell, ...]:
    state = chip(host.state.value.capitalize(), _CHIPS[host.state])
    return host.host, state, host.basis, host.times, host.sent, host.received, tags.span(*_buttons(host))


def _buttons(host: EgressHost) -> Iterator[Part]:
    """Draw a button for each decision that changes the host's state."""
    for decision, words, sure in _ANSWERS:
        already = EgressState.DENIED if decision is EgressDecision.DENY else EgressState.ALLOWED
        if host.state is not already:
            body = {"decision": decision.value, "state": host.state.value}
            yield act(words, f"POST /v1/egress/{host.id}/decision", body, sure=sure, name=f"{decision}-{host.id}")
            yield " "
