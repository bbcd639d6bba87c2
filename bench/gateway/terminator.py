"""TLS before the mock: C{python -m bench.gateway.terminator CERTIFICATE KEY PORT}.

Prints the port that it serves.  The same for all that are measured, and not counted to any of them.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import Any

from attrs import define, field


@define
class Side(asyncio.Protocol):
    """One of two connections: what comes here goes out there."""

    other: Side | None = None
    transport: Any = None
    early: list[bytes] = field(factory=list)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self.early.append(data)
        else:
            self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()

    def join(self, other: Side) -> None:
        """Pass on what came before there was anybody to pass it to."""
        self.other = other
        other.transport.writelines(self.early)
        if self.transport.is_closing():
            other.transport.close()


@define
class Accepted(Side):
    """A connection of a proxy that is measured.

    :ivar port: where the mock is.
    """

    port: int = 0
    joining: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.joining = asyncio.ensure_future(self._join())

    async def _join(self) -> None:
        _, upstream = await asyncio.get_running_loop().create_connection(lambda: Side(self), "127.0.0.1", self.port)
        self.join(upstream)


async def main(certificate: str, key: str, port: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Accepted(port=int(port)), "127.0.0.1", 0, ssl=context, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
