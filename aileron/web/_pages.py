"""The resource of the web pages: the shell for navigations, fragments for a signed-in browser, and the login routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from klein import Klein
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.template import Flattenable, flattenString
from werkzeug.exceptions import HTTPException

from aileron.api import Dependencies, unexpected
from aileron.base.json import timestamp
from aileron.base.text import visible
from aileron.model.errors import AileronError, InvalidRequest
from aileron.model.faults import ADVICE

from ._entrance import admit, enter, entering, register
from ._table import POSTED, Draw, fragments, shown
from .parts import HTML, Drawing, Shell, Visit, is_known, pack

PAUSED = b"X-Aileron-Paused"
"""The header of each fragment with the moment since which everything is paused."""

VAULT = b"X-Aileron-Vault"
"""The header of each fragment with the state of the vault."""

WAITING = b"X-Aileron-Waiting"
"""The header of each fragment with the number of pending approvals."""

_TEXT = b"text/plain; charset=utf-8"


InThread: TypeAlias = Callable[[Callable[[], bytes]], Awaitable[bytes]]


def pages(deps: Dependencies, in_thread: InThread) -> IResource:
    """Return the resource that serves browsers on the operator site outside C{/v1}.

    :param in_thread: calls a function in another thread, one call at a time, and returns a Deferred with its result.
    """
    features = deps.features.features
    app, shell = Klein(), Shell(features.navigation())
    for rule, method, serve in (
        ("/handover", "POST", lambda request, path: enter(request, deps, shell)),
        ("/handover/key", "POST", lambda request, path: register(request, deps)),
        ("/handover/state", "GET", lambda request, path: entering(request, deps)),
    ):
        app.route(rule, methods=[method], endpoint=rule)(_at_the_rim(serve))
    app.route("/static/<name>", endpoint="static")(shell.file)
    for rule, draw in fragments(features).items():
        app.route(rule, methods=["GET"], endpoint=rule)(_guard(draw, deps, in_thread))
    for rule, draw in POSTED.items():
        app.route(rule, methods=["POST"], endpoint=f"POST {rule}")(_guard(draw, deps, in_thread))
    for rule in shown(features):
        app.route(rule, endpoint=rule)(lambda request, **path: shell.page(request))
    app.handle_errors(HTTPException)(lambda request, failure: shell.missing(request))
    app.handle_errors(Exception)(_answer_failed)
    return app.resource()


def _guard(draw: Draw, deps: Dependencies, in_thread: InThread) -> Callable[..., Deferred[bytes]]:
    """Make the handler of a fragment, which requires the cookie of a browser session and its signature."""

    async def fragment(request: IRequest, path: Mapping[str, str]) -> bytes:
        visit = Visit(admit(request, deps), _query(request), request.content.read())
        found = await draw(deps, visit, **path)
        if isinstance(found, Drawing):
            body = await in_thread(lambda: _flat(found.draw()))
        else:
            body = await flattenString(request, found)
        request.setHeader(b"Content-Type", HTML)
        request.setHeader(PAUSED, _tell_paused(deps))
        request.setHeader(VAULT, deps.vault.state().value.encode("ascii"))
        request.setHeader(WAITING, b"%d" % await deps.pending())
        return b"" if request.method == b"GET" and is_known(request, body) else pack(request, body)

    return _at_the_rim(fragment)


def _flat(drawn: Flattenable) -> bytes:
    """Render a drawing without Deferreds, in the calling thread."""
    found: list[bytes | Failure] = []
    flattenString(None, drawn).addBoth(found.append)
    (body,) = found
    if isinstance(body, Failure):
        body.raiseException()
    return body


def _query(request: IRequest) -> Mapping[str, str]:
    """Parse the query string.

    :raises InvalidRequest: a name occurs twice, or the query is not UTF-8.
    """
    try:
        return {name.decode("utf-8"): value.decode("utf-8") for name, (value,) in request.args.items()}
    except ValueError:
        raise InvalidRequest("This address is not valid. Your pending approvals are at /approvals.") from None


def _tell_paused(deps: Dependencies) -> bytes:
    """Return the moment since which everything is paused, or C{no}."""
    since = next((pause.since for pause in deps.limits.pauses() if pause.session_id is None), None)
    return b"no" if since is None else timestamp(since).encode("ascii")


def _at_the_rim(serve: Callable[[IRequest, Mapping[str, str]], Awaitable[bytes]]) -> Callable[..., Deferred[bytes]]:
    """Make a handler that answers with the result of C{serve}, or with an error page if it fails."""

    async def answer(request: IRequest, path: Mapping[str, str]) -> bytes:
        try:
            return await serve(request, path)
        except AileronError as error:
            return _refuse(request, error)
        except CancelledError:  # the browser disconnected, so only the response is cancelled
            raise
        except Exception:  # noqa: BLE001  # the HTTP rim
            return _answer_failed(request, Failure())

    return lambda request, **path: Deferred.fromCoroutine(answer(request, path))


def _refuse(request: IRequest, error: AileronError) -> bytes:
    request.setResponseCode(error.status)
    request.setHeader(b"Content-Type", _TEXT)
    return _in_words(error).encode("utf-8")


def _in_words(error: AileronError) -> str:
    """Return an error as text with the next step for the user."""
    advice = ADVICE.get(error.kind)
    return " ".join(filter(None, (visible(error.message), "" if advice is None else advice.on_page)))


def _answer_failed(request: IRequest, failure: Failure) -> bytes:
    return _refuse(request, unexpected("a page", failure))
