"""Of GraphQL requests: one query reads, one mutation writes, and everything else is refused."""

from __future__ import annotations

import json
import sys
from typing import cast

import graphql
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.features.own_tools._graphql import GraphqlOperation, NotOneOperation, read_graphql
from aileron.features.own_tools._recognition import recognise

from .requests import JSON_TYPE, ask_github, github, see_github


def read(query: str, **more: JSON) -> GraphqlOperation:
    """Return the operation of a query."""
    return read_graphql(json.dumps({"query": query, **more}).encode())


class GraphqlTests(SynchronousTestCase):
    """The bodies of requests."""

    def refuse(self, body: bytes, words: str) -> None:
        """Check that a body is refused with a sentence that has these words."""
        error = self.assertRaises(NotOneOperation, read_graphql, body)
        self.assertIn(words, str(error))

    def refuse_query(self, query: str, words: str) -> None:
        """Check that a query is refused."""
        self.refuse(json.dumps({"query": query}).encode(), words)

    def test_operations(self) -> None:
        """A query has its fields, and a mutation too, without aliases."""
        self.assertEqual(read("{ viewer { login } }"), GraphqlOperation(False, "", ("viewer",)))
        self.assertEqual(
            read("mutation Two($a: ID!) { x: closeIssue(a: $a) { id } addStar { id } }", variables={"a": "1"}),
            GraphqlOperation(True, "Two", ("closeIssue", "addStar")),
        )
        self.assertEqual(read("query Q { a ...F } fragment F on Query { b }", operationName="Q").fields, ("a",))
        self.assertFalse(read("{a}", operationName=None, variables=None).is_mutation)
        self.assertFalse(read('query { search(text: "mutation { delete } # ü") { id } }').is_mutation)

    def test_subscription(self) -> None:
        """A subscription is refused."""
        self.refuse_query("subscription { a }", "subscriptions are not supported")

    def test_members(self) -> None:
        """Batches, persisted queries and other members are refused."""
        for body in (
            [{"query": "{a}"}],
            {"query": "{a}", "extensions": {}},
            {"id": "abc", "query": "{a}"},
            "query",
            None,
        ):
            self.refuse(json.dumps(body).encode(), "can have only query, variables")
        for members in ({}, {"query": 7}, {"query": "{a}", "variables": []}, {"query": "{a}", "variables": "{}"}):
            self.refuse(json.dumps(members).encode(), "needs a query")

    def test_json(self) -> None:
        """A body that two parsers could read differently is refused."""
        for body in (
            b'{"query": "{a}", "query": "mutation{a}"}',
            b'\xef\xbb\xbf{"query": "{a}"}',
            b'{"query": "{a}"} {}',
            b'{"query": "\xff"}',
            b"query={a}",
            b"",
            b"[" * 100_000,
        ):
            self.refuse(body, "must be JSON that every parser reads")

    def test_many_values(self) -> None:
        """A body with very many values is refused, because each is looked at."""
        body = {"query": "{a}", "variables": {"x": [1] * 20_000}}
        self.refuse(json.dumps(body).encode(), "at most 20000 values")

    def test_several(self) -> None:
        """Of several operations none is chosen, and type definitions are refused."""
        for query in ("query A{a} mutation B{b}", "{a} {b}", "fragment F on Query{a}", "{a} type T{a: Int}"):
            self.refuse_query(query, "exactly one operation")
        self.refuse(json.dumps({"query": "query A{a}", "operationName": "B"}).encode(), "operationName")
        self.refuse(json.dumps({"query": "{a}", "operationName": "A"}).encode(), "operationName")
        self.refuse(json.dumps({"query": "{a}", "operationName": ""}).encode()[:-3] + b"1}", "operationName")

    def test_hidden(self) -> None:
        """A character that ends a line for some parsers only is refused."""
        for character in ("\r", "\x0b", "\x85", "\u2028", "\ufeff", "\x00"):
            self.refuse_query(f"query {{a}} #{character}mutation{{b}}", "control characters")
        self.assertEqual(read("query {\r\n\ta # b\n}").fields, ("a",))

    def test_invalid(self) -> None:
        """What cannot be parsed, is nested too deeply or is too long is refused."""
        for query in ("", "{", "mutation", "{a}}", "{a" * 3000, "{" + "a " * 11_000 + "}"):
            self.refuse_query(query, "not valid, or is too long")
        self.refuse_query("{a}" + " " * 65_536, "at most 65536 characters")

    def test_fragments(self) -> None:
        """The fields of a mutation stand in it, and not in fragments."""
        self.refuse_query("mutation { ...F } fragment F on Mutation { deleteAll }", "name its fields directly")
        self.refuse_query("mutation { ... on Mutation { deleteAll } }", "name its fields directly")

    def test_not_installed(self) -> None:
        """Without graphql-core the request is refused, and the extra is named."""
        modules = cast("dict[str, object]", sys.modules)
        self.addCleanup(modules.__setitem__, "graphql", graphql)
        modules["graphql"] = None
        self.refuse_query("{a}", "extra named graphql")


class RequestTests(SynchronousTestCase):
    """The requests around them."""

    def test_get(self) -> None:
        """GraphQL by C{GET}, or with parameters, is refused."""
        for method, target in (
            ("GET", "/graphql?query={a}"),
            ("GET", "/graphql"),
            ("POST", "/graphql?query=mutation{a}"),
        ):
            found = see_github(method, target, b"" if method == "GET" else {"query": "{a}"})
            self.assertEqual((found.effect, found.protocol), ("", "graphql"))
            self.assertTrue("by POST" in found.problem or "URL" in found.problem, found.problem)

    def test_credential_fields(self) -> None:
        """A query for a field that holds a credential is asked for, at any depth, by any alias and in fragments."""
        codes = "ownerInfo { samlIdentityProvider { x: recoveryCodes } }"
        for query in (
            f'{{ enterprise(slug: "e") {{ {codes} }} }}',
            f'{{ enterprise(slug: "e") {{ ... on Enterprise {{ {codes} }} }} }}',
            f'{{ enterprise(slug: "e") {{ ...F }} }} fragment F on Enterprise {{ {codes} }}',
        ):
            found = see_github("POST", "/graphql", {"query": query})
            self.assertEqual((found.effect, found.fields, found.returns_credential), ("write", (), True), query)
        other = see_github("POST", "/graphql", {"query": '{ recoveryCodes: search(query: "recoveryCodes") { id } }'})
        self.assertEqual((other.effect, other.returns_credential), ("read", False))

    def test_spelling(self) -> None:
        """A path that only resembles that of GraphQL is refused."""
        for path in ("/graphql/", "/GraphQL", "/%67raphql", "/graphql.json", "/graphql%2Ejson/"):
            for method in ("GET", "POST"):
                found = see_github(method, path, {"query": "mutation{a}"} if method == "POST" else b"")
                self.assertIn("resembles that of GraphQL", found.problem)

    def test_type(self) -> None:
        """The body must be JSON by its type, without encoding."""
        body = b'{"query": "{a}"}'
        self.assertEqual(see_github("POST", "/graphql", body, (JSON_TYPE,)).effect, "read")
        for headers in ((), (("Content-Type", "application/graphql"),), (JSON_TYPE, ("Content-Encoding", "gzip"))):
            self.assertIn("application/json", see_github("POST", "/graphql", body, headers).problem)

    def test_credential(self) -> None:
        """A credential of the tool's own is refused here too."""
        request = ask_github(
            "POST", "/graphql", {"query": "{a}"}, (JSON_TYPE, ("Authorization", "bearer ghp_123456789"))
        )
        self.assertTrue(recognise(request, github()).is_foreign)
