"""The resource of the web pages: it serves the shell (the static page), the fragments and the login routes.

A fragment is the content of a page. The script of the shell fetches it with a signed request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from attrs import field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.template import Flattenable, flattenString
from werkzeug.exceptions import HTTPException

from aileron.api import Dependencies, notes_of_request, unexpected
from aileron.api.routing import Routes
from aileron.base.json import timestamp
from aileron.base.text import visible
from aileron.model.errors import AileronError, InvalidRequest
from aileron.model.faults import ADVICE

from ._entrance import add_passkey, admit, enter, entering, register, touch
from ._table import POSTED, Draw, fragments, shown
from .parts import HTML, Drawing, Shell, Visit, is_known, pack

PAUSED = b"X-Aileron-Paused"
"""The header of each fragment with the moment since which everything is paused."""

VAULT = b"X-Aileron-Vault"
"""The header of each fragment with the state of the vault."""

WAITING = b"X-Aileron-Waiting"
"""The header of each fragment with the number of pending approvals that are not snoozed."""

_TEXT = b"text/plain; charset=utf-8"


InThread: TypeAlias = Callable[[Callable[[], bytes]], Awaitable[bytes]]


@frozen
class Entrance:
    """The way in which browsers log in at one address, and the pages that are shown there.

    :ivar routes: the handlers of logging in: each a path, a method and a function of the request, the routes'
        dependencies and the shell.
    :ivar shown: the paths of the pages that are shown, or None for all.
    :ivar changes: texts in the static page, each with the text that replaces it.
    :ivar files: further static files.
    """

    routes: Sequence[tuple[str, str, Callable[[IRequest, Dependencies, Shell], Awaitable[bytes]]]]
    shown: Sequence[str] | None = None
    changes: Mapping[str, str] = field(factory=dict)
    files: Sequence[Path] = ()

    def shows(self, rule: str) -> bool:
        """Return whether the page with this path is among those that this site shows."""
        return self.shown is None or rule in self.shown


async def _register(request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
    return await register(request, deps)


async def _touch(request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
    return await touch(request, deps)


async def _add_passkey(request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
    return await add_passkey(request, deps)


async def _enter_state(request: IRequest, deps: Dependencies, shell: Shell) -> bytes:
    return await entering(request, deps)


BY_CODE = Entrance(
    (
        ("/handover", "POST", enter),
        ("/handover/key", "POST", _register),
        ("/handover/passkey", "POST", _touch),
        ("/handover/new-passkey", "POST", _add_passkey),
        ("/handover/state", "GET", _enter_state),
    )
)
"""The way in by C{aileron open}: a code, and two words that are typed in the terminal."""


def pages(
    deps: Dependencies,
    in_thread: InThread,
    workers: Mapping[str, Path] | None = None,
    entrance: Entrance = BY_CODE,
) -> IResource:
    """Return the resource that serves browsers outside C{/v1}.

    :param in_thread: calls a function in another thread, one call at a time, and returns a Deferred with its result.
    :param workers: the scripts that a browser may run as service workers, by path; none if the address does not stay.
    :param entrance: the login of browsers, and the pages to show.
    """
    features = deps.features.features
    app = Routes()
    shell = Shell(features.navigation(), features.scripts(), workers or {}, entrance.changes, entrance.files)
    for rule, method, serve in entrance.routes:
        app.route(rule, methods=[method], endpoint=f"{method} {rule}")(_handle_errors(_bind(serve, deps, shell)))
    app.route("/static/<name>", endpoint="static")(shell.file)
    for path in workers or {}:
        app.route(path, endpoint=path)(shell.worker)
    for rule, draw in fragments(features, entrance.shows).items():
        app.route(rule, methods=["GET"], endpoint=rule)(_guard(draw, deps, in_thread))
    for rule, draw in POSTED.items() if entrance.shown is None else ():
        app.route(rule, methods=["POST"], endpoint=f"POST {rule}")(_guard(draw, deps, in_thread))
    for rule in filter(entrance.shows, shown(features)):
        app.route(rule, endpoint=rule)(lambda request, **path: shell.page(request))
    app.handle_errors(HTTPException)(lambda request, failure: shell.missing(request))
    app.handle_errors(Exception)(_answer_failed)
    return app.resource()


def _bind(
    serve: Callable[[IRequest, Dependencies, Shell], Awaitable[bytes]], deps: Dependencies, shell: Shell
) -> Callable[[IRequest, Mapping[str, str]], Awaitable[bytes]]:
    return lambda request, path: serve(request, deps, shell)


def _guard(draw: Draw, deps: Dependencies, in_thread: InThread) -> Callable[..., Deferred[bytes]]:
    """Make the handler of a fragment, which is the content of a page.

    The handler requires the cookie of a browser's login and a signature by its key.

    :param draw: draws the fragment.
    :param in_thread: calls a function in another thread, to render large drawings.
    """

    async def fragment(request: IRequest, path: Mapping[str, str]) -> bytes:
        operator, role = await admit(request, deps)
        visit = Visit(operator, _query(request), request.content.read(), role)
        found = await draw(deps, visit, **path)
        if isinstance(found, Drawing):
            body = await in_thread(lambda: _flat(found.draw()))
        else:
            body = await flattenString(request, found)
        request.setHeader(b"Content-Type", HTML)
        request.setHeader(PAUSED, _paused_since(deps))
        request.setHeader(VAULT, deps.vault.state().value.encode("ascii"))
        request.setHeader(WAITING, b"%d" % await deps.count_waiting())
        return b"" if request.method == b"GET" and is_known(request, body) else pack(request, body)

    return _handle_errors(fragment)


def _flat(drawn: Flattenable) -> bytes:
    """Render a drawing that contains no Deferreds in the calling thread, and return the bytes.

    An error of the drawing is raised.
    """
    found: list[bytes | Failure] = []
    flattenString(None, drawn).addBoth(found.append)
    (body,) = found
    if isinstance(body, Failure):
        body.raiseException()
    return body


def _query(request: IRequest) -> Mapping[str, str]:
    """Parse the query string.

    :raises InvalidRequest: if a name occurs twice, or the query is not UTF-8.
    """
    try:
        return {name.decode("utf-8"): value.decode("utf-8") for name, (value,) in request.args.items()}
    except ValueError:
        raise InvalidRequest("This address is not valid. Your pending approvals are at /approvals.") from None


def _paused_since(deps: Dependencies) -> bytes:
    """Return the time since which everything is paused, or C{no} if it is not."""
    since = next((pause.since for pause in deps.limits.pauses() if pause.session_id is None), None)
    return b"no" if since is None else timestamp(since).encode("ascii")


def _handle_errors(serve: Callable[[IRequest, Mapping[str, str]], Awaitable[bytes]]) -> Callable[..., Deferred[bytes]]:
    """Make a handler that answers with the result of C{serve}, or with an error page if it fails.

    Only a cancellation is raised.
    """

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
    return _refuse(request, unexpected("a page", failure, notes_of_request(request).id))
