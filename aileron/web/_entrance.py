"""Browser login: a single-use code creates a pending browser session, admitted once its two words are confirmed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import parse_qs

from twisted.web.iweb import IRequest

from aileron.api import Dependencies, browser_session, keep_place, signed_request
from aileron.base.json import loads_strict, timestamp
from aileron.model.audit import DAEMON
from aileron.model.errors import Conflict, InvalidRequest, Unauthorized
from aileron.model.sessions import HandOverState, OperatorSession

from ._home_page import is_set_up
from ._table import PAGES
from .parts import Shell

HANDOVER = "/handover"
EXPIRES, ENDS = b"X-Aileron-Expires", b"X-Aileron-Ends"
_JSON = b"application/json"
_FIRST = "|".join(sorted({path.split("/")[1] for path in PAGES}))
_local_path = re.compile(rf"/(({_FIRST})(/[0-9A-Za-z_-]{{1,64}})?)?").fullmatch


def admit(request: IRequest, deps: Dependencies) -> OperatorSession:
    """Return the login of an authenticated browser, and send what it may do, and until when it may decide, in headers.

    :return: the login.
    :raises Unauthorized: no login matches the request.
    """
    session = browser_session(request, deps, signed_request(request, deps))
    keep_place(request, session.id)
    request.setHeader(EXPIRES, timestamp(session.expires_at).encode("ascii"))
    request.setHeader(ENDS, timestamp(session.ends_at).encode("ascii"))
    return session


async def enter(request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
    """Exchange a login code for a pending browser session: set its cookie and return the shell."""
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
    _set_cookie(request, deps, cookie, HANDOVER)
    return shell.page(request, {"page-key": page_key, "next": await _find_first_page(deps, target)})


async def _find_first_page(deps: Dependencies, target: str) -> str:
    """Return the path to open after a login: the wanted page, the setup steps until setup is complete, or the inbox."""
    if target != "/":
        return target if _local_path(target) else "/approvals"
    return "/approvals" if await deps.pending() or await is_set_up(deps) else "/home"


async def register(request: IRequest, deps: Dependencies) -> bytes:
    """Store the public key of the pending page, sent in the body.

    Without a public key, the browser's present login signs the request, and is to decide again.

    :raises InvalidRequest: the body is malformed.
    :raises Unauthorized: the browser has no pending login, or has no login that signed the request.
    """
    told = _tell_keys(request.content.read())
    request.content.seek(0)
    cookie, page_key = signed_request(request, deps, waiting=True).cookie, told["page_key"]
    if "public_key" in told:
        instance = deps.operators.register(cookie, page_key, told["public_key"])
    else:
        instance = deps.operators.register_again(cookie, page_key, signed_request(request, deps))
    request.setHeader(b"Content-Type", _JSON)
    return json.dumps({"instance": instance}).encode("ascii")


def _tell_keys(body: bytes) -> dict[str, str]:
    try:
        told = loads_strict(body)
    except ValueError:
        told = None
    if not isinstance(told, dict) or set(told) not in ({"page_key", "public_key"}, {"page_key"}):
        raise InvalidRequest("The request body is not valid.")
    return {name: str(value) for name, value in told.items()}


async def entering(request: IRequest, deps: Dependencies) -> bytes:
    """Return the login progress of this browser and its two words. A pending browser can call no other route.

    :raises Unauthorized: the browser has no pending login, or the login has expired.
    """
    found = deps.operators.entering(signed_request(request, deps, waiting=True))
    if found is None:
        raise Unauthorized("This browser has no login in progress.")
    if found.cookie:
        _set_cookie(request, deps, found.cookie, "/")
    request.setHeader(b"Content-Type", _JSON)
    return json.dumps({"state": found.state.value, "words": found.words}).encode("ascii")


def _set_cookie(request: IRequest, deps: Dependencies, cookie: str, path: str) -> None:
    given = f"{cookie}; Path={path}; HttpOnly; SameSite=Strict".encode("ascii")
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
