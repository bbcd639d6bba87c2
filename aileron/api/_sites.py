"""The resources of both sites, made of one table of endpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from urllib.parse import unquote_to_bytes

from attrs import evolve, frozen
from klein import Klein
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource, Resource, getChildForRequest
from twisted.web.server import NOT_DONE_YET

from aileron.values import RelayedPath

from ._endpoint import Endpoint
from ._faults import Answer, encode, http_failure
from ._guard import NONE, Identify, Who, on_agent_site, on_operator_site
from ._mcp import Mounted
from ._parts import Parts
from ._serving import guarded, routing_failed, write
from ._straight import Handler, Straight, finish
from ._tables import TABLES
from .shapes.openapi import document, page

_NAVIGATIONS = frozenset((b"GET", b"HEAD"))
_OURS = frozenset((b"v1", b"docs", b"metrics"))
HANDOVER = b"/handover"
_REGISTRATION = b"/handover/key"


@frozen
class SiteRoutes:
    """One site's share of the endpoints.

    :ivar endpoints: each with who may call it there.
    :ivar relayed: what the gateway takes of it.
    """

    title: str
    endpoints: tuple[tuple[Endpoint, Who], ...]
    identify: Identify
    relayed: Callable[[], Iterable[RelayedPath]] = tuple


def agent_routes() -> SiteRoutes:
    """What the agent site serves."""
    return SiteRoutes("Aileron, agent site", tuple(_share(True)), on_agent_site)


def operator_routes() -> SiteRoutes:
    """What the operator site serves."""
    return SiteRoutes("Aileron, operator site", tuple(_share(False)), on_operator_site)


def _share(agents: bool) -> Iterator[tuple[Endpoint, Who]]:
    for table in TABLES:
        for endpoint in table.endpoints:
            allowed = endpoint.agents if agents else endpoint.operators
            if allowed != NONE:
                yield endpoint, allowed


def agent_site(parts: Parts, mounts: Mapping[str, IResource] | None = None) -> IResource:
    """The agent site's root resource.

    :param mounts: more resources, by the first segment of their paths (such as C{mcp}); they guard themselves.
    """
    own = {} if parts.mcp is None else {"mcp": Mounted(parts.mcp, parts)}
    return _root(evolve(agent_routes(), relayed=parts.relayed), parts, {**own, **(mounts or {})}, None)


def operator_site(
    parts: Parts, mounts: Mapping[str, IResource] | None = None, web: Callable[[], IResource] | None = None
) -> IResource:
    """The operator site's root resource.

    :param mounts: as of L{agent_site}.
    :param web: makes what takes every other GET outside C{/v1}, C{/docs} and C{/metrics}, and the posts below
        C{/handover}; it guards itself.
    """
    return _root(operator_routes(), parts, mounts or {}, web, docs=True)


def _root(
    routes: SiteRoutes,
    parts: Parts,
    mounts: Mapping[str, IResource],
    web: Callable[[], IResource] | None,
    *,
    docs: bool = False,
) -> IResource:
    handlers = [
        (endpoint, guarded(endpoint, allowed, routes.identify, parts)) for endpoint, allowed in routes.endpoints
    ]
    return _Root(Straight.to(handlers), lambda: _klein(handlers, routes, parts.version, docs), mounts, web)


def _klein(handlers: Iterable[tuple[Endpoint, Handler]], routes: SiteRoutes, version: str, docs: bool) -> IResource:
    app = Klein()
    for endpoint, handler in handlers:
        app.route(endpoint.path, methods=[endpoint.method], endpoint=endpoint.name)(handler)
    _publish(app, routes, version, docs)
    app.handle_errors(Exception)(routing_failed)
    return app.resource()


def _publish(app: Klein, routes: SiteRoutes, version: str, docs: bool) -> None:
    """Serve what describes the site, which is no secret: it is in the documentation as well.

    It is written when it is first asked for: few daemons ever are, and it would be half a megabyte in each.
    """

    @cache
    def described() -> Answer:
        return Answer(200, encode(document(routes.title, version, routes.endpoints, routes.relayed())))

    @cache
    def shown() -> Answer:
        return Answer(200, page(routes.title, routes.endpoints).encode(), content_type="text/html; charset=utf-8")

    app.route("/v1/openapi.json", methods=["GET"], endpoint="openapi")(lambda request: write(request, described()))
    if docs:
        app.route("/docs", methods=["GET"], endpoint="docs")(lambda request: write(request, shown()))


class _Root(Resource):
    """Hands each request to whom it belongs.

    :param api: makes what takes a request that goes no straight way; not before there is one, since it takes its time.
    :param web: the same of what takes a page's.
    """

    isLeaf = True

    def __init__(
        self,
        straight: Straight,
        api: Callable[[], IResource],
        mounts: Mapping[str, IResource],
        web: Callable[[], IResource] | None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._straight = straight
        self._api = cache(api)
        self._mounts = {name.encode("ascii"): resource for name, resource in mounts.items()}
        self._web = None if web is None else cache(web)

    def render(self, request: IRequest) -> bytes | int:
        """See L{IResource.render}."""
        if b"%" in request.path and not _readable(request.path):
            return write(request, http_failure(400, "The path is not UTF-8."))
        first = request.path[1:].partition(b"/")[0]
        mount = self._mounts.get(first)
        if mount is not None:
            return _descend(mount, request, 1)
        found = self._straight.find(request.method, request.path)
        if found is not None:
            handler, path = found
            finish(request, handler(request, **path))
            return NOT_DONE_YET
        if self._web is not None and first not in _OURS and _for_pages(request):
            return _descend(self._web(), request, 0)
        return _descend(self._api(), request, 0)


def _for_pages(request: IRequest) -> bool:
    return request.method in _NAVIGATIONS or (request.method == b"POST" and request.path in (HANDOVER, _REGISTRATION))


def _readable(path: bytes) -> bool:
    try:
        unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _descend(resource: IResource, request: IRequest, segments: int) -> bytes | int:
    request.prepath.extend(request.postpath[:segments])
    request.postpath = request.postpath[segments:]
    body: bytes | int = getChildForRequest(resource, request).render(request)
    return body
