"""Draws the hosts that sandboxed agents asked for, each with the operator's three answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twisted.web.template import Tag, tags

from aileron.base.text import visible
from aileron.model.sessions import Session
from aileron.web.blocks import Cell, Part, act, answer, chip, link, quiet, table
from aileron.web.texts import agent

from .values import EgressDecision, EgressHost, EgressState

_ALWAYS = "Confirm: always allow in this project"
_ANSWERS = (
    (EgressDecision.SESSION, "Allow for this session", ""),
    (EgressDecision.ALWAYS, "Always allow in this project", _ALWAYS),
    (EgressDecision.DENY, "Deny", ""),
)
_CHIPS = {EgressState.PENDING: "waits", EgressState.ALLOWED: "good", EgressState.DENIED: "bad"}
_BYTES_ONLY = "Aileron checks the host name and counts bytes. It cannot see what is sent, or limit it to reading."


def draw_waiting(hosts: Sequence[EgressHost], sessions: Mapping[str, Session]) -> Tag | str:
    """Draw the hosts that wait for a decision; nothing where none does."""
    waiting = [each for each in hosts if each.state is EgressState.PENDING]
    if not waiting:
        return ""
    return tags.section(
        tags.h2("Network access"),
        quiet(_BYTES_ONLY),
        tags.p(answer()),
        tags.ul(*(_waiting(each, sessions.get(each.session_id)) for each in waiting)),
        id="egress",
    )


def draw_hosts(hosts: Sequence[EgressHost]) -> Iterator[Part]:
    """Draw what one session asked for, and how each host can be decided otherwise; nothing where there is nothing."""
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
    """Draw the answers that would change something."""
    for decision, words, sure in _ANSWERS:
        already = EgressState.DENIED if decision is EgressDecision.DENY else EgressState.ALLOWED
        if host.state is not already:
            body = {"decision": decision.value, "state": host.state.value}
            yield act(words, f"POST /v1/egress/{host.id}/decision", body, sure=sure, name=f"{decision}-{host.id}")
            yield " "
