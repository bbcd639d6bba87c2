"""The loopback page to which a browser returns after a sign-in. It serves one sign-in (RFC 8252)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Overdue
from twisted.internet.error import CannotListenError
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from aileron.cli.errors import CommandError
from aileron.credentials import NotOurCallback, SignInRefused

WAIT_SECONDS = 300
_HOST, _PATH = "127.0.0.1", "/callback"
_IDLE_SECONDS = 15
_FOLLOWS_WITHIN_SECONDS, _SENT_WITHIN_SECONDS = 5, 0.2
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
}
_PAGE = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Aileron</title>\n<p>{text}</p>\n</html>\n'
_OVER = "You can close this window, and go on in the terminal."
_NOT_OURS = "Aileron does not wait for this. Nothing was changed."


class _QuietSite(Site):
    """A site without an access log, because request URLs contain a code."""

    noisy = False

    def log(self, request: object) -> None:
        """Write no line for a request, since its URL contains a code."""


class CallbackListener(Resource):
    """A listener for the browser's return from one sign-in.

    Only the first valid return is read. No other request changes the result of the sign-in.

    :ivar redirect_uri: the URL to which the browser returns.
    """

    isLeaf = True

    def __init__(self, reactor: Any, port: int) -> None:
        """Listen on C{port} of 127.0.0.1, or on any free port if it is 0.

        :raises CommandError: if the port is in use.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self._reactor = reactor
        self._read: Callable[[str], str] | None = None
        self._came: str | SignInRefused | None = None
        self._done: Deferred[str] = Deferred()
        site = _QuietSite(self, timeout=_IDLE_SECONDS, reactor=reactor)  # type: ignore[no-untyped-call]
        try:
            self._port = reactor.listenTCP(port, site, interface=_HOST)
        except CannotListenError:
            raise CommandError(
                f"Cannot listen on port {port} for the browser to come back; nothing was bound.",
                "Choose another with --callback-port.",
            ) from None
        self.port: int = self._port.getHost().port
        self.redirect_uri = f"http://{_HOST}:{self.port}{_PATH}"

    async def wait(self, read: Callable[[str], str]) -> str:
        """Wait for the browser, pass its query to C{read}, stop listening, and return the result.

        :raises SignInRefused: if C{read} raised it, or the browser did not return in time.
        """
        self._read = read
        try:
            return await self._done.addTimeout(WAIT_SECONDS, self._reactor)
        except Overdue:
            raise SignInRefused(f"Nobody signed in within {WAIT_SECONDS // 60} minutes.") from None
        finally:
            self.close()

    def close(self) -> None:
        """Stop listening, and refuse requests on open connections. Idempotent."""
        self._read = None
        port, self._port = self._port, None
        if port is not None:
            port.stopListening()

    def render(self, request: Request) -> bytes:
        """Redirect the browser that returns from this sign-in, and refuse every other request."""
        for name, value in _HEADERS.items():
            request.setHeader(name, value)
        path, _, query = request.uri.decode("latin-1").partition("?")
        host = f"{_HOST}:{self.port}"
        if request.method != b"GET" or path != _PATH or request.getHeader("host") != host or self._read is None:
            return _say(request, 404, _NOT_OURS)
        if self._came is None:
            try:
                self._came = self._read(query)
            except NotOurCallback:
                return _say(request, 400, _NOT_OURS)
            except SignInRefused as refused:
                self._came = refused
            # Redirects to this page without the code, which then is not in the browser's history or address bar.
            self._reactor.callLater(_FOLLOWS_WITHIN_SECONDS, self._end)
            request.setHeader("Location", _PATH)
            return _say(request, 303, _OVER)
        if query:
            return _say(request, 400, _NOT_OURS)
        # The waiting caller may block at the terminal next, so the page must be sent first.
        self._reactor.callLater(_SENT_WITHIN_SECONDS, self._end)
        return _say(request, 200, _OVER)

    def _end(self) -> None:
        came = self._came
        if self._done.called or came is None:
            return
        if isinstance(came, SignInRefused):
            self._done.errback(came)
        else:
            self._done.callback(came)


def _say(request: Request, status: int, text: str) -> bytes:
    request.setResponseCode(status)
    return _PAGE.format(text=text).encode("utf-8")
