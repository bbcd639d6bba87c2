"""C{/mcp} of the agent site: the guard of every route, then the room that speaks the protocol."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.defer import CancelledError, Deferred
from twisted.web.iweb import IRequest

from aileron.errors import AileronError, Unauthorized
from aileron.interfaces import IMcp
from aileron.values import McpReply, McpRequest

from ._faults import Streamed, failed
from ._guard import Who, admit, bearer, keep_place, on_agent_site
from ._parts import Parts
from ._serving import unexpected, write
from .channels.streaming import stream

MCP_PATH = b"/mcp"


def mcp_handler(mcp: IMcp, parts: Parts) -> Callable[[IRequest], Deferred[bytes]]:
    """Make the Klein handler of C{/mcp}: it lets agents in by their token, and carries what they are answered."""

    async def serve(request: IRequest) -> bytes:
        try:
            reply = await mcp.serve(await _admitted(request, parts))
        except AileronError as error:
            return write(request, failed(error))
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001  # the HTTP rim
            return write(request, unexpected("mcp"))
        try:
            return await stream(request, _streamed(reply))
        finally:
            reply.close()

    return lambda request: Deferred.fromCoroutine(serve(request))


async def _admitted(request: IRequest, parts: Parts) -> McpRequest:
    caller = await admit(Who.AGENT, partial(on_agent_site, request, parts), partial(keep_place, request))
    if caller.session is None:
        raise Unauthorized("This needs an agent's token.")
    fields = [(name, value) for name, values in request.requestHeaders.getAllRawHeaders() for value in values]
    return McpRequest(
        session=caller.session,
        token=bearer(request),
        method=request.method.decode("ascii"),
        path=MCP_PATH.decode("ascii"),
        fields=fields,
        body=request.content.read(),
    )


def _streamed(reply: McpReply) -> Streamed:
    headers = dict(reply.headers)
    kind = headers.pop("content-type", "application/json")
    return Streamed(reply.chunks, kind, reply.status, headers)
