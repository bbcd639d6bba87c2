"""A double of any service with a REST API: it takes one credential, and counts what was read and written."""

from __future__ import annotations

import json
from collections.abc import Mapping

from twisted.web.resource import Resource
from twisted.web.server import Request

from aileron.base.json import JSON


class RestService(Resource):
    """A service that answers everything.

    :ivar credential: the header and the value that it takes.
    :ivar answers: its answers, by method and path as they are sent. Any other request has an empty object.
    :ivar reads: the requests by C{GET} and C{HEAD}, and those of C{reading}, as method and path.
    :ivar effects: the other requests, each with its body.
    :ivar keys: the idempotency keys of the effects.
    :ivar refused: requests without the credential.
    """

    isLeaf = True

    def __init__(self, credential: tuple[str, str], answers: Mapping[str, JSON], *reading: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.credential, self.answers, self.reading = credential, answers, reading
        self.reads: list[str] = []
        self.effects: list[str] = []
        self.keys: list[str | None] = []
        self.refused: list[str] = []

    def render(self, request: Request) -> bytes:
        """Answer one request."""
        request.setHeader("Content-Type", "application/json")
        header, value = self.credential
        what = f"{request.method.decode()} {request.uri.decode().partition('?')[0]}"
        if request.requestHeaders.getRawHeaders(header) != [value]:
            self.refused.append(what)
            request.setResponseCode(401)
            return b'{"message": "401 Unauthorized"}'
        assert request.content is not None
        body = request.content.read().decode()
        if request.method in (b"GET", b"HEAD") or what in self.reading:
            self.reads.append(what)
        else:
            self.effects.append(f"{what} {body}".strip())
            self.keys.append(request.getHeader("Idempotency-Key"))
        return json.dumps(self.answers.get(what, {})).encode()
