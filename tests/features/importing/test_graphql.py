"""Of GraphQL schemas: what their fields become, judged by graphql-core."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from graphql import GraphQLError, build_schema, graphql_sync, introspection_from_schema, parse, validate
from graphql.execution.values import get_variable_values
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import OutgoingRequest, ServiceAnswer, check
from aileron.connectors._answer import Flight
from aileron.features.importing.description import ApiReader, NotImported
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from aileron.model.connectors import Outcome
from tests.connectors.service import spec_of
from tests.features.importing.reading import NAME, action, call, describe, operation, request, spec

BASE = "https://tracker.example"
SCHEMA = '''
# A tracker.
"""The tracker."""
type Query {
  "One issue."
  issue(id: ID!, old: String @deprecated): Issue
  issues(first: Int, after: String, last: Int, filter: IssueFilter, order: Order = NEWEST): IssueConnection!
  find(words: String!): [Found!]
  anything(of: JSON!): String
  apiKeys: [String!]!
}
type Mutation {
  issueCreate(input: IssueInput!): IssuePayload!
  deleteIssue(id: ID!, reason: Reason): Issue
  touch: Boolean
}
type Subscription { watched: Issue }
scalar JSON
enum Order { NEWEST OLDEST }
union Found = Issue | User
interface Node { id: ID! }
type Issue implements Node {
  id: ID!
  title: String!
  weight: Float
  secretOf(who: ID!): String
  author: User
  comments(first: Int): IssueConnection!
  gone: String @deprecated
}
type User implements Node { id: ID! name: String email: String friends: [User!] title: String }
type IssueConnection { nodes: [Issue!]! pageInfo: PageInfo! total: Int }
type PageInfo { hasNextPage: Boolean! endCursor: String }
type IssuePayload { success: Boolean! issue: Issue clientMutationId: String }
input IssueInput {
  title: String! labels: [ID!] due: Order reason: Reason clientMutationId: String old: Int @deprecated
}
input Reason { text: String! because: Reason weight: Float }
input IssueFilter { and: [IssueFilter!] title: TextFilter author: UserFilter }
input UserFilter { name: TextFilter issues: IssueFilter }
input TextFilter { eq: String in: [String!] not: TextFilter }
'''


class Service:
    """A service that answers by graphql-core, as its own schema says."""

    def __init__(self, **root: Any) -> None:
        self.root, self.asked = root, list[Any]()

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Answer as a service with GraphQL does."""
        flight.sent = True
        body = json.loads(message.body or b"")
        self.asked.append(body)
        found = graphql_sync(build_schema(SCHEMA), body["query"], self.root, variable_values=body["variables"])
        return succeed(ServiceAnswer(200, {}, json.dumps(found.formatted).encode()))


def problems(key: str, schema: str = SCHEMA, **inputs: Any) -> list[str]:
    """What graphql-core finds wrong with a request for a field."""
    body = json.loads(request(schema, key, BASE, **inputs).body or b"")
    document = parse(body["query"])
    built = build_schema(schema, assume_valid=True)
    definition: Any = document.definitions[0]
    coerced = get_variable_values(built, definition.variable_definitions or (), body["variables"])
    wrong = coerced if isinstance(coerced, list) else getattr(coerced, "errors", None) or []
    return [each.message for each in (*validate(built, document), *wrong) if isinstance(each, GraphQLError)]


def reader(schema: str = SCHEMA) -> ApiReader:
    """What reads a schema, of a service at a known place."""
    return read_api(schema.encode(), "", BASE)


class GraphqlTests(SynchronousTestCase):
    def called(self, key: str, service: Service, **inputs: Any) -> Outcome:
        """Call a field."""
        found = reader()
        chosen = tuple(each for each in found.list_operations() if each.key == key)
        written = spec_of(write_connector(found.describe(NAME, chosen)).connector.text)
        return call(written, service, request(SCHEMA, key, BASE, **inputs))

    def test_list(self) -> None:
        """Fields of the query type read, and are asked for if the name tells of secrets; those of mutations write."""
        listed = {each.key: (each.name, each.effect) for each in reader().list_operations()}
        self.assertEqual(listed["issue"], ("issue", "read"))
        self.assertEqual(listed["issueCreate"], ("issue_create", "write"))
        self.assertEqual(listed["apiKeys"], ("api_keys", "read"))
        self.assertNotIn("watched", listed)
        self.assertTrue(action(SCHEMA, "apiKeys").approval.gated)
        self.assertFalse(action(SCHEMA, "issue").approval.gated)
        self.assertFalse(operation(SCHEMA, "issueCreate").destructive)
        self.assertTrue(operation(SCHEMA, "deleteIssue").destructive)

    def test_requests(self) -> None:
        """Each request is what the schema allows."""
        given: dict[str, dict[str, Any]] = {
            "issue": {"id": "7"},
            "issues": {"order": "OLDEST", "first": 3, "filter": {"title": {"eq": "x"}, "and": [{"author": {}}]}},
            "find": {"words": "a"},
            "anything": {"of": {"a": 1}},
            "apiKeys": {},
            "issueCreate": {"title": "x", "labels": ["a"], "due": "NEWEST", "reason": {"text": "y"}},
            "deleteIssue": {"id": "7", "reason": {"text": "a", "because": {"text": "b"}}},
            "touch": {},
        }
        for key, inputs in given.items():
            self.assertEqual(problems(key, **inputs), [], key)

    def test_selection(self) -> None:
        """Scalars are selected, of what is inside what it is known by, and of a union that of each of its members."""
        query = {each.key: operation(SCHEMA, each.key).constant[0][1] for each in reader().list_operations()}
        self.assertEqual(
            query["issue"], "query($id: ID!) { issue(id: $id) { __typename id title weight author { id name title } } }"
        )
        self.assertIn("nodes { __typename id title weight author { id name title } }", str(query["issues"]))
        found = "find(words: $words) { __typename ... on Issue { id title } ... on User { id name } }"
        self.assertIn(found, str(query["find"]))
        created = "{ __typename success issue { id title weight author { id name title } } }"
        self.assertIn(created, str(query["issueCreate"]))
        self.assertEqual(query["touch"], "mutation { touch }")

    def test_inputs(self) -> None:
        """The members of an input that must be given are arguments; outdated ones and those of a client are not."""
        schema: Any = action(SCHEMA, "issueCreate").input_schema
        self.assertEqual(set(schema["properties"]), {"title", "labels", "due", "reason"})
        self.assertEqual(schema["required"], ["title"])
        self.assertEqual(schema["properties"]["due"]["enum"], ["NEWEST", "OLDEST"])
        reason = schema["properties"]["reason"]
        self.assertEqual((reason["required"], reason["properties"]["because"]), (["text"], {"type": "object"}))
        schema = action(SCHEMA, "issues").input_schema
        self.assertEqual(set(schema["properties"]), {"first", "after", "filter", "order"})

    def test_too_large(self) -> None:
        """An input with more than an argument can say is given as any object, which is marked."""
        many = " ".join(f"field{number}: Deep{number % 9}" for number in range(150))
        deep = "\n".join(f"input Deep{number} {{ {many} }}" for number in range(9))
        schema = f"type Query {{ issues(filter: Deep0, id: ID): Int }} {deep}"
        found = operation(schema, "issues")
        self.assertEqual(
            {each.name: each.schema["type"] for each in found.parameters}, {"filter": "object", "id": "string"}
        )
        self.assertIn("members are not checked", " ".join(found.marks))

    def test_pages(self) -> None:
        """Connections are read page by page."""
        pages = [
            {"nodes": [{"id": str(page), "title": "t"}], "pageInfo": {"hasNextPage": not page, "endCursor": "c"}}
            for page in (0, 1)
        ]
        service = Service(issues=lambda _, after=None, **more: pages[after == "c"])
        found = self.called("issues", service)
        output: Any = found.output
        self.assertEqual([each["id"] for each in output["data"]["issues"]["nodes"]], ["0", "1"])
        self.assertEqual([each["variables"] for each in service.asked], [{}, {"after": "c"}])

    def test_failures(self) -> None:
        """A field that is null, or says that it did not succeed, is a failure; where null may be right is marked."""
        self.assertIsNone(self.called("issue", Service(issue={"id": "7", "title": "t"}), id="7").fault)
        self.assertIsNotNone(self.called("issue", Service(issue=None), id="7").fault)
        self.assertIsNone(self.called("issueCreate", Service(issueCreate={"success": True}), title="x").fault)
        failed = self.called("issueCreate", Service(issueCreate={"success": False}), title="x")
        self.assertIsNotNone(failed.fault)
        self.assertIn("may be null", operation(SCHEMA, "touch").marks[0])

    def test_checked(self) -> None:
        """What is written passes the check of connector files, which reads the schema beside it."""
        directory = Path(tempfile.mkdtemp())
        found = reader()
        text = write_connector(found.describe(NAME, found.list_operations())).connector.text
        (directory / "tracker.toml").write_text(text)
        (directory / "tracker.graphql").write_text(SCHEMA)
        notes: list[str] = []
        self.assertEqual(([each.message for each in check(directory / "tracker.toml", notes.append)], notes), ([], []))

    def test_place(self) -> None:
        """Where the service is, and how one signs in, is marked; without a place the binding says it."""
        found = describe(SCHEMA, "touch")
        assert found.credential is not None
        self.assertEqual((found.base_url, len(found.marks), len(found.credential.marks)), ("", 1, 1))
        self.assertTrue(spec(SCHEMA, "touch").description.bindable)

    def test_introspection(self) -> None:
        """The answer of an introspection is read like SDL."""
        asked: Any = introspection_from_schema(build_schema(SCHEMA))
        for document in (asked, {"data": asked}):
            found = read_api(json.dumps(document).encode())
            self.assertEqual(
                {each.key for each in found.list_operations()}, {each.key for each in reader().list_operations()}
            )
        fields = next(each for each in asked["__schema"]["types"] if each["name"] == "Query")["fields"]
        fields[0]["description"] = True
        with contextlib.suppress(NotImported):  # older graphql-core takes no such schema
            read_api(json.dumps(asked).encode()).list_operations()

    def test_wide(self) -> None:
        """Types that hold each other, many times over, are selected only in part; too many arguments are refused."""
        fields = " ".join(f"field{number}: Wide" for number in range(400))
        found = operation(f"type Query {{ wide: Wide }} type Wide {{ {fields} }}", "wide")
        self.assertLess(len(str(found.constant)), 10_000)
        many = ", ".join(f"a{number}: Int!" for number in range(300))
        self.assertIn("too many arguments", operation(f"type Query {{ many({many}): Int }}", "many").refused)

    def test_long(self) -> None:
        """A schema of too many words is refused before all of them are read."""
        self.patch(sys.modules[type(reader()).__module__], "MOST_TOKENS", 2_000)
        self.assertEqual(len(read_api(b"type Query { " + b"a: Int " * 600 + b"}").list_operations()), 1)
        with self.assertRaises(NotImported):
            read_api(b"type Query { " + b"a: Int " * 700 + b"}")

    def test_hostile(self) -> None:
        """What is no schema, is too deep, or has names that are none, is refused."""
        evil = {"name": "a) { evil } ${in.x}", "args": [], "type": {"kind": "SCALAR", "name": "String"}}
        query = {"kind": "OBJECT", "name": "Query", "interfaces": [], "fields": [evil]}
        scalar = {"kind": "SCALAR", "name": "String"}
        named = {"__schema": {"queryType": {"name": "Query"}, "types": [query, scalar], "directives": []}}
        for wrong in (
            "type Query { a: Gone }",
            "type Query { a: " + "[" * 5000 + "Int" + "]" * 5000 + " }",
            "type Query { a: Int } " + "{ " * 5000,
            '"""' + "x" * 100,
            "scalar A\n" + "#\n" * 300_000,
            "enum E { }",
            json.dumps({"__schema": 7}),
            json.dumps({"__schema": {"types": [7]}}),
            json.dumps(named),
        ):
            with self.assertRaises(NotImported):
                read_api(wrong.encode())
        for name in (None, True, "", "{a}"):  # of an enum's value, at which graphql-core looks late
            asked: Any = introspection_from_schema(build_schema(SCHEMA))
            order = next(each for each in asked["__schema"]["types"] if each["name"] == "Order")
            order["enumValues"][0]["name"] = name
            with self.assertRaises(NotImported):
                read_api(json.dumps(asked).encode())
        self.assertEqual(read_api(b"schema { query: Q } type Q { a: Int }").list_operations()[0].key, "a")
        self.assertEqual(read_api(b"\xef\xbb\xbf # A\n\n# B\nscalar X").list_operations(), ())
