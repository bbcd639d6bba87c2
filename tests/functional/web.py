"""Asks an HTTP service of the test's own, one connection a request, as a program with or without a credential would."""

import json
from collections.abc import Mapping
from typing import Any

import attrs
from treq.client import HTTPClient
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers

from aileron.base.addresses import bracketed, connectable, read_origin
from tests.functional.reactor import IKitReactor

# As long as any single answer may take on a busy machine; longer waits say so themselves.
USUAL_SECONDS = 30.0


@attrs.frozen
class Reply:
    """What came back.

    :ivar text: the body, decoded.
    """

    status: int
    text: str
    headers: Headers

    @property
    def body(self) -> Mapping[str, Any]:
        """The JSON object."""
        content: Mapping[str, Any] = json.loads(self.text)
        return content


@attrs.frozen
class Web:
    """A client without a memory: no cookies, no connections kept, no redirects followed."""

    _reactor: IKitReactor

    async def ask(
        self,
        method: str,
        url: str,
        token: str | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        seconds: float = USUAL_SECONDS,
        **headers: str,
    ) -> Reply:
        """One request.

        :param token: a bearer credential.
        :param body: sent as JSON; None sends none.
        :param headers: more, an underscore for each hyphen of their names.
        """
        origin = read_origin(url)
        reached = url.replace(f"//{origin.authority}", f"//{bracketed(connectable(origin.host))}:{origin.port}", 1)
        given = {"Host": [origin.authority], **{name.replace("_", "-"): [text] for name, text in headers.items()}}
        if token is not None:
            given["Authorization"] = [f"Bearer {token}"]
        if body is not None:
            given["Content-Type"] = ["application/json"]
        client = HTTPClient(Agent(self._reactor, pool=HTTPConnectionPool(self._reactor, persistent=False)))
        response = await client.request(
            method,
            reached,
            headers=Headers(given),
            data=None if body is None else json.dumps(body).encode(),
            allow_redirects=False,
            timeout=seconds,
        )
        return Reply(response.code, await response.text("utf-8"), response.headers)
