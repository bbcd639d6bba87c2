"""The published document, and the page made of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from twisted.web.resource import Resource

from aileron.api import operator_site
from aileron.api._sites import agent_routes, operator_routes
from aileron.model.errors import STATUS
from tests.features.gateway.running import relaying

from .case import ApiCase, Site, running, with_components


class DocumentTests(ApiCase):
    """OpenAPI 3.1 of each site."""

    def document(self, site: Site) -> Any:
        """The site's document, as anyone gets it."""
        heard = site.ask("GET", "/v1/openapi.json")
        self.assertEqual(heard.status, 200)
        return heard.json

    def test_routes(self) -> None:
        """Each document has exactly the routes that its site serves, each named once."""
        for site, routes in ((self.agents, agent_routes()), (self.operator, operator_routes())):
            document = self.document(site)
            self.assertEqual(document["openapi"], "3.1.0")
            published = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
            served = {(each.method, re.sub(r"<(?:path:)?(\w+)>", r"{\1}", each.path)) for each, _ in routes.endpoints}
            self.assertEqual(published, served)
            names = [each["operationId"] for item in document["paths"].values() for each in item.values()]
            self.assertEqual(len(names), len(set(names)))
            self.assertTrue(all(each["summary"] for item in document["paths"].values() for each in item.values()))

    def test_relayed(self) -> None:
        """The agent site's document has what the gateway takes there, by its own table, and the key for it."""
        before = set(self.document(self.agents)["paths"])
        self.build(features=running(relaying()))
        paths = self.document(self.agents)["paths"]
        relayed = {path: item for path, item in paths.items() if path not in before}
        self.assertEqual(set(relayed["/v1/chat/completions"]), {"post"})
        self.assertEqual(set(relayed["/v1/responses"]), {"get", "head", "post"})
        self.assertIn("anthropic", relayed["/v1/models"]["get"]["summary"])
        self.assertGreater(len(relayed["/anthropic/{rest}"]), 5)
        operations = [each for item in relayed.values() for each in item.values()]
        self.assertEqual({str(each["security"]) for each in operations}, {"[{'gatewayKey': []}]"})
        everything = [each["operationId"] for item in paths.values() for each in item.values()]
        self.assertEqual(len(everything), len(set(everything)))
        self.assertEqual(set(self.document(self.operator)["paths"]) & set(relayed), set())

    def test_schemas(self) -> None:
        """Every schema is one, also of what a route takes, and every reference leads somewhere."""
        for site, routes in ((self.agents, agent_routes()), (self.operator, operator_routes())):
            document = self.document(site)
            components = document["components"]["schemas"]
            taken = [each for endpoint, _ in routes.endpoints for each in (endpoint.body.schema, endpoint.query.schema)]
            for schema in (*components.values(), *taken):
                Draft202012Validator.check_schema(schema)
            for name in re.findall(r'"#/components/schemas/(\w+)"', site.ask("GET", "/v1/openapi.json").text):
                self.assertIn(name, components)
            operations = [each for item in document["paths"].values() for each in item.values()]
            for response in (each for operation in operations for each in operation["responses"].values()):
                (content,) = response["content"].values()
                Draft202012Validator(with_components(content["schema"])).is_valid({})

    def test_page(self) -> None:
        """The page shows every route of the operator site, without a script."""
        heard = self.operator.ask("GET", "/docs")
        self.assertEqual(heard.headers["content-type"], "text/html; charset=utf-8")
        self.assertNotIn("<script", heard.text)
        for endpoint, _ in operator_routes().endpoints:
            self.assertIn(re.sub(r"<(?:path:)?(\w+)>", r"{\1}", endpoint.path), heard.text)


class Room(Resource):
    """Another room's resource: says what reached it."""

    isLeaf = True

    def render(self, request: Any) -> bytes:
        """Tell method, consumed and remaining path."""
        request.setHeader("Content-Type", "text/plain")
        return b"%s %r %r" % (request.method, b"/".join(request.prepath), b"/".join(request.postpath))


class PagesTests(ApiCase):
    """The operator's pages beside the API."""

    def setUp(self) -> None:
        super().setUp()
        self.made: list[Room] = []
        self.operator = Site(self, operator_site(self.deps, self.make_web), operator_routes())

    def make_web(self) -> Room:
        self.made.append(Room())
        return self.made[-1]

    def test_web(self) -> None:
        """Pages take navigations and the handover, and nothing of the API; they are made once they are asked for."""
        self.assertEqual(self.operator.ask("GET", "/metrics").status, 401)
        self.assertEqual(self.made, [])
        self.assertEqual(self.operator.ask("GET", "/").text, "GET b'' b''")
        self.assertEqual(self.operator.ask("GET", "/approvals/x").text, "GET b'' b'approvals/x'")
        self.assertEqual(self.operator.ask("POST", "/handover").text, "POST b'' b'handover'")
        self.assertEqual(self.operator.ask("POST", "/fragments/x").text, "POST b'' b'fragments/x'")
        self.assertEqual(self.operator.ask("POST", "/approvals/x").status, 404)
        self.assertEqual(self.operator.ask("GET", "/v1/none").status, 404)
        self.assertEqual(self.operator.ask("GET", "/docs").headers["content-type"], "text/html; charset=utf-8")
        self.assertEqual(len(self.made), 1)


class PageTests(ApiCase):
    """The written documentation."""

    def test_every_route(self) -> None:
        """The page on the HTTP interface has a line for every route, and names every class of failure."""
        page = (Path(__file__).parents[2] / "doc" / "http-api.md").read_text(encoding="utf-8")
        written = set(re.findall(r"^\| (GET|POST|PUT|PATCH|DELETE) `([^`]+)` \|", page, re.MULTILINE))
        served = {
            (each.method, re.sub(r"<(?:path:)?(\w+)>", r"{\1}", each.path))
            for routes in (agent_routes(), operator_routes())
            for each, _ in routes.endpoints
        }
        self.assertEqual(written, served)
        self.assertEqual([kind for kind in (*STATUS, "internal_error") if f"`{kind}`" not in page], [])
