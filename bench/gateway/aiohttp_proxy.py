"""A streaming reverse proxy as one writes it with aiohttp: C{python -m bench.gateway.aiohttp_proxy URL}.

Prints the port that it serves.
"""

from __future__ import annotations

import asyncio
import sys

from aiohttp import ClientSession, TCPConnector, web
from attrs import frozen
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

_HOP_BY_HOP = ("connection", "keep-alive", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade")


def passed_on(headers: CIMultiDictProxy[str], *besides: str) -> CIMultiDict[str]:
    """Those that concern the other end."""
    passed = CIMultiDict(headers)
    for name in (*_HOP_BY_HOP, *besides):
        passed.popall(name, None)
    return passed


@frozen
class Proxy:
    """To one upstream."""

    upstream: URL
    client: ClientSession

    async def relay(self, request: web.Request) -> web.StreamResponse:
        """Each piece the moment it comes."""
        url, headers = self.upstream.join(request.rel_url), passed_on(request.headers, "host")
        async with self.client.request(request.method, url, headers=headers, data=request.content) as answer:
            response = web.StreamResponse(status=answer.status, headers=passed_on(answer.headers))
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
            await response.write_eof()
        return response


async def main(upstream: str) -> None:
    connector = TCPConnector(limit=0)
    async with ClientSession(connector=connector, auto_decompress=False, skip_auto_headers=["User-Agent"]) as client:
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", Proxy(URL(upstream), client).relay)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
