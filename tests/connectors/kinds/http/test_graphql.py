"""Of operations in GraphQL: what is sent, and what is found wrong with them before."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors import HttpSpec, check
from aileron.connectors._files import shipped
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.http._graphql import check_graphql
from tests.connectors.service import Service, json_answer, spec_of

SPEC = """
[connector]
name = "local://me/issues"
version = "1.0.0"
base_url = "https://api.example"

[operations.create]
method = "POST"
path = "/graphql"
error = { when = "data.create.id missing" }

[operations.create.graphql]
query = 'mutation($title: String!, $team: ID) { create(title: $title, team: $team) { id } }'
variables = { title = "${in.title}", team = "${in.team}" }

[operations.find]
method = "POST"
path = "/graphql"
graphql = { query = 'query { issues { id } }' }
effect = "read"
error = { when = "data.issues missing" }
"""
LOCAL = SPEC.replace(
    'base_url = "https://api.example"',
    'base_url = { default = "http://127.0.0.1:8080" }\nhosts = ["127.0.0.1:8080"]\nprivate_network = true',
)
SDL = """
type Query { issues: [Issue!]! }
type Mutation { create(title: String!, team: ID): Issue }
type Issue { id: ID! }
"""


class GraphqlTests(SynchronousTestCase):
    """One connector that speaks it."""

    def problems(self, old: str = "", new: str = "", sdl: str | None = None) -> list[str]:
        """What C{aileron connector check} says of the file with C{old} made C{new}."""
        self.assertIn(old, SPEC)
        path = Path(self.mktemp()).with_suffix(".toml").absolute()
        path.write_text(SPEC.replace(old, new, 1))
        if sdl is not None:
            path.with_suffix(".graphql").write_text(sdl)
        self.notes: list[str] = []
        return [f"{each.line}: {each.message}" for each in check(path, self.notes.append)]

    def test_sent(self) -> None:
        """Query and variables are sent as JSON; a variable that was not given is left out."""
        connector = Service().connector(spec_of(SPEC))
        request = connector.prepare("create", {"title": '") { id } }'}, "https://api.example", "k")
        body = json.loads(request.body or b"")
        self.assertEqual(body["variables"], {"title": '") { id } }'})
        self.assertTrue(body["query"].startswith("mutation($title: String!"))
        self.assertEqual(dict(request.headers)["Content-Type"], "application/json")

    def test_refused(self) -> None:
        """A mutation was refused only where that is said; else it may have been carried out before a field failed."""
        odd: JSON = [{"message": "odd"}]
        cases: tuple[tuple[str, JSON, bool], ...] = (
            ("data.create.ok != true", {"errors": odd}, True),
            ("data.create.ok != true", {"data": {"create": {"ok": False}}, "errors": odd}, True),
            ("data.create.ok != true", {"data": {"create": {"ok": False}}}, True),
            ("data.create.ok != true", {"data": {"create": {"ok": None}}, "errors": odd}, False),
            ("data.create.ok != true", {"data": {"create": None}, "errors": odd}, False),
            ("data.create.ok != true", {"data": None, "errors": odd}, False),
            ("data.create.ok != true", {"errors": []}, False),
            ("data.create.ok != true", [], False),
            ("data.create.id missing", {"data": {"create": {}}, "errors": odd}, False),
        )
        for when, told, classified in cases:
            found = f'error = {{ when = "{when}", message = "errors.0.message" }}'
            spec = spec_of(LOCAL.replace('error = { when = "data.create.id missing" }', found))
            service = Service()
            service.replies.append(json_answer(told))
            sending = service.start(service.connector(spec), "create", {"title": "x"})
            outcome = self.successResultOf(sending)
            self.assertEqual((outcome.sent, outcome.classified), (True, classified), f"{when}: {told}")
            self.assertIsNotNone(outcome.fault)

    def test_faults(self) -> None:
        """No input becomes part of a query, and a failure is recognised: a file is refused otherwise."""
        for old, new, words in (
            ("query { issues", "query { ${in.what} issues", "must have no reference"),
            ('error = { when = "data.issues missing" }', "", "must say `when`"),
            ("graphql = { query = 'query { issues { id } }' }", "graphql = { }", "`query` is missing"),
            ("issues { id } }' }", 'issues { id } }\', name = "x" }', "not a known key"),
        ):
            found = read_file(SPEC.replace(old, new, 1).encode(), "t.toml", "local").problems
            self.assertTrue(any(words in each.message for each in found), (new, found))

    def test_checked(self) -> None:
        """The check reads the query, and holds it against its effect and its variables; each fault has its line."""
        self.assertEqual((self.problems(), self.notes), ([], []))
        for old, new, words in (
            ("{ issues { id } }", "{ issues { id }", "19: `graphql` cannot be read"),
            ("query { issues { id } }", "mutation { issues { id } }", "a query like its `effect`"),
            ("query { issues { id } }", "query A { a } query B { b }", "exactly one operation"),
            ("mutation($title", "subscription($title", "a mutation like its `effect`"),
            (', team = "${in.team}"', ', tea = "${in.team}"', "'tea', which its query does not declare"),
            ('title = "${in.title}", ', "", "lacks the variable 'title'"),
            ("(title: $title, team: $team)", "(title: $title, team: $tam)", "$tam"),
            ("(title: $title, team: $team)", "(title: $title)", "$team"),
        ):
            self.assertTrue(any(words in each for each in self.problems(old, new)), (new, self.problems(old, new)))

    def test_schema(self) -> None:
        """With the service's schema beside the file, fields and types are checked too."""
        self.assertEqual(self.problems(sdl=SDL), [])
        self.assertTrue(any("'name'" in each for each in self.problems("issues { id }", "issues { name }", SDL)))
        self.assertTrue(any("type" in each for each in self.problems("$team: ID", "$team: Int", SDL)))
        self.assertIn("cannot be read", str(self.problems(sdl="type {")))

    def test_not_installed(self) -> None:
        """Without graphql-core the check says that it did not look at the queries; a file without any is silent."""
        modules = cast("dict[str, object]", sys.modules)
        self.addCleanup(modules.__setitem__, "graphql", modules.get("graphql"))
        modules["graphql"] = None
        self.assertEqual(self.problems("{ issues { id } }", "{ issues"), [])
        self.assertIn("its extra named graphql", self.notes[0])
        without = SPEC[SPEC.index("[operations.create]") :]
        self.problems(without, '[operations.look]\nmethod = "GET"\npath = "/"\n')
        self.assertEqual(self.notes, [])

    def test_builtin(self) -> None:
        """What comes with the package is sound."""
        for file in shipped():
            spec = read_file(file.data or b"", file.name).spec
            assert isinstance(spec, HttpSpec)
            self.assertEqual(check_graphql(file, spec, self.fail), ())
