"""An agent's session whose tool sends writes by the daemon's proxy, as in a sandbox."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from aileron.features.egress.values import EGRESS_LINE
from aileron.home.discovery import Discovery
from tests.matrix.crash.sites import GoneError, Site

SERVICE, HOST = "matrix", "localhost"
DIRECTORY = "/project"
_SECONDS = 60.0
_WEEK = 7 * 24 * 60  # in minutes


class SessionOver(Exception):
    """The session has ended."""


class ProxyRefused(AssertionError):
    """The proxy does not let a connection to the service in, for the reason that it gives."""


@frozen
class Got:
    """The answer to a tool.

    :ivar run: the run that the answer names, or empty.
    """

    status: int
    body: Mapping[str, Any]
    run: str

    @property
    def code(self) -> str:
        """The reason of Aileron's refusals, or empty."""
        return str(self.body.get("code", ""))

    @property
    def waits(self) -> bool:
        """Whether the command is to be run again for its result."""
        return self.code in ("pending_approval", "in_progress")


@frozen
class ToolSession:
    """A session with opened services.

    :ivar launcher: the site with the launch key, as a launcher has it.
    :ivar own: the site with the session's token.
    :ivar context: trusts the session's authority alone.
    """

    id: str
    launcher: Site
    own: Site
    port: int
    context: ssl.SSLContext = field(repr=False)

    async def send(self, text: str) -> Got:
        """Send a write on a new connection.

        :raises GoneError: if the daemon ended before it answered.
        :raises ProxyRefused: if the daemon's proxy does not let it in.
        """
        content = json.dumps({"text": text}).encode()
        head = f"POST /post HTTP/1.1\r\nHost: {HOST}:{self.port}\r\nIdempotency-Key: {text}.only\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        try:
            return await asyncio.wait_for(self._exchange(head.encode() + content), _SECONDS)
        except TimeoutError:
            raise AssertionError(f"the tool got no answer to {text}") from None
        except (OSError, EOFError) as error:
            raise GoneError from error

    async def _exchange(self, request: bytes) -> Got:
        reader, writer = await self._connect()
        try:
            established = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in established:
                raise ProxyRefused(established.decode("latin-1"))
            await writer.start_tls(self.context, server_hostname=HOST)
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            fields = {name.lower(): value for name, _, value in (line.partition(": ") for line in head.split("\r\n"))}
            content = await reader.readexactly(int(fields["content-length"]))
            assert "json" in fields.get("content-type", ""), f"{head}{content!r}"
            body = json.loads(content)
            return Got(int(head.split(" ")[1]), body, fields.get("aileron-run", ""))
        finally:
            writer.close()

    async def is_refused(self) -> str:
        """Return the proxy's refusal of a connection to the service, or empty if it is let in."""
        reader, writer = await self._connect()
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            return "" if " 200 " in head else head + (await reader.read()).decode("latin-1")
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        said = await self.launcher.post(f"/v1/sessions/{self.id}/egress", {"allow": []})
        if said.status == 404:
            raise SessionOver
        assert said.well, said
        reader, writer = await asyncio.open_connection("127.0.0.1", said.body["port"])
        host = f"{HOST}:{self.port}".encode()
        writer.write(EGRESS_LINE + said.body["ticket"].encode() + b"\r\nCONNECT " + host + b" HTTP/1.1\r\n\r\n")
        return reader, writer

    def at(self, found: Discovery) -> ToolSession:
        """Return this session at the next life of the daemon."""
        launcher = Site(found.url, found.launch_key)
        return ToolSession(self.id, launcher, Site(found.url, self.own.token), self.port, self.context)

    async def end(self) -> None:
        """End it, as the launcher does when the agent ends."""
        said = await self.own.post(f"/v1/sessions/{self.id}/end", {})
        assert said.well or said.status == 401, said  # a life may have ended it and not said so


async def enter(found: Discovery, port: int) -> ToolSession:
    """Open a session of the agent, and the service for its tools.

    :param port: the service's.
    """
    launcher = Site(found.url, found.launch_key)
    claim = {"agent": "matrix", "working_dir": DIRECTORY, "minutes": _WEEK}
    opened = (await launcher.post("/v1/sessions", claim)).body
    said = await launcher.post(f"/v1/sessions/{opened['id']}/own-tools", {"services": [SERVICE]})
    assert said.well, said
    context = ssl.create_default_context(cadata=said.body["certificate"])
    return ToolSession(opened["id"], launcher, Site(found.url, opened["token"]), port, context)
