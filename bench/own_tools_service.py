"""A service over TLS: C{python -m bench.own_tools_service CERTIFICATE KEY BYTES}. Prints its port.

C{/long} is so many bytes, everything else 2 KB. Connections are kept.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import sys
from contextlib import suppress

_SMALL = b'{"name": "' + b"n" * 2000 + b'"}'


async def main(certificate: str, key: str, size: str) -> None:
    """Serve until the process ends."""
    long = random.Random(1).randbytes(int(size))  # as of a download: no text

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = long if head.startswith(b"GET /long") else _SMALL
                kind = b"application/octet-stream" if body is long else b"application/json"
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body)))
                writer.write(body)
                await writer.drain()
        writer.close()

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
