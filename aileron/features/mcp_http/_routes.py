"""The route C{/mcp} of the agent site. It authenticates agents as all routes of the site do."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from twisted.internet.defer import CancelledError
from twisted.web.iweb import IRequest

from aileron.api.agent_routes import HeldBodies, SiteHandler
from aileron.api.channels.request import stream
from aileron.api.dependencies import Dependencies
from aileron.api.faults import Streamed, describe_failure
from aileron.api.guard import Who, admit, bearer, keep_place, on_agent_site
from aileron.api.serving import notes_of_request, read_body, unexpected, write
from aileron.base.json import MOST_VALUES
from aileron.model.errors import AileronError, Unauthorized

from .values import PATH, IMcp, McpRequest


def mcp_handler(mcp: IMcp) -> SiteHandler:
    """Return the handler of C{/mcp}. It authenticates agents by their token, and streams the answers of C{mcp}."""
    bodies = HeldBodies()

    async def serve(request: IRequest, deps: Dependencies) -> bytes:
        with ExitStack() as under_way:
            try:
                admitted = await _admit(request, deps)
                under_way.enter_context(bodies.hold(admitted.token, len(admitted.body)))
                reply = await mcp.serve(admitted)
            except AileronError as error:
                return write(request, describe_failure(error))
            except CancelledError:
                raise
            except Exception:  # noqa: BLE001  # the HTTP rim
                return write(request, describe_failure(unexpected("mcp", request_id=notes_of_request(request).id)))
            try:
                headers = dict(reply.headers)
                kind = headers.pop("content-type", "application/json")
                return await stream(request, Streamed(reply.chunks, kind, reply.status, headers))
            finally:
                reply.close()

    return serve


async def _admit(request: IRequest, deps: Dependencies) -> McpRequest:
    """Authenticate the agent, and return the agent's request.

    :raises Unauthorized: if the caller is not an agent with a token.
    :raises InvalidRequest: if the body has more JSON values than the routes accept.
    """
    caller = await admit(Who.AGENT, partial(on_agent_site, request, deps), partial(keep_place, request))
    if caller.session is None:
        raise Unauthorized("This needs an agent's token.")
    notes_of_request(request).session_id = caller.session.id
    body = request.content.read()
    if (
        len(body) > MOST_VALUES
    ):  # a shorter body cannot exceed the limit; parsed, each value takes far more memory than its bytes
        read_body(body)
    fields = [(name, value) for name, values in request.requestHeaders.getAllRawHeaders() for value in values]
    return McpRequest(
        session=caller.session,
        token=bearer(request),
        method=request.method.decode("ascii"),
        path=PATH,
        fields=fields,
        body=body,
    )
