"""The pages' resource: a shell for any navigation, fragments for a browser with cookie and key, and the way in."""

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
from .parts import HTML, Drawing, Shell, Visit

PAUSED = b"X-Aileron-Paused"
"""By which every fragment tells since when everything is paused."""

WAITING = b"X-Aileron-Waiting"
"""By which every fragment tells how many approvals wait."""

_TEXT = b"text/plain; charset=utf-8"


InThread: TypeAlias = Callable[[Callable[[], bytes]], Awaitable[bytes]]


def pages(deps: Dependencies, in_thread: InThread) -> IResource:
    """Return what the operator site serves to a browser outside C{/v1}.

    :param in_thread: calls a function in another thread, one at a time, and answers what it returns.
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
    """Make the handler of a fragment, which nobody passes but a browser session's cookie and signature together."""

    async def fragment(request: IRequest, path: Mapping[str, str]) -> bytes:
        visit = Visit(admit(request, deps), _query(request), request.content.read())
        found = await draw(deps, visit, **path)
        if isinstance(found, Drawing):
            body = await in_thread(lambda: _flat(found.draw()))
        else:
            body = await flattenString(request, found)
        request.setHeader(b"Content-Type", HTML)
        request.setHeader(PAUSED, _tell_paused(deps))
        request.setHeader(WAITING, b"%d" % await deps.pending())
        return body

    return _at_the_rim(fragment)


def _flat(drawn: Flattenable) -> bytes:
    """Flatten what waits for nothing, in whatever thread this is."""
    found: list[bytes | Failure] = []
    flattenString(None, drawn).addBoth(found.append)
    (body,) = found
    if isinstance(body, Failure):
        body.raiseException()
    return body


def _query(request: IRequest) -> Mapping[str, str]:
    """Read what stands behind the question mark.

    :raises InvalidRequest: a name that stands there twice, or no UTF-8.
    """
    try:
        return {name.decode("utf-8"): value.decode("utf-8") for name, (value,) in request.args.items()}
    except ValueError:
        raise InvalidRequest("This address is not valid. Your pending approvals are at /approvals.") from None


def _tell_paused(deps: Dependencies) -> bytes:
    """Since when everything is paused, or C{no}."""
    since = next((pause.since for pause in deps.limits.pauses() if pause.session_id is None), None)
    return b"no" if since is None else timestamp(since).encode("ascii")


def _at_the_rim(serve: Callable[[IRequest, Mapping[str, str]], Awaitable[bytes]]) -> Callable[..., Deferred[bytes]]:
    """Make a handler that answers with what C{serve} returns, or with why it failed."""

    async def answer(request: IRequest, path: Mapping[str, str]) -> bytes:
        try:
            return await serve(request, path)
        except AileronError as error:
            return _refuse(request, error)
        except CancelledError:  # the browser left; only the answer has ended
            raise
        except Exception:  # noqa: BLE001  # the HTTP rim
            return _answer_failed(request, Failure())

    return lambda request, **path: Deferred.fromCoroutine(answer(request, path))


def _refuse(request: IRequest, error: AileronError) -> bytes:
    request.setResponseCode(error.status)
    request.setHeader(b"Content-Type", _TEXT)
    return _in_words(error).encode("utf-8")


def _in_words(error: AileronError) -> str:
    """Tell what happened and what to do; who only looked has changed nothing."""
    advice = ADVICE.get(error.kind)
    return " ".join(filter(None, (visible(error.message), "" if advice is None else advice.on_page)))


def _answer_failed(request: IRequest, failure: Failure) -> bytes:
    return _refuse(request, unexpected("a page", failure))
