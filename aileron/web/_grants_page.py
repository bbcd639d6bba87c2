"""The page of grants, caps and pauses."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.json import compact
from aileron.model.authority import Grant, GrantState, OwnCap, StandingGrant

from ._actions_page import limits
from .blocks import Cell, act, answer, chip, empty, facts, heading, link, page, quiet, table
from .parts import Visit
from .texts import count

_STATES = {
    GrantState.LIVE: "Active",
    GrantState.USED_UP: "Used up",
    GrantState.OVER: "Expired",
    GrantState.REVOKED: "Revoked",
}
_DAY_SECONDS = 86400
_NO_GRANTS = empty(
    "No active grants",
    tags.p("To create one, open a request, and choose “Approve and allow similar calls”."),
    tags.p(link("/approvals", "Open the inbox")),
)


async def draw_grants(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the page of grants, limits and pauses.

    :raises VaultLocked: if the vault was never unlocked in this process.
    """
    standing = sorted(await deps.grants.grants(), key=lambda each: each.grant.made_at, reverse=True)
    live = [each for each in standing if each.state is GrantState.LIVE]
    past = [each for each in standing if each.state is not GrantState.LIVE]
    return page(
        "Grants and limits",
        count(len(live), "active grant", "active grants"),
        heading("Grants and limits"),
        quiet("A grant allows similar calls without asking you. A limit stops calls beyond a number."),
        tags.p(answer()),
        *([] if live else [_NO_GRANTS]),
        *(part for each in live for part in _grant(each)),
        tags.h2("Your limits"),
        table("Limits", ("Action", "Limit", "Set", ""), map(_cap, deps.limits.caps()), "No limits set"),
        _new_cap(),
        tags.h2("Past grants"),
        table("Past grants", ("Action", "State", "Created", "Used"), map(_draw_past, past), "No past grants"),
    )


def _grant(standing: StandingGrant) -> Iterator[Tag]:
    grant = standing.grant
    state = chip("Active", "good") if standing.suspended is None else chip("Suspended", "waits")
    revoke = act("Revoke", f"DELETE /v1/grants/{grant.id}", name=f"revoke-{grant.id}")
    yield tags.h2(link(f"/actions/{grant.action}", grant.action))
    yield tags.p(state, " ", revoke)
    yield facts(describe_grant(standing))


def describe_grant(standing: StandingGrant) -> Iterator[tuple[str, Cell]]:
    """Yield what a grant allows, for whom and how often, and how much of it was used."""
    grant = standing.grant
    yield "Suspended", standing.suspended
    for predicate in grant.predicates:
        yield f"{predicate.argument} is", predicate.in_words()
    for name, value in grant.exact.items():
        yield f"{name} is", f"exactly {compact(value)}"
    yield "Remaining", f"{grant.left} of {grant.uses}"
    yield "Expires", grant.not_after
    whose = None if grant.session_id is None else link(f"/sessions/{grant.session_id}", grant.session_id)
    yield "Sessions", "All sessions" if whose is None else whose
    yield "Created", grant.made_at
    yield "Created with", link(f"/runs/{grant.run_id}", "This approval")
    yield "Last used", grant.used_at


def _draw_past(standing: StandingGrant) -> tuple[Cell, ...]:
    grant: Grant = standing.grant
    return grant.action, _STATES[standing.state], grant.made_at, f"{grant.used} of {grant.uses}"


def _cap(own: OwnCap) -> tuple[Cell, ...]:
    which = {"per_session": own.cap.per_session, "window": "per_day" if own.cap.seconds >= _DAY_SECONDS else "per_hour"}
    named = {"action": own.action, "argument": own.cap.argument}
    body = which | {name: value for name, value in named.items() if value is not None}
    remove = act("Remove", "DELETE /v1/caps", body, sure="Confirm: remove the limit")
    return own.action or "All actions combined", limits([own.cap]), own.set_at, remove


def _new_cap() -> Tag:
    counts = [
        tags.label(f"{words} ", tags.input(name=name, id=f"cap-{name}", type="number", min="1"))
        for name, words in (("per_hour", "Per hour"), ("per_day", "Per day"))
    ]
    action = tags.input(name="action", id="cap-action", type="text", autocomplete="off")
    apart = tags.input(name="per_session", id="cap-session", type="checkbox")
    return tags.form(
        *counts,
        tags.label("Action (empty: all combined) ", action),
        tags.label(apart, " Per session"),
        tags.button("Set limit", type="submit", disabled="disabled", id="set-cap"),
        **{"class": "filters", "data-act": "POST /v1/caps"},
    )
