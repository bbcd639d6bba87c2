"""The pages' resource: a shell for any navigation, fragments for who has cookie and page key, and the way in."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from klein import Klein
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.template import Element, flattenString
from werkzeug.exceptions import HTTPException

from aileron.errors import AileronError, InternalError, NotFound, Unauthorized
from aileron.values import visible

from ._approval_list import draw_list
from ._approval_page import draw_approval
from ._parts import PageParts
from ._shell import HTML, Shell

_log = Logger()
_TEXT = b"text/plain; charset=utf-8"
_local_path = re.compile(r"/(approvals(/[0-9A-Za-z_-]{1,64})?)?").fullmatch

Draw: TypeAlias = Callable[..., Any]
"""A coroutine function of L{PageParts} and what the path names, to an L{Element}."""


async def _draw_nothing(parts: PageParts, rest: str) -> Element:
    raise NotFound("There is nothing here.")


FRAGMENTS: Mapping[str, Draw] = {
    "/fragments/approvals": draw_list,
    "/fragments/approvals/<run_id>": draw_approval,
    "/fragments/<path:rest>": _draw_nothing,
}
"""Everything that shows data, by route.  None is reached but through the guard."""


def pages(parts: PageParts) -> IResource:
    """What the operator site serves to a browser outside C{/v1}."""
    app, shell = Klein(), Shell()
    app.route("/handover", methods=["POST"], endpoint="handover")(lambda request: _hand_over(request, parts, shell))
    app.route("/static/<name>", endpoint="static")(shell.file)
    for rule, draw in FRAGMENTS.items():
        app.route(rule, endpoint=rule)(_guarded(draw, parts))
    for rule in ("/", "/approvals", "/approvals/<run_id>"):
        app.route(rule, endpoint=rule)(lambda request, run_id="": shell.page(request))
    app.handle_errors(HTTPException)(lambda request, failure: shell.missing(request))
    app.handle_errors(Exception)(_failed)
    return app.resource()


def _guarded(draw: Draw, parts: PageParts) -> Callable[..., Deferred[bytes]]:
    """The handler of a fragment, which nobody passes but a browser session's cookie and page key together."""

    async def serve(request: IRequest, path: Mapping[str, str]) -> bytes:
        try:
            _admit(request, parts)
            body: bytes = await flattenString(request, await draw(parts, **path))
        except AileronError as error:
            return _refused(request, error)
        except CancelledError:  # the browser left; only the answer has ended
            raise
        except Exception:  # noqa: BLE001  # the HTTP rim
            return _failed(request, Failure())
        request.setHeader(b"Content-Type", HTML)
        return body

    return lambda request, **path: Deferred.fromCoroutine(serve(request, path))


def _admit(request: IRequest, parts: PageParts) -> None:
    cookie, page_key = request.getCookie(parts.cookie), request.getHeader(parts.page_key_header)
    if not cookie or not page_key or parts.operators.by_browser(cookie.decode("latin-1"), page_key) is None:
        raise Unauthorized("Nobody is logged in.")


def _hand_over(request: IRequest, parts: PageParts, shell: Shell) -> bytes:
    """Turn a single-use code into a browser session: the cookie, the page key, and the shell.  Nothing else."""
    code, target = _form_field(request, b"code"), _form_field(request, b"next")
    try:
        cookie, page_key, _ = parts.operators.redeem(code)
    except AileronError:
        request.setResponseCode(Unauthorized.status)
        return shell.page(request, {"next": "/approvals"})
    attributes = "; Path=/; HttpOnly; SameSite=Strict"
    request.responseHeaders.addRawHeader(b"Set-Cookie", parts.cookie + f"={cookie}{attributes}".encode("ascii"))
    return shell.page(request, {"page-key": page_key, "next": target if _local_path(target) else "/approvals"})


def _form_field(request: IRequest, name: bytes) -> str:
    """What the form's body says; a query says nothing here, so that no code stands in a URL."""
    values = [] if b"?" in request.uri else request.args.get(name, [])
    return values[0].decode("utf-8", "replace") if len(values) == 1 else ""


def _refused(request: IRequest, error: AileronError) -> bytes:
    request.setResponseCode(error.status)
    request.setHeader(b"Content-Type", _TEXT)
    return visible(error.message).encode("utf-8")


def _failed(request: IRequest, failure: Failure) -> bytes:
    """An answer that says nothing of the inside; the log learns what failed and where, and no value."""
    frames = traceback.extract_tb(failure.getTracebackObject())[-4:]
    places = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))
    kind = type(failure.value).__qualname__
    _log.error("a page failed unexpectedly: {kind} at {places}", kind=kind, places=places)
    return _refused(request, InternalError("Something failed inside the daemon; its log says where."))
