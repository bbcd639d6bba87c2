"""A sign-in provider on loopback: the one of the unit tests, with a page at which the person presses a button."""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from urllib.parse import unquote

import attrs
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from tests.features.oidc.issuer import CLIENT_ID, Issuer
from tests.functional.loopback import LoopbackSite
from tests.functional.reactor import IKitReactor


class _Endpoints(Resource):
    """All paths of the provider.

    :ivar answer_with: gets each request of the daemon, and returns the answer in place of the provider's, or None.
    :ivar changed: members that replace those of the page's answer. None leaves one out.
    """

    isLeaf = True

    def __init__(self) -> None:
        Resource.__init__(self)
        self.issuer = Issuer("", time.time)
        self.answer_with: Callable[[Request], bytes | int | None] = lambda _: None
        self.changed: dict[str, str | None] = {}

    def render_GET(self, request: Request) -> bytes | int:
        """Answer with a document, or with the page that asks the person."""
        path, _, query = request.uri.decode().partition("?")
        if path != "/authorize":
            return self._answer(request, path, None)
        asked = f"https://provider.invalid/?{query}"
        answer = self.issuer.visit(asked, **self.changed)
        [target] = [each.partition("=")[2] for each in query.split("&") if each.startswith("redirect_uri=")]
        link = html.escape(f"{unquote(target)}?{answer}")
        request.setHeader("Content-Type", "text/html; charset=utf-8")
        return f'<!doctype html><title>Log in</title><p>Are you Alice?</p><a id="yes" href="{link}">Log in</a>'.encode()

    def render_POST(self, request: Request) -> bytes | int:
        """Answer a request for a token."""
        assert request.content is not None
        return self._answer(request, request.path.decode(), request.content.read())

    def _answer(self, request: Request, path: str, body: bytes | None) -> bytes | int:
        other = self.answer_with(request)
        if other is not None:
            return other
        headers = {
            name.decode().lower(): values[0].decode() for name, values in request.requestHeaders.getAllRawHeaders()
        }
        status, answer = self.issuer.answer(path, body, headers)
        request.setResponseCode(status)
        request.setHeader("Content-Type", "application/json")
        return answer


@attrs.define
class OidcProvider:
    """The running provider; ``issuer`` tells what it saw, and what it does."""

    issuer: Issuer
    _site: LoopbackSite
    _endpoints: _Endpoints

    @classmethod
    def listen(cls, reactor: IKitReactor) -> OidcProvider:
        """Start to listen."""
        endpoints = _Endpoints()
        site = LoopbackSite.listen(reactor, endpoints)
        endpoints.issuer.url = site.url
        return cls(endpoints.issuer, site, endpoints)

    def config(self, **more: str) -> str:
        """The configuration of a daemon that trusts this provider."""
        keys = {
            "issuer": self.issuer.url,
            "client_id": CLIENT_ID,
            "title": "Example",
            "private_network": "true",
            "roles": "{ops: approver, boss: administrator}",
            **more,
        }
        return "oidc:\n" + "".join(f"  {name}: {value}\n" for name, value in keys.items())

    def answer_with(self, answer: Callable[[Request], bytes | int | None]) -> None:
        """Have the daemon's requests answered by a function, except where it returns None."""
        self._endpoints.answer_with = answer

    def send_back(self, **changed: str | None) -> None:
        """Have the page send other members back."""
        self._endpoints.changed = changed

    async def stop(self) -> None:
        """Close the port and every connection, hanging ones too."""
        await self._site.stop()


def hang(request: Request) -> int:
    """Answer never."""
    return NOT_DONE_YET


def flood(request: Request) -> bytes:
    """Answer with a document that has no end in reason."""
    request.setHeader("Content-Type", "application/json")
    return b'{"issuer": "' + b"x" * 4 * 1024 * 1024 + b'"}'


def redirect(request: Request) -> bytes:
    """Redirect to another place of this machine."""
    request.setResponseCode(302)
    request.setHeader("Location", "http://127.0.0.1:1/elsewhere")
    return b""


def show_portal(request: Request) -> bytes:
    """Answer with a page, as the network of an airport does."""
    request.setHeader("Content-Type", "text/html")
    return b"<html>Sign in to the airport's network</html>"
