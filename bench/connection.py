"""A client's connection to the daemon that is kept alive: one request at a time, and every answer a success."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from attrs import frozen


class RefusedError(RuntimeError):
    """An answer that is no success.

    :ivar kind: the class of its error.
    """

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(f"no success: {said}")
        self.kind = said.get("error", {}).get("class")


@frozen
class Connection:
    """Made by L{opened}."""

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _port: int

    async def post(self, path: str, token: str, body: dict[str, Any]) -> dict[str, Any]:
        """The JSON of the answer.

        :raises RefusedError: it is no success.
        """
        content = json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self._writer.write(head.encode() + content)
        answered = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answered.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        said: dict[str, Any] = json.loads(await self._reader.readexactly(length))
        if not answered.startswith(b"HTTP/1.1 20"):
            raise RefusedError(said)
        return said

    def close(self) -> None:
        """End it."""
        self._writer.close()


async def opened(port: int) -> Connection:
    """A connection to a port of loopback."""
    return Connection(*await asyncio.open_connection("127.0.0.1", port), port)
