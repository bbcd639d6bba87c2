"""A local OAuth 2 authorization server that rotates its refresh tokens, and misbehaves as told."""

import base64
import html
import json
import uuid
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Literal
from urllib.parse import parse_qs, urlencode

import attrs
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

from tests.functional.loopback import LoopbackSite, abort
from tests.functional.reactor import IKitReactor

Fault = Literal["busy", "garbage", "drop", "held", "held before", "gone"]
"""How one request is treated: status 503, an answer that is no token, a reset connection, an answer that is held after
or before the refresh token was rotated, or C{invalid_grant}."""


@attrs.define
class Grants:
    """What the server knows.

    :ivar refresh: the one refresh token that is good.
    :ivar seconds: for how long an access token is.
    :ivar next: faults of the coming requests, spent in order.
    :ivar asked: the refresh tokens that were sent, in order.
    :ivar given: every token that was given out.
    :ivar on_token: told of each access token, which is the good one from then on.
    :ivar answer: what the page that asks a person sends back in place of, or beside, the code and the state.
    :ivar leaves_out: members of the next token answers that are left out.
    :ivar scope: that is given; empty: the token answer says nothing of it.
    :ivar wanted: the scopes that were asked for on a device.
    :ivar codes: the codes that are good, each with what it was asked for with.
    :ivar spent: every code that was given out, and every verifier and state that was sent.
    """

    on_token: Callable[[str], None]
    secret: str = attrs.Factory(lambda: f"client-{uuid.uuid4().hex}")
    refresh: str = attrs.Factory(lambda: f"refresh-{uuid.uuid4().hex}")
    seconds: int = 3600
    next: list[Fault] = attrs.Factory(list)
    asked: list[str] = attrs.Factory(list)
    given: list[str] = attrs.Factory(list)
    answer: dict[str, str] = attrs.Factory(dict)
    leaves_out: set[str] = attrs.Factory(set)
    scope: str = ""
    wanted: list[str] = attrs.Factory(list)
    codes: dict[str, dict[str, str]] = attrs.Factory(dict)
    spent: list[str] = attrs.Factory(list)

    def ask(self, asked: dict[str, str]) -> str:
        """Where the browser of a person who says yes is sent."""
        code = f"code-{uuid.uuid4().hex}"
        self.codes[code] = asked
        self.spent += [code, asked["state"]]
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], **self.answer})}"

    def begin_on_device(self) -> dict[str, Any]:
        """Wait for a person who enters the code."""
        code = f"device-{uuid.uuid4().hex}"
        self.codes[code] = {}
        self.spent.append(code)
        page = "https://login.invalid/device"
        return {
            "device_code": code,
            "user_code": "WDJB-MJHT",
            "verification_uri": page,
            "expires_in": 60,
            "interval": 1,
        }

    def allow_devices(self) -> None:
        """Have the person enter every code."""
        for asked in self.codes.values():
            asked["allowed"] = "yes"

    def redeem(self, form: dict[str, str]) -> bool:
        """Whether a code is good here: once, for its client, its callback and its verifier."""
        self.spent.append(form.get("code_verifier", ""))
        asked = self.codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest())
        return (
            asked is not None
            and (asked["client_id"], asked["redirect_uri"]) == (form.get("client_id"), form.get("redirect_uri"))
            and (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
            and asked["code_challenge"] == challenge.rstrip(b"=").decode()
        )

    def rotate(self) -> dict[str, Any]:
        """Give out new tokens; the old ones are good no more."""
        access, self.refresh = f"access-{uuid.uuid4().hex}", f"refresh-{uuid.uuid4().hex}"
        self.given += [access, self.refresh]
        self.on_token(access)
        answer = {
            "access_token": access,
            "refresh_token": self.refresh,
            "token_type": "bearer",
            "expires_in": self.seconds,
            **({"scope": self.scope} if self.scope else {}),
        }
        return {name: value for name, value in answer.items() if name not in self.leaves_out}


class _TokenEndpoint(Resource):
    isLeaf = True

    def __init__(self, grants: Grants) -> None:
        Resource.__init__(self)
        self._grants = grants

    def _answer_device(self, request: Request, code: str) -> bytes:
        if code not in self._grants.codes:
            return _refuse(request, "expired_token")
        if "allowed" not in self._grants.codes[code]:
            return _refuse(request, "authorization_pending")
        del self._grants.codes[code]
        return _end(request, 200, json.dumps(self._grants.rotate()).encode())

    def render_GET(self, request: Request) -> bytes:
        """The page that asks a person."""
        path, _, query = request.uri.decode().partition("?")
        if path != "/authorize":  # a browser asks for an icon as well
            return _end(request, 404, b"")
        asked = {name: values[0] for name, values in parse_qs(query, strict_parsing=True).items()}
        link = html.escape(self._grants.ask(asked))
        request.setHeader("Content-Type", "text/html; charset=utf-8")
        return f'<!doctype html><title>Sign in</title><p>Allow it?</p><a id="yes" href="{link}">Allow</a>'.encode()

    def render_POST(self, request: Request) -> bytes | int:
        """Answer a request for a token, or for the codes of a device."""
        assert request.content is not None
        form = {name: values[0] for name, values in parse_qs(request.content.read().decode()).items()}
        if request.path == b"/device":
            self._grants.wanted.append(form.get("scope", ""))
            return _end(request, 200, json.dumps(self._grants.begin_on_device()).encode())
        if "device_code" in form:
            return self._answer_device(request, form["device_code"])
        return self._answer_token(request, form)

    def _answer_token(self, request: Request, form: dict[str, str]) -> bytes | int:
        grants, by_code = self._grants, form.get("grant_type") == "authorization_code"
        if not by_code:
            grants.asked.append(form.get("refresh_token", ""))
        fault = grants.next.pop(0) if grants.next else None
        if fault == "drop":
            abort(request)
            return NOT_DONE_YET
        if fault == "held before":
            return NOT_DONE_YET
        if fault == "busy":
            return _end(request, 503, b"Busy.")
        if form.get("client_secret") != grants.secret:
            return _refuse(request, "invalid_client")
        good = grants.redeem(form) if by_code else form.get("refresh_token") == grants.refresh
        if not good or fault == "gone":
            return _refuse(request, "invalid_grant")
        if fault == "garbage":
            return _end(request, 200, b"<html>Sign in to the airport's network</html>")
        answer = json.dumps(grants.rotate()).encode()
        return NOT_DONE_YET if fault == "held" else _end(request, 200, answer)


def _refuse(request: Request, code: str) -> bytes:
    return _end(request, 400, json.dumps({"error": code, "error_description": "No."}).encode())


def _end(request: Request, status: int, body: bytes) -> bytes:
    request.setResponseCode(status)
    return body


@attrs.define
class AuthorizationServer:
    """The running server; `grants` tells what it saw."""

    grants: Grants
    _site: LoopbackSite

    @classmethod
    def listen(cls, reactor: IKitReactor, on_token: Callable[[str], None]) -> "AuthorizationServer":
        """Start to listen."""
        grants = Grants(on_token)
        return cls(grants, LoopbackSite.listen(reactor, _TokenEndpoint(grants)))

    @property
    def token_url(self) -> str:
        """Where tokens are had."""
        return f"{self._site.url}/token"

    @property
    def authorize_url(self) -> str:
        """Where a person signs in."""
        return f"{self._site.url}/authorize"

    @property
    def device_url(self) -> str:
        """Where signing in on another device begins."""
        return f"{self._site.url}/device"

    def document(self) -> str:
        """What is kept of a sign-in there."""
        return json.dumps(
            {
                "grant": "authorization_code",
                "client_id": "aileron",
                "client_secret": self.grants.secret,
                "token_url": self.token_url,
                "refresh_token": self.grants.refresh,
            }
        )

    async def stop(self) -> None:
        """Close the port and every connection, hanging ones too."""
        await self._site.stop()
