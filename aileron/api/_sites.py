"""The resources of both sites: Klein applications made from one table of endpoints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import cache
from urllib.parse import unquote_to_bytes

from attrs import evolve, frozen
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource, Resource, getChildForRequest

from aileron.features import FeatureSet
from aileron.model.features import RelayedPath

from .agent_routes import AgentRoutes, SiteHandler
from .dependencies import Dependencies
from .endpoint import Endpoint, Schema
from .faults import Answer, encode, http_failure
from .guard import NONE, Identify, Who, on_agent_site, on_operator_site
from .routes import TABLES
from .routing import Routes
from .serving import guarded, routing_failed, write
from .shapes.openapi import document, page
from .shapes.schemas import widened

_NAVIGATIONS = frozenset((b"GET", b"HEAD"))
API_PATHS = frozenset((b"v1", b"docs", b"metrics"))
HANDOVER = b"/handover"
_HAND_OVER_POSTS = (HANDOVER, b"/handover/key", b"/handover/passkey", b"/handover/new-passkey")
_FRAGMENTS = b"/fragments/"


@frozen
class SiteRoutes:
    """The endpoints of one site.

    :ivar endpoints: each endpoint with the callers that it allows on this site.
    :ivar relayed: the paths that features serve instead of the site.
    :ivar members: a function that returns the JSON members that features add to a component schema, by the schema's
        name.
    """

    title: str
    endpoints: tuple[tuple[Endpoint, Who], ...]
    identify: Identify
    relayed: Callable[[], Iterable[RelayedPath]] = tuple
    members: Callable[[str], Mapping[str, Schema]] = lambda _: {}


def agent_routes(features: FeatureSet | None = None) -> SiteRoutes:
    """Return the endpoints of the agent site, with these features, or with all features that ship with Aileron."""
    return _routes("Aileron, agent site", True, features or FeatureSet(), on_agent_site)


def operator_routes(features: FeatureSet | None = None) -> SiteRoutes:
    """Return the endpoints of the operator site, with these features, or with all features that ship with Aileron."""
    return _routes("Aileron, operator site", False, features or FeatureSet(), on_operator_site)


def _routes(title: str, agents: bool, features: FeatureSet, identify: Identify) -> SiteRoutes:
    return SiteRoutes(title, tuple(_share(agents, features)), identify, members=features.members)


def _share(agents: bool, features: FeatureSet) -> Iterator[tuple[Endpoint, Who]]:
    for table in (*TABLES, *features.routes()):
        for endpoint in table.endpoints:
            allowed = endpoint.agents if agents else endpoint.operators
            if allowed != NONE:
                members = features.members(endpoint.name)
                yield endpoint if not members else _widen(endpoint, members), allowed


def _widen(endpoint: Endpoint, members: Mapping[str, Schema]) -> Endpoint:
    """Return the endpoint with its answer schemas extended by the JSON members that features add.

    :param members: the schemas of these members, by name.
    """
    return evolve(endpoint, answers={status: widened(schema, members) for status, schema in endpoint.answers.items()})


def agent_site(deps: Dependencies) -> tuple[IResource, AgentRoutes]:
    """Build the agent site.

    :return: the site's root resource, with the resources that features add, and its routes for callers in this process.
    """
    shared = evolve(agent_routes(deps.features.features), relayed=deps.features.relayed)
    app = _klein(shared, deps)
    for path, handler in deps.features.resources().items():
        app.route(path, endpoint=path)(_bind(handler, deps))
    endpoints = {endpoint.name: (endpoint, allowed) for endpoint, allowed in shared.endpoints}
    return _Root(app.resource()), AgentRoutes(endpoints, app.url_map, deps)


def _bind(handler: SiteHandler, deps: Dependencies) -> Callable[[IRequest], Awaitable[bytes]]:
    async def serve(request: IRequest) -> bytes:
        return await handler(request, deps)

    return serve


def operator_site(deps: Dependencies, web: Callable[[], IResource] | None = None) -> IResource:
    """Return the operator site's root resource.

    :param web: makes the resource of the pages. It serves all other GET requests outside C{/v1}, C{/docs} and
    C{/metrics}, and POST requests below C{/handover} and C{/fragments}, and has its own guard.
    """
    return _Root(_klein(operator_routes(deps.features.features), deps, docs=True).resource(), web)


def chosen_site(
    deps: Dependencies, names: Iterable[str], identify: Identify, web: Callable[[], IResource]
) -> IResource:
    """Return a root resource that serves only the named routes of the operator site, and pages.

    It serves no description of the API.

    :param names: the names of the routes.
    :param identify: returns the caller of a request by its credential.
    :param web: makes the resource of the pages.
    """
    chosen = frozenset(names)
    app = Routes()
    for endpoint, allowed in operator_routes(deps.features.features).endpoints:
        # guard of the phone: only what is named is served
        #    -> phone.test_door.ServedTests.test_every_route, instead if True
        if endpoint.name in chosen:
            app.route(endpoint.path, methods=[endpoint.method], endpoint=endpoint.name)(
                guarded(endpoint, allowed, identify, deps)
            )
    app.handle_errors(Exception)(routing_failed)
    return _Root(app.resource(), web, all_pages=True)


def _klein(routes: SiteRoutes, deps: Dependencies, *, docs: bool = False) -> Routes:
    app = Routes()
    for endpoint, allowed in routes.endpoints:
        handler = guarded(endpoint, allowed, routes.identify, deps)
        app.route(endpoint.path, methods=[endpoint.method], endpoint=endpoint.name)(handler)
    _publish(app, routes, deps.version, docs)
    app.handle_errors(Exception)(routing_failed)
    return app


def _publish(app: Routes, routes: SiteRoutes, version: str, docs: bool) -> None:
    """Serve the OpenAPI document of the site. No credential is required for it.

    The document is generated at the first request: it is rarely needed, and takes half a megabyte of memory.
    """

    @cache
    def describe_site() -> Answer:
        return Answer(200, encode(document(routes.title, version, routes.endpoints, routes.relayed(), routes.members)))

    @cache
    def show_page() -> Answer:
        return Answer(200, page(routes.title, routes.endpoints).encode(), content_type="text/html; charset=utf-8")

    app.route("/v1/openapi.json", methods=["GET"], endpoint="openapi")(lambda request: write(request, describe_site()))
    if docs:
        app.route("/docs", methods=["GET"], endpoint="docs")(lambda request: write(request, show_page()))


class _Root(Resource):
    """The root resource, which passes each request to the API or to the pages.

    :param web: makes the resource of the pages. It is called at the first request for a page, since it takes time.
    :param all_pages: whether the pages get every request outside the API's paths.
    """

    isLeaf = True

    def __init__(self, api: IResource, web: Callable[[], IResource] | None = None, *, all_pages: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._api = api
        self._web = None if web is None else cache(web)
        self._all_pages = all_pages

    def render(self, request: IRequest) -> bytes | int:
        """Render the resource of the request's path: a page or a route of the API.

        A path that is not UTF-8 gets status 400.
        """
        if b"%" in request.path and not _readable(request.path):
            return write(request, http_failure(400, "The path is not UTF-8."))
        first = request.path[1:].partition(b"/")[0]
        for_pages = first not in API_PATHS and (self._all_pages or _for_pages(request))
        resource = self._api if self._web is None or not for_pages else self._web()
        body: bytes | int = getChildForRequest(resource, request).render(request)
        return body


def _for_pages(request: IRequest) -> bool:
    posted = request.path in _HAND_OVER_POSTS or request.path.startswith(_FRAGMENTS)
    return request.method in _NAVIGATIONS or (request.method == b"POST" and posted)


def _readable(path: bytes) -> bool:
    try:
        unquote_to_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
