"""Of OpenAPI documents: what their operations become."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.importing.description import ApiDescription, ApiOperation, NotImported
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import choose, connector_name, read_api, search
from tests.features.importing.library import actions, describe, operation, reader, request


def document(*, version: str = "3.0.0", **keys: Any) -> bytes:
    """A document with one operation, C{PUT /things}, of which these are keys."""
    there = {name: keys.pop(name) for name in ("servers", "components", "security") if name in keys}
    operation = {"operationId": "putThings", "responses": {}, **keys}
    return json.dumps({"openapi": version, "paths": {"/things": {"put": operation}}, **there}).encode()


def described(*, address: str = "", **keys: Any) -> ApiDescription:
    """The description of such a document."""
    found = read_api(document(**keys), address)
    return found.describe("local://me/things", found.list_operations())


class ListTests(SynchronousTestCase):
    def test_list(self) -> None:
        """Each operation is listed by a name of ours, with its request and effect."""
        listed = {each.name: (f"{each.method} {each.path}", each.effect) for each in reader().list_operations()}
        self.assertEqual(listed["list_books"], ("GET /books", "read"))
        self.assertEqual(listed["remove_book"], ("DELETE /books/{id}.json", "write"))
        self.assertEqual(len(listed), 8)

    def test_chosen(self) -> None:
        """An operation is found by our name, the document's, or its request; what is not there names what is near."""
        operations = reader().list_operations()
        for name in ("add_book", "addBook", "POST /books"):
            self.assertEqual([each.name for each in choose(operations, [name, name])], ["add_book"])
        with self.assertRaises(NotImported) as caught:
            choose(operations, ["book_cover", "addBook"])
        self.assertIn("no operation book_cover", caught.exception.problem)
        with self.assertRaises(NotImported) as caught:
            choose(operations, ["cover"])
        self.assertIn("set_cover", caught.exception.advice)

    def test_search(self) -> None:
        """Words are searched for everywhere, without case; all must be there."""
        found = search(reader().list_operations(), "BOOK delete")
        self.assertEqual([each.name for each in found], ["remove_book"])
        self.assertEqual(search(reader().list_operations(), "book nowhere"), ())

    def test_same_names(self) -> None:
        """Operations of one name, or of none, are told apart; a name that is no name of ours becomes one."""
        verbs = {
            "get": {"operationId": "X y/z"},
            "post": {"operationId": "X.y.z"},
            "put": {"summary": "P"},
            "delete": 3,
            "trace": {},
        }
        found = read_api(json.dumps({"openapi": "3.0.1", "paths": {"/1/{a}": verbs}}).encode()).list_operations()
        self.assertEqual([each.name for each in found], ["x_y_z", "x_y_z_2", "put_1_a"])

    def test_names_of_connectors(self) -> None:
        """A connector is named after the title of the API, whatever that is."""
        for title, name in (("Stripe API", "stripe"), ("API", "api"), ("Ünï/../ö", "n"), ("123 go", "x-123-go")):
            self.assertEqual(connector_name(title), f"local://me/{name}")

    def test_other_documents(self) -> None:
        """Another version, and a document of no known format, are refused, with what to do."""
        for data, words in (
            (b'{"swagger": "2.0"}', "Swagger 2.0"),
            (b'{"openapi": "4.0.0"}', "OpenAPI 4.0.0"),
            (b'{"hello": 1}', "no API"),
        ):
            with self.assertRaises(NotImported) as caught:
                read_api(data)
            self.assertIn(words, caught.exception.problem)
        with self.assertRaises(NotImported) as caught:
            read_api(b"swagger: '2.0'")
        self.assertIn("swagger2openapi", caught.exception.advice)


def operation_at(path: str, name: str | None = None, method: str = "get", **keys: Any) -> ApiOperation:
    """The only operation of a document."""
    names = re.findall(r"\{(\w+)\}", path)
    keys.setdefault("parameters", [{"name": each, "in": "path", "schema": {"type": "string"}} for each in names])
    keys |= {} if name is None else {"operationId": name}
    keys.setdefault("responses", {"204": {"description": "Done"}})
    reader = read_api(json.dumps({"openapi": "3.0.1", "paths": {path: {method: keys}}}).encode())
    (found,) = reader.describe("local://me/x", reader.list_operations()).operations
    return found


class OperationTests(SynchronousTestCase):
    """The operations of the library, as requests of the connector that is written."""

    def test_query(self) -> None:
        """Parameters of a path and of its operation are inputs: texts, joined arrays, and members of an object."""
        _, url, headers, _ = request(
            "list_books", q="a b", tags=["new", "old"], filter_year=1999, filter_author="Ö", x_trace="t"
        )
        wanted = "https://main.library.example/api/v1/books?q=a%20b&tags=new,old&filter%5Byear%5D=1999"
        self.assertEqual(url, f"{wanted}&filter%5Bauthor%5D=%C3%96")
        self.assertEqual(headers["X-Trace"], "t")
        inputs = {each.name: each for each in actions("list_books")["library-list-books"].inputs}
        self.assertEqual(inputs["tags"].type, "array")
        self.assertFalse(inputs["q"].required)

    def test_pages_and_failures(self) -> None:
        """Pages and the message of a failure are found in what the document says of answers."""
        found = operation("list_books")
        pages = {"kind": "cursor", "cursor": "next_cursor", "parameter": "cursor", "items": "items"}
        self.assertEqual((found.extra["pages"], found.extra["error"]), (pages, {"message": "error.message"}))
        self.assertEqual(found.effect, "read")

    def test_json(self) -> None:
        """Members of a body are inputs, without those that only the service says; a key against repetition is ours."""
        method, _, headers, body = request("add_book", title="Emma", year=1815, kind="novel")
        self.assertEqual((method, json.loads(body or b"")), ("POST", {"title": "Emma", "year": 1815, "kind": "novel"}))
        self.assertNotEqual(headers["Idempotency-Key"], request("list_books")[2].get("Idempotency-Key"))
        found = operation("add_book")
        self.assertEqual([each.name for each in found.parameters if each.required], ["title"])
        self.assertEqual((found.effect, found.destructive), ("write", False))
        self.assertEqual(found.marks, ("left out, because it refers to itself: sequel",))
        (extra,) = [each for each in found.parameters if each.name == "extra"]
        self.assertEqual(extra.marks, ("the values of its further members are not checked",))

    def test_path(self) -> None:
        """A parameter of the path may have text beside it; a deletion is destructive, and its answer is not read."""
        self.assertEqual(request("remove_book", id="a/b")[1], "https://main.library.example/api/v1/books/a%2Fb.json")
        found = operation("remove_book")
        self.assertEqual((found.destructive, found.extra["answer"]), (True, "none"))

    def test_multipart(self) -> None:
        """A file of a form is three inputs: its bytes, its name and its type."""
        _, _, headers, body = request(
            "set_cover", id="7", picture="aGk=", picture_name="a.png", picture_type="image/png"
        )
        self.assertIn("multipart/form-data", headers["Content-Type"])
        self.assertIn(b'filename="a.png"', body or b"")
        self.assertIn(b"\r\n\r\nhi\r\n", body or b"")

    def test_form(self) -> None:
        """An object in a form is written flat, one that cannot be is left out; it goes to the operation's own host."""
        _, url, _, body = request("search_books", words="x y", near_city="Bath", near_within=1.5)
        self.assertEqual(url, "https://search.library.example/search")
        self.assertEqual(body, b"words=x%20y&near%5Bcity%5D=Bath&near%5Bwithin%5D=1.5")
        found = operation("search_books")
        sent, left_out = found.marks
        self.assertEqual(left_out, "left out, because it cannot be written flat: labels")
        self.assertIn("https://search.library.example, with the credential", sent)
        self.assertEqual(found.extra["answer"], "text")

    def test_like_names(self) -> None:
        """Two parameters whose names differ in case only each stand in their own part of the path."""
        parameters = [{"name": name, "in": "path", "schema": {"type": "string"}} for name in ("B", "b")]
        found = operation_at("/{B}/{b}", parameters=parameters)
        self.assertEqual({each.steps: each.name for each in found.parameters}, {("B",): "b", ("b",): "path_b"})
        self.assertEqual(found.path, "/{b}/{path_b}")

    def test_effects(self) -> None:
        """A GET whose C{operationId}, or else whose path, says that it changes something is a write, and marked."""
        for path, name, effect in (
            ("/chat.delete", None, "write"),
            ("/users/{a}/delete", None, "write"),
            ("/a", "userDelete", "write"),
            ("/a", "connectCoreV1GetNamespacedPodExec", "write"),
            ("/workflow/run", "actions/get-workflow-run", "read"),
            ("/users/{delete}", None, "read"),
            ("/updates", None, "read"),
        ):
            found = operation_at(path, name)
            self.assertEqual((found.effect, bool(found.marks)), (effect, effect == "write"), path)
        self.assertTrue(operation_at("/posts/{a}/delete", method="post").destructive)

    def test_secrets(self) -> None:
        """A read is asked if its name or its path says that the answer may hold a secret."""
        for path, name, asked in (
            ("/secrets", "listThem", True),
            ("/a", "getApiKeys", True),
            ("/a/{token}", "getThem", False),
        ):
            self.assertEqual(operation_at(path, name).asked, asked)

    def test_rerouting(self) -> None:
        """No argument becomes a header of the daemon's, or one by which a service takes a request for another."""
        names = ("Host", "Transfer-Encoding", "X-HTTP-Method-Override", "X-Original-URL", "X-Mine")
        parameters: list[dict[str, Any]]
        parameters = [{"name": name, "in": "header", "schema": {"type": "string"}} for name in names]
        parameters.append({"name": "_method", "in": "query", "schema": {"type": "string"}})
        parameters.append({"name": "Range", "in": "header", "required": True, "schema": {"type": "string"}})
        found = operation_at("/", parameters=parameters)
        self.assertEqual([each.name for each in found.parameters], ["x_mine"])
        self.assertEqual(
            found.marks,
            (
                "left out, because it is a header that only the daemon sets: Host, Transfer-Encoding",
                (
                    "left out, because it makes another request of it than was reviewed: X-HTTP-Method-Override, "
                    "X-Original-URL, _method"
                ),
                "left out, because it asks for a part of an answer, in which no secret can be found: Range",
            ),
        )

    def test_answers(self) -> None:
        """A write that may be answered without content is marked; a HEAD has no body and no answer."""
        book = {"content": {"application/json": {"schema": {"type": "object"}}}}
        (found,) = described(responses={"200": book, "204": {"description": "Nothing"}}).operations
        self.assertIn("204 has no content", found.marks[0])
        (found,) = described(responses={"200": book, "404": {"description": "No"}}).operations
        self.assertEqual(found.marks, ())
        for required in (False, True):
            body = {"required": required, "content": book["content"]}
            found = operation_at("/", method="head", requestBody=body, responses={"200": book})
            self.assertEqual((bool(found.refused), found.body), (required, ""))
            self.assertEqual(found.extra.get("answer"), None if required else "none")

    def test_get_that_changes(self) -> None:
        """A GET whose name says that it changes something is a write, and marked."""
        found = operation("reset_everything")
        self.assertEqual((found.effect, found.destructive), ("write", True))
        self.assertIn("counts as a write", found.marks[0])

    def test_refused(self) -> None:
        """An operation that needs what cannot be said is in no file, and says why."""
        written = write_connector(describe("put_raw", "list_books"))
        self.assertIn("multipart/mixed", written.refused["put_raw"])
        self.assertNotIn("put_raw", written.connector.text)
        self.assertEqual(len(written.actions), 1)

    def test_gated(self) -> None:
        """Reads need no approval; everything else does."""
        gated = {name: each.approval.gated for name, each in actions().items()}
        self.assertEqual({name for name, each in gated.items() if not each}, {"library-list-books", "library-get-book"})
        self.assertEqual(len(gated), 7)


class PlaceTests(SynchronousTestCase):
    def base_url(self, url: str, address: str = "", **variables: Mapping[str, object]) -> str:
        """The base URL of a server."""
        return described(address=address, servers=[{"url": url, "variables": variables}]).base_url

    def test_variables(self) -> None:
        """A variable is one of the connector's, where its values can be; else its default is put in."""
        self.assertEqual(describe().base_url, "https://{branch}.library.example/api/v1")
        (branch,) = describe().variables
        self.assertEqual((branch.pattern, branch.default), ("main|north", "main"))
        self.assertEqual(
            self.base_url("https://{x}.example/{base}", x={"default": "a"}, base={"default": "v1/b"}),
            "https://{x}.example/v1/b",
        )

    def test_relative(self) -> None:
        """A relative address is seen from where the document was fetched; from a file, a binding says it."""
        self.assertEqual(self.base_url("/api/", "https://a.example/docs/x.json"), "https://a.example/api")
        self.assertEqual(self.base_url("//a.example/api"), "https://a.example/api")
        found = described(servers=[{"url": "/api"}])
        self.assertEqual(found.base_url, "")
        self.assertIn("no usable base URL", found.marks[0])
        self.assertIn("base_url = {bindable = true}", write_connector(found).connector.text)

    def test_plain_http(self) -> None:
        """Plain http becomes https, and is marked; on this machine it stays."""
        found = described(servers=[{"url": "http://a.example/v1"}])
        self.assertEqual((found.base_url, len(found.marks)), ("https://a.example/v1", 1))
        text = write_connector(described(servers=[{"url": "http://127.0.0.1:8080"}])).connector.text
        self.assertIn('base_url = "http://127.0.0.1:8080"\nprivate_network = true', text)

    def test_hostile(self) -> None:
        """A server that is no proper place is none."""
        for url in (
            "https://user:pass@a.example",
            "file:///etc",
            "https://{a}{b}.example",
            "https://a.example/../x",
            "//user@a.example",
        ):
            self.assertEqual(self.base_url(url, a={"default": "x"}, b={"default": "y"}), "", url)


class CredentialTests(SynchronousTestCase):
    def credential(self, *wanted: Mapping[str, list[str]], **schemes: object) -> Mapping[str, object]:
        """The credential of an API with these schemes."""
        found = described(security=list(wanted), components={"securitySchemes": schemes}).credential
        return {} if found is None else {**found.keys, "marks": len(found.marks)}

    def test_kinds(self) -> None:
        """Each scheme is the kind of credential that it is; what none is becomes a marked guess."""
        bearer = {"kind": "api_key", "header": "Authorization", "format": "Bearer {key}"}
        flow = {"tokenUrl": "https://a.example/token", "scopes": {"r": "", "w": ""}}
        code = {**flow, "authorizationUrl": "https://a.example/authorize?x=1"}
        asked = {"kind": "oauth2", "token_url": flow["tokenUrl"], "scopes": ["r"]}
        for scheme, keys, marks in (
            ({"type": "http", "scheme": "Bearer"}, bearer, 0),
            ({"type": "http", "scheme": "basic"}, {"kind": "basic"}, 0),
            ({"type": "http", "scheme": "digest"}, bearer, 1),
            ({"type": "apiKey", "in": "header", "name": "X-Key"}, {"kind": "api_key", "header": "X-Key"}, 0),
            ({"type": "apiKey", "in": "query", "name": "key"}, {"kind": "api_key", "query": "key"}, 0),
            ({"type": "apiKey", "in": "cookie", "name": "sid"}, bearer, 1),
            (
                {"type": "apiKey", "in": "header", "name": "Authorization"},
                {"kind": "api_key", "header": "Authorization"},
                1,
            ),
            ({"type": "oauth2", "flows": {"clientCredentials": flow}}, asked, 1),
            (
                {"type": "oauth2", "flows": {"authorizationCode": code}},
                {**asked, "authorize_url": code["authorizationUrl"]},
                1,
            ),
            ({"type": "oauth2", "flows": {"implicit": code}}, bearer, 1),
            ({"type": "openIdConnect", "openIdConnectUrl": "https://a.example/"}, bearer, 1),
        ):
            self.assertEqual(self.credential({"one": ["r"]}, one=scheme), {**keys, "marks": marks}, scheme)

    def test_several(self) -> None:
        """Of several a key in a header is preferred; a second one that is needed beside it is marked."""
        key, basic = {"type": "apiKey", "in": "header", "name": "X-Key"}, {"type": "http", "scheme": "basic"}
        self.assertEqual(self.credential({"b": []}, {"a": []}, a=key, b=basic)["kind"], "api_key")
        self.assertEqual(self.credential({"a": [], "b": []}, a=key, b=basic)["marks"], 1)
        self.assertEqual(self.credential({}, a=key), {})

    def test_not_an_argument(self) -> None:
        """What the credential fills, and whatever is named like one, is no argument of the agent's."""
        names = ("X-Key", "token", "Authorization", "q")
        parameters = [{"name": name, "in": "header", "required": True, "schema": {"type": "string"}} for name in names]
        key = {"type": "apiKey", "in": "header", "name": "X-Key"}
        (found,) = described(
            parameters=parameters, security=[{"k": []}], components={"securitySchemes": {"k": key}}
        ).operations
        self.assertEqual([each.name for each in found.parameters], ["q"])
        self.assertIn("credential", found.marks[0])
