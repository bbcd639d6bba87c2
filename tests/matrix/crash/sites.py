"""The daemon's two sites, asked by somebody who must expect that it ends in the middle of the answer."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve, frozen

from aileron.base.addresses import connectable
from aileron.client import TerminalKey, item_of
from aileron.home.discovery import Discovery
from aileron.vault.keys import DataKey, LoginExchange, client_proof, new_nonce, operator_key

_SECONDS = 60.0  # an answer may wait for a database that stands still, on a busy machine
_WEEK = 7 * 24 * 60  # in minutes


class GoneError(Exception):
    """The daemon ended before it answered."""


@frozen
class Said:
    """An answer."""

    status: int
    body: Mapping[str, Any]

    @property
    def well(self) -> bool:
        """Whether it is a success."""
        return self.status < 300


@frozen
class Site:
    """One site, with one credential.

    :ivar in_band_key: of the agent's session.
    :ivar key: with which decisions are signed.
    :ivar seconds: the time by the daemon's clock.
    """

    url: str
    token: str
    in_band_key: str = ""
    key: TerminalKey | None = None
    seconds: Callable[[], float] = time.time

    async def get(self, path: str) -> Said:
        """Look."""
        return await self._ask("GET", path, None)

    async def post(self, path: str, body: Mapping[str, Any] | None = None, wait: int | None = None) -> Said:
        """Do.

        :param wait: as of C{Prefer}.
        """
        return await self._ask("POST", path, self._signed(path, body or {}), wait)

    def _signed(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.key is None or not path.endswith("/decide"):
            return body
        return {**body, "signed": self.key.sign([item_of(path.split("/")[-2], body)], self.seconds())}

    async def delete(self, path: str) -> Said:
        """Undo."""
        return await self._ask("DELETE", path, {})

    async def ask_model(self, path: str, body: Mapping[str, Any], tries: int) -> Said:
        """Ask a model in in-band mode, as the SDKs do.

        :param tries: how often the same was asked before.
        """
        lines = f"X-Aileron-Gateway-Key: {self.in_band_key}\r\nX-Stainless-Retry-Count: {tries}\r\n"
        return await evolve(self, token="sk-of-the-agent")._ask("POST", path, body, 1, lines)

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None, wait: int | None = None, lines: str = ""
    ) -> Said:
        try:
            return await asyncio.wait_for(self._asked(method, path, body, wait, lines), _SECONDS)
        except TimeoutError:
            raise AssertionError(f"{method} {path} got no answer") from None
        except (OSError, EOFError) as error:
            raise GoneError from error

    async def _asked(
        self, method: str, path: str, body: Mapping[str, Any] | None, wait: int | None, lines: str
    ) -> Said:
        where = urlsplit(self.url)
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: {where.netloc}\r\n{lines}"
        head += f"Authorization: Bearer {self.token}\r\n" if self.token else ""
        head += "Connection: close\r\n" + (f"Prefer: wait={wait}\r\n" if wait is not None else "")
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        reader, writer = await asyncio.open_connection(connectable(where.hostname or ""), where.port)
        try:
            writer.write(f"{head}\r\n".encode() + content)
            answered = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            length = int(answered.lower().split("content-length:")[1].split("\r\n")[0])
            return Said(int(answered.split(" ")[1]), json.loads(await reader.readexactly(length)))
        finally:
            writer.close()


async def operator(found: Discovery, key: DataKey, seconds: Callable[[], float] = time.time) -> Site:
    """The operator, logged in as C{aileron operator login} does it.

    :param seconds: the time by the daemon's clock.

    :raises GoneError: it ended.
    """
    nonce = new_nonce()
    site = Site(found.operator_url, "")
    theirs = (await site.post("/v1/operator/challenge", {"nonce": nonce})).body["nonce"]
    own = TerminalKey.make(found.instance)
    exchange = LoginExchange(nonce, theirs, found.instance, found.operator_url, own.public_key)
    proof = client_proof(operator_key(key), exchange)
    said = await site.post("/v1/operator/login", {"nonce": theirs, "proof": proof, "public_key": own.public_key})
    return Site(found.operator_url, said.body["token"], key=own, seconds=seconds)


async def agent(found: Discovery) -> Site:
    """A new session of an agent."""
    claim = {"agent": "matrix", "working_dir": "/", "minutes": _WEEK}  # a clock that is set days ahead ends no session
    said = await Site(found.url, found.launch_key).post("/v1/sessions", {**claim, "in_band": True})
    return Site(found.url, said.body["token"], said.body["in_band_key"])


async def every_run(asking: Site) -> dict[str, Mapping[str, Any]]:
    """All runs of the session, by id."""
    runs: dict[str, Mapping[str, Any]] = {}
    cursor = ""
    while True:
        body = (await asking.get(f"/v1/runs?limit=1000{cursor}")).body
        runs |= {run["id"]: run for run in body["items"]}
        if body["cursor"] is None:
            return runs
        cursor = f"&cursor={body['cursor']}"
