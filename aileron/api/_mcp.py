"""C{/mcp} of the agent site: the guard of every route, then the room that speaks the protocol."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.web.iweb import IRequest
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from aileron.errors import AileronError, NotFound, Unauthorized
from aileron.interfaces import IMcp
from aileron.values import McpReply, McpRequest

from ._faults import Streamed, failed
from ._guard import Who, admit, bearer, on_agent_site
from ._parts import Parts
from ._serving import unexpected, write
from ._straight import finish
from .channels.streaming import stream

PATH = b"/mcp"


class Mounted(Resource):
    """Lets agents in by their token, and carries what they are answered."""

    isLeaf = True

    def __init__(self, mcp: IMcp, parts: Parts) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._mcp, self._parts = mcp, parts

    def render(self, request: IRequest) -> int:
        """See L{IResource.render}."""
        finish(request, Deferred.fromCoroutine(self._answer(request)))
        return NOT_DONE_YET

    async def _answer(self, request: IRequest) -> bytes:
        try:
            reply = await self._mcp.serve(await self._admitted(request))
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

    async def _admitted(self, request: IRequest) -> McpRequest:
        if request.path != PATH:
            raise NotFound("There is nothing at this path.")
        caller = await admit(request, self._parts, on_agent_site, Who.AGENT)
        if caller.session is None:
            raise Unauthorized("This needs an agent's token.")
        fields = [(name, value) for name, values in request.requestHeaders.getAllRawHeaders() for value in values]
        return McpRequest(
            session=caller.session,
            token=bearer(request),
            method=request.method.decode("ascii"),
            path=PATH.decode("ascii"),
            fields=fields,
            body=request.content.read(),
        )


def _streamed(reply: McpReply) -> Streamed:
    headers = dict(reply.headers)
    kind = headers.pop("content-type", "application/json")
    return Streamed(reply.chunks, kind, reply.status, headers)
