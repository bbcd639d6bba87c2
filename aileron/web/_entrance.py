"""Login of browsers: a single-use code creates a pending login.

It is admitted once its two words are typed in the terminal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs

from twisted.web.iweb import IRequest

from aileron.api import Dependencies, browser_session, keep_place, login_payload, signed_request
from aileron.base.json import JSON, loads_strict, timestamp
from aileron.model.audit import DAEMON, Actor
from aileron.model.errors import Conflict, InvalidRequest, Unauthorized
from aileron.model.people import Role
from aileron.model.sessions import HandOverState, OperatorSession
from aileron.model.vault import VaultState

from ._home_page import is_set_up
from ._table import PAGES
from .parts import Shell

HANDOVER = "/handover"
EXPIRES, ENDS = b"X-Aileron-Expires", b"X-Aileron-Ends"
RAISE = b"X-Aileron-Raise"
"""The header by which a page that only watches learns that a passkey can let its login decide again."""

_JSON = b"application/json"
_MOST_NAME = 64
_FIRST = "|".join(sorted({path.split("/")[1] for path in PAGES}))
_local_path = re.compile(rf"/(({_FIRST})(/[0-9A-Za-z_-]{{1,64}})?)?").fullmatch


async def admit(request: IRequest, deps: Dependencies) -> tuple[OperatorSession, Role | None]:
    """Return the login of an authenticated browser, and the role of its account, or None for the operator.

    Headers say when the login expires and ends, and whether a passkey can raise it (L{RAISE}).

    :raises Unauthorized: if no login matches the request, or its account was removed or changed.
    :raises StoreUnavailable: if the account cannot be read.
    """
    session, role = await browser_session(request, deps, signed_request(request, deps))
    keep_place(request, session.id)
    request.setHeader(EXPIRES, timestamp(session.expires_at).encode("ascii"))
    request.setHeader(ENDS, timestamp(session.ends_at).encode("ascii"))
    if _can_be_raised(session, deps):
        request.setHeader(RAISE, b"passkey")
    return session, role


def _can_be_raised(session: OperatorSession, deps: Dependencies) -> bool:
    """Return whether a passkey can let a login that may only read decide again. A phone signs in again instead."""
    if session.decides or session.is_public:
        return False
    return deps.vault.state() is VaultState.UNLOCKED and deps.passkeys.has_usable()


async def enter(request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
    """Exchange a login code for a pending login of the browser: set its cookie and return the shell (the static page).

    If the code is invalid or was used before, return a page that says so, with an error status. Both cases are
    recorded.

    :raises StoreUnavailable: if it cannot be recorded.
    """
    form = _read_form(request)
    code, target = _form_field(form, b"code"), _form_field(form, b"next")
    try:
        cookie, page_key, maker = deps.operators.redeem(code)
    except Conflict as error:
        payload = {"reason": HandOverState.TWICE.value, "login": error.details.get("login")}
        await deps.access_log.record("operator.handover_refused", DAEMON, payload)
        return _turn_away(request, shell, error.status, HandOverState.TWICE.value)
    except Unauthorized as error:
        await deps.access_log.refuse()
        return _turn_away(request, shell, error.status, "void")
    await deps.access_log.record("operator.handover_opened", DAEMON, {"login": maker.id})
    # The present login of this browser keeps its cookie, until the words are typed.
    set_cookie(request, deps, cookie, HANDOVER)
    return shell.page(request, {"page-key": page_key, "next": await _find_first_page(deps, target)})


async def _find_first_page(deps: Dependencies, target: str) -> str:
    """Return the path to open after a login: the wanted page, the setup steps until setup is complete, or the inbox."""
    if target != "/":
        return target if _local_path(target) else "/approvals"
    return "/approvals" if await deps.pending() or await is_set_up(deps) else "/home"


async def register(request: IRequest, deps: Dependencies) -> bytes:
    """Store the public key of the pending page, which the body contains. Return the daemon's instance as JSON.

    Without a public key in the body, the browser's present login must have signed the request. Once the words are
    confirmed, that login may decide again.

    :raises InvalidRequest: if the body is malformed.
    :raises Unauthorized: if the browser has no pending login, or has no login that signed the request.
    """
    told = {name: str(value) for name, value in _read_object(request, _KEYS).items()}
    cookie, page_key = signed_request(request, deps, waiting=True).cookie, told["page_key"]
    if "public_key" in told:
        instance = deps.operators.register(cookie, page_key, told["public_key"])
    else:
        instance = deps.operators.register_again(cookie, page_key, signed_request(request, deps))
    request.setHeader(b"Content-Type", _JSON)
    return json.dumps({"instance": instance}).encode("ascii")


_KEYS: tuple[set[str], ...] = ({"page_key", "public_key"}, {"page_key"})
"""The members of a registration: of a new key, or of the key of the browser's present login."""


def _read_object(request: IRequest, forms: Sequence[set[str]]) -> dict[str, JSON]:
    """Parse the JSON object in the body.

    :param forms: the sets of members that the object may have.
    :raises InvalidRequest: if the body is no such object.
    """
    body = request.content.read()
    request.content.seek(0)
    try:
        told = loads_strict(body)
    except ValueError:
        told = None
    if not isinstance(told, dict) or set(told) not in forms:
        raise InvalidRequest("The request body is not valid.")
    return told


async def touch(request: IRequest, deps: Dependencies) -> bytes:
    """Confirm the pending browser by a passkey.

    Without a credential in the body, return the options that the passkey must sign. With a credential, verify its
    signature, log the browser in, record the login and return the state. Both answers are JSON.

    :raises InvalidRequest: if the body is malformed.
    :raises Unauthorized: if no pending browser has signed the request.
    :raises Conflict: if there is no passkey for the present address.
    :raises Forbidden: if the passkey's answer is not valid for this browser.
    :raises StoreUnavailable: if the login cannot be recorded.
    """
    told = _read_object(request, ({"nonce", "credential"}, set()))
    sign_in = deps.operators.signing_in(signed_request(request, deps, waiting=True))
    request.setHeader(b"Content-Type", _JSON)
    if not told:
        nonce, options = deps.approvers.ask_sign_in(sign_in)
        return json.dumps({"nonce": nonce, "options": dict(options)}).encode("ascii")
    credential = told["credential"]
    if not isinstance(credential, dict):
        raise InvalidRequest("The request body is not valid.")
    known = {session.id for session in deps.operators.list()}
    passkey = deps.approvers.check_sign_in(sign_in, str(told["nonce"]), credential)
    session = deps.operators.confirm_touched(sign_in)
    kind = "operator.login_raised" if session.id in known else "operator.login"
    payload = {**login_payload(deps, session), "from": sign_in.login, "passkey": passkey}
    await deps.access_log.record(kind, Actor("human", session.id), payload)
    return json.dumps({"state": HandOverState.CONFIRMED.value}).encode("ascii")


async def add_passkey(request: IRequest, deps: Dependencies) -> bytes:
    """Create a passkey in the pending page of `aileron passkey add`.

    Without a credential in the body, return the options for C{navigator.credentials.create}. With a credential, propose
    the passkey. The two words of the page, typed in the terminal, add it and log the browser in.

    :raises InvalidRequest: if the body is malformed, or the credential is no passkey of this address.
    :raises Unauthorized: if no pending page that adds a passkey has signed the request.
    :raises Conflict: if passkeys are unavailable, or this one is registered already.
    :raises StoreUnavailable: if it cannot be recorded.
    """
    told = _read_object(request, ({"name", "credential"}, set()))
    page = deps.operators.adding_passkey(signed_request(request, deps, waiting=True))
    request.setHeader(b"Content-Type", _JSON)
    if not told:
        return json.dumps(dict(deps.passkeys.offer())).encode("ascii")
    name, credential = told["name"], told["credential"]
    if not isinstance(credential, dict) or not isinstance(name, str) or not 0 < len(name) <= _MOST_NAME:
        raise InvalidRequest("The request body is not valid.")
    deps.passkeys.propose(name, credential, page.words)
    await deps.access_log.record("operator.passkey_proposed", DAEMON, {"name": name, "login": page.login})
    return b"{}"


async def entering(request: IRequest, deps: Dependencies) -> bytes:
    """Return the login progress of this browser and its two words, as JSON. Once it is confirmed, set its cookie.

    A pending browser can call no other route.

    :raises Unauthorized: if the browser has no pending login, or the login has expired.
    """
    found = deps.operators.entering(signed_request(request, deps, waiting=True))
    if found is None:
        raise Unauthorized("This browser has no login in progress.")
    if found.cookie:
        set_cookie(request, deps, found.cookie, "/")
    request.setHeader(b"Content-Type", _JSON)
    told: dict[str, JSON] = {"state": found.state.value, "words": found.words}
    if found.state is HandOverState.OPENED and found.adds_passkey:
        told["adds_passkey"] = True
    elif found.state is HandOverState.OPENED and deps.passkeys.has_usable():
        told["passkey"] = True
    return json.dumps(told).encode("ascii")


def set_cookie(request: IRequest, deps: Dependencies, cookie: str, path: str) -> None:
    """Set the browser's cookie for a path. A cookie whose name begins with C{__Host-} is sent by HTTPS only."""
    secure = "; Secure" if deps.cookie_prefix else ""
    given = f"{cookie}; Path={path}; HttpOnly; SameSite=Strict{secure}".encode("ascii")
    request.responseHeaders.addRawHeader(b"Set-Cookie", deps.cookie + b"=" + given)


def _turn_away(request: IRequest, shell: Shell, status: int, why: str) -> bytes:
    request.setResponseCode(status)
    return shell.page(request, {"turned-away": why})


def _read_form(request: IRequest) -> Mapping[bytes, list[bytes]]:
    """Parse the form in the body. If the URL has a query, return an empty form: a code in a URL is not accepted."""
    if request.content is None or b"?" in request.uri:
        return {}
    return parse_qs(request.content.read(), keep_blank_values=True)


def _form_field(form: Mapping[bytes, list[bytes]], name: bytes) -> str:
    values = form.get(name, [])
    return values[0].decode("utf-8", "replace") if len(values) == 1 else ""
