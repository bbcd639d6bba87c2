"""The double of a service that comes with Aileron: it answers its check with what was recorded, and signs people in."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from urllib.parse import parse_qs, urlencode

import attrs
import jwt
from twisted.web.resource import Resource
from twisted.web.server import Request

from aileron.connectors import ServiceAnswer, find_specimens
from aileron.features.setup.services import ReadyService
from aileron.home.paths import Home
from tests.functional.loopback import headers_of

ACCOUNT = "ada@example.org"
CLIENT, CLIENT_SECRET = "client-of-ada", "secret-canary-3d90"
_SIGNING_KEY = "a key of the service's own, which nobody verifies"
_TOKENS = {"access_token": "access-canary-77a1", "refresh_token": "refresh-canary-c0de"}


@attrs.frozen
class Asked:
    """What a service was asked."""

    method: str
    url: str
    headers: str


def recorded_answer(service: ReadyService, home: Home) -> ServiceAnswer:
    """What the service is recorded to answer to its check."""
    (text,) = (each.text for each in service.actions if each.name == service.check)
    operation = tomllib.loads(text.split("+++\n")[1])["execute"][0]["op"]
    (specimen,) = find_specimens(home.connectors, {service.connector})
    answer: ServiceAnswer
    (answer,) = specimen.samples[operation].done("key")
    return answer


class RecordedService(Resource):
    """The service, and its pages where one signs in.

    :ivar asked: what it was asked, without what belongs to signing in.
    """

    isLeaf = True

    def __init__(self, answer: ServiceAnswer | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._answer = answer
        self.asked: list[Asked] = []

    @property
    def secrets(self) -> Sequence[str]:
        """What it gives to whom signs in."""
        return [*_TOKENS.values(), CLIENT_SECRET]

    def render(self, request: Request) -> bytes:
        """Sign somebody in, or answer as was recorded."""
        path, _, query = request.uri.decode().partition("?")
        if "redirect_uri" in (asked := parse_qs(query)):
            back = urlencode({"code": "code-canary", "state": asked["state"][0]})
            request.redirect(f"{asked['redirect_uri'][0]}?{back}".encode())
            return b""
        if path.endswith("/token"):
            return self._give_tokens(request)
        url = f"https://{request.getRequestHostname().decode()}{request.uri.decode()}"
        self.asked.append(Asked(request.method.decode(), url, json.dumps(headers_of(request))))
        assert self._answer is not None, url
        request.setResponseCode(self._answer.status)
        for name, value in self._answer.headers.items():
            request.setHeader(name, value)
        return self._answer.body

    def _give_tokens(self, request: Request) -> bytes:
        assert request.content is not None
        form = parse_qs(request.content.read().decode())
        if (form["client_id"], form["code"]) != ([CLIENT], ["code-canary"]):
            request.setResponseCode(400)
            return b'{"error": "invalid_grant"}'
        claims = {"aud": CLIENT, "email": ACCOUNT, "preferred_username": ACCOUNT}
        more = {"token_type": "Bearer", "expires_in": 3600, "id_token": jwt.encode(claims, _SIGNING_KEY)}
        request.setHeader("Content-Type", "application/json")
        return json.dumps(_TOKENS | more).encode()
