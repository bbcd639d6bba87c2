"""The page of a person's own account, with its agents and passkeys, and the link to it below the inbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from urllib.parse import quote

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.people import BY_PROVIDER, AccountLogin, AccountPasskey, Owner, Role
from aileron.model.sessions import Session
from aileron.web.blocks import Cell, Part, act, answer, back, facts, heading, page, part, quiet, table
from aileron.web.parts import Visit

from ._agents import list_sessions
from ._passkeys import MOST_NAME, MOST_PASSKEYS, SignedInPerson
from .running import RunningPeople

_PATH = "/settings/account"
_TITLE = "Your account"
_NONE = "No passkeys yet"
_NO_AGENTS = "No agents connected"
_AGENT_COLUMNS = ("Agent", "Started", "Ends", "")
_COLUMNS = ("Name", "Added", "Last used", "")


async def draw_own_link(deps: Dependencies, visit: Visit, subject: None) -> Sequence[Part]:
    """Draw who is signed in, with the link to their own account, below the inbox. Draw nothing for the operator."""
    login = visit.operator.account
    if login is None:
        return ()
    return [quiet("Signed in as ", visible(login.name), " · ", tags.a(_TITLE, href=_PATH))]


async def draw_own_account(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the account of the person who is signed in, or for the operator that there is none.

    :raises Unauthorized: if the account was removed or changed.
    """
    running, login = deps.features.find(RunningPeople), visit.operator.account
    if running is None or login is None:
        return page(_TITLE, _TITLE, heading(_TITLE), quiet("This page is for people with an account. You have none."))
    told = [
        back("/approvals", "Inbox"),
        heading(_TITLE),
        facts([("Name", login.name), ("Role", login.role.value.capitalize()), ("Groups", ", ".join(login.groups))]),
        *[each async for each in _draw_agents(deps, login)],
        tags.h2("Passkeys"),
    ]
    if login.account.startswith(BY_PROVIDER):
        return page(_TITLE, _TITLE, *told, quiet("You sign in with a provider, which has your passkeys."))
    passkeys = await running.passkeys.list(SignedInPerson(login, visit.operator.id))
    return page(
        _TITLE,
        _TITLE,
        *told,
        tags.p("Sign in with a fingerprint, your face, a PIN or a security key instead of your passphrase."),
        tags.p(answer()),
        table("Passkeys", _COLUMNS, _draw_rows(running, passkeys), _NONE),
        *(_draw_form(has_one=bool(passkeys)) if len(passkeys) < MOST_PASSKEYS else ()),
    )


async def _draw_agents(deps: Dependencies, login: AccountLogin) -> AsyncIterator[Part]:
    """Draw the form that opens a session for an agent of the person, and the live sessions. A viewer has none."""
    if not login.role.covers(Role.APPROVER):
        return
    sessions = [each async for each in list_sessions(deps, Owner(login.account, login.name))]
    yield tags.h2("Your agents")
    yield tags.p("Connect an agent that runs on another machine. What it requests waits for your approval.")
    yield tags.p(answer())
    yield part("agents", table("Sessions of your agents", _AGENT_COLUMNS, map(_draw_session, sessions), _NO_AGENTS))
    yield _draw_connect(login)


def _draw_session(session: Session) -> tuple[Cell, ...]:
    path = f"/v1/sessions/{quote(session.id, safe='')}/deny"
    sure, body = "Confirm: end session, deny its requests", {"reason": "The session was ended."}
    end = act("End session", f"POST {path}", body, sure=sure, name=f"end-{session.id}")
    return session.agent, session.started_at, session.ends_at, end


def _draw_connect(login: AccountLogin) -> Tag:
    """Draw the form that connects an agent. The script shows the answer's token once, in the hidden part."""
    agent = tags.input(type="text", id="agent-name", maxlength="64", autocomplete="off", required="required")
    hours = tags.input(type="number", id="agent-hours", min="1", max="720", value="8", required="required")
    copy = tags.button("Copy", type="button", id="copy-token", **{"class": "small", "data-copy": ""})
    connected = tags.div(
        tags.p("Set this variable where the agent runs. The token is shown only once: ", tags.strong("copy it now.")),
        tags.p(tags.code(id="agent-token"), " ", copy, **{"class": "command"}),
        quiet(
            "Set AILERON_URL too: the address at which that machine reaches Aileron. Ask whoever runs Aileron here. "
            "Anybody with the token can request actions in your name."
        ),
        id="connected",
        hidden="hidden",
    )
    return tags.form(
        tags.p(tags.label("Agent, such as claude-code ", agent)),
        tags.p(tags.label("Hours until the session ends ", hours)),
        tags.div(tags.button("Connect agent", disabled="disabled", **{"class": "yes"}), **{"class": "buttons"}),
        tags.p(role="alert", **{"class": "answer"}),
        connected,
        id="connect-agent",
        **{"data-name": visible(login.name)},
    )


def _draw_rows(
    running: RunningPeople, passkeys: Sequence[tuple[AccountPasskey, datetime | None]]
) -> Iterator[tuple[Cell, ...]]:
    for each, used_at in passkeys:
        name = visible(each.name)
        if not running.passkeys.is_usable(each):
            name = f"{name} (cannot be used here: made for {visible(each.site)})"
        path = f"/v1/account/passkeys/{quote(each.id, safe='')}"
        remove = act("Remove", f"DELETE {path}", sure=f"Confirm: remove {each.name}", name=f"remove-{each.id}")
        yield name, each.added_at, used_at, remove


def _draw_form(*, has_one: bool) -> Iterator[Tag]:
    """Draw the form that adds a passkey.

    :param has_one: whether a passkey can confirm that the person is there, in place of the passphrase.
    """
    yield tags.h3("Add a passkey")
    name = tags.input(
        type="text", id="own-passkey-name", maxlength=str(MOST_NAME), autocomplete="off", required="required"
    )
    passphrase = tags.input(type="password", id="own-passphrase", autocomplete="current-password", required="required")
    by_passkey = tags.button("Confirm with a passkey instead", type="button", id="confirm-own", disabled="disabled")
    yield tags.form(
        tags.p(tags.label("Name, such as My laptop", **{"for": "own-passkey-name"}), name),
        tags.p(tags.label("Your passphrase, to confirm that it is you", **{"for": "own-passphrase"}), passphrase),
        tags.div(
            tags.button("Add passkey", disabled="disabled", **{"class": "yes"}),
            *((" ", by_passkey) if has_one else ()),
            **{"class": "buttons"},
        ),
        tags.p(role="alert", **{"class": "answer"}),
        id="add-own-passkey",
    )
