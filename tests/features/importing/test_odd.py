"""Of odd documents: what they describe reaches the request as it should, or is marked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.importing._documents import read_document
from aileron.features.importing.description import NotImported
from aileron.features.importing.files import WrittenFiles, write_connector
from aileron.features.importing.readers import read_api
from aileron.model.connectors import Request
from tests.features.importing.losses import silent_losses, unreached
from tests.features.importing.reading import NAME, action, describe, operation, reader, request, spec

BASE = "https://odd.example"
TEXT = {"type": "string"}
JSON_ANSWER = {"200": {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}}


def document(path: str = "/x", method: str = "post", servers: Any = None, /, **keys: Any) -> dict[str, Any]:
    """A document with one operation."""
    keys.setdefault("responses", JSON_ANSWER)
    info = {"title": "Odd", "version": "1"}
    servers = [{"url": BASE}] if servers is None else servers
    item = {method: {"operationId": "odd", **keys}}
    return {"openapi": "3.1.0", "info": info, "servers": servers, "security": [{}], "paths": {path: item}}


def body(schema: Any, media_type: str = "application/json", **more: Any) -> dict[str, Any]:
    """A request body that may be left out."""
    return {"content": {media_type: {"schema": schema, **more}}}


def sent(found: Mapping[str, Any], **inputs: Any) -> Request:
    """The request of the one operation."""
    return request(found, "odd", BASE, **inputs)


def written(found: Mapping[str, Any]) -> WrittenFiles:
    """The files of all of its operations."""
    return write_connector(describe(found))


class LossCase(SynchronousTestCase):
    def lost(self, found: Mapping[str, Any]) -> list[str]:
        """What is lost of the one operation without a mark, or reaches no request."""
        read = reader(found)
        (summary,) = read.list_operations()
        described = describe(found)
        self.assertEqual([each.refused for each in described.operations], [""])
        marks = " ".join(written(found).marks)
        lost = silent_losses(read_document(json.dumps(found).encode()), summary, described, marks)
        return [*lost, *unreached(action(found, "odd"), spec(found, "odd"), "odd")]


class BodyTests(LossCase):
    """Bodies."""

    def test_free(self) -> None:
        """A free-form body can be given, whether or not it must be, and is not sent if it is not."""
        for schema in (
            {"type": "object"},
            {"type": "object", "additionalProperties": True},
            {},
            {"description": "any"},
        ):
            found = document(requestBody=body(schema))
            self.assertEqual(self.lost(found), [])
            self.assertEqual(json.loads(sent(found, body={"a": 1}).body or b""), {"a": 1})
            left = sent(found)
            self.assertEqual((left.body, "Content-Type" in dict(left.headers)), (None, False))

    def test_left_out(self) -> None:
        """An optional body that is left out is not sent: no null, no empty envelope, no type."""
        members = {"type": "object", "properties": {"a": TEXT}}
        for one in (
            body({"type": "string", "enum": ["a", "b"]}),
            body(members),
            body(members, "application/x-www-form-urlencoded"),
            body({"type": "string", "format": "binary"}, "application/octet-stream"),
            body({"type": "object", "properties": {"f": {**TEXT, "format": "binary"}}}, "multipart/form-data"),
            body(TEXT, "text/plain"),
        ):
            left = sent(document(requestBody=one))
            self.assertEqual((left.body, "Content-Type" in dict(left.headers)), (None, False), one)
        self.assertEqual(sent(document(requestBody={**body(members), "required": True})).body, b"{}")

    def test_of_get(self) -> None:
        """The optional body of a GET can be given."""
        found = document("/x", "get", requestBody=body({"type": "object", "properties": {"query": {"type": "object"}}}))
        self.assertEqual(self.lost(found), [])
        self.assertEqual((sent(found, query={"q": 1}).body, sent(found).body), (b'{"query":{"q":1}}', None))

    def test_alternatives(self) -> None:
        """Members of alternatives can be given, beside those of all; what only one requires is optional."""
        one = {"type": "object", "required": ["card"], "properties": {"card": TEXT, "kind": {"const": "card"}}}
        other = {"type": "object", "required": ["iban"], "properties": {"iban": TEXT, "kind": {"const": "iban"}}}
        for key in ("oneOf", "anyOf"):
            schema = {"type": "object", "required": ["amount"], "properties": {"amount": TEXT}, key: [one, other]}
            found = document(requestBody={**body(schema), "required": True})
            self.assertEqual(self.lost(found), [])
            needed = {each.name for each in operation(found, "odd").parameters if each.required}
            self.assertEqual(needed, {"amount"})
            self.assertEqual(json.loads(sent(found, amount="1", iban="2", kind="iban").body or b"")["iban"], "2")
            self.assertIn(f"`{key}` of its body is not checked", " ".join(written(found).marks))
        whole = document(requestBody={**body({"oneOf": [one, other]}), "required": True})
        self.assertEqual(json.loads(sent(whole, body={"card": "1"}).body or b""), {"card": "1"})

    def test_further_members(self) -> None:
        """What a body may have beside its described members is marked."""
        schema = {"type": "object", "properties": {"a": TEXT}, "additionalProperties": TEXT}
        marks = written(document(requestBody=body(schema))).marks
        self.assertEqual(marks, ("odd: its further members cannot be given",))

    def test_other_types(self) -> None:
        """What only a body of another type has is marked."""
        content = {
            "application/json": {"schema": {"type": "object", "properties": {"url": TEXT}}},
            "multipart/form-data": {"schema": {"type": "object", "properties": {"url": TEXT, "file": TEXT}}},
            "image/png": {"schema": {**TEXT, "format": "binary"}},
        }
        marks = written(document(requestBody={"content": content})).marks
        only = "odd: left out, because it is only in a body of the type"
        wanted = (
            f"{only} multipart/form-data, not application/json: file",
            f"{only} image/png, not application/json: its content",
        )
        self.assertEqual(marks, wanted)

    def test_named_type_before_any(self) -> None:
        """Where a body may also be of any type, the JSON type that is named gives the inputs."""
        content = {
            "*/*": {"schema": {**TEXT, "format": "binary"}},
            "application/vnd.extended+json": {"schema": {"type": "object", "properties": {"content": TEXT}}},
        }
        found = document(requestBody={"required": True, "content": content})
        self.assertEqual(self.lost(found), [])
        left = sent(found, content="a")
        self.assertEqual((left.body, dict(left.headers)["Content-Type"]), (b'{"content":"a"}', [*content][1]))
        only = "odd: left out, because it is only in a body of the type */*, not application/vnd.extended+json"
        self.assertEqual(written(found).marks, (f"{only}: its content",))

    def test_texts_and_files(self) -> None:
        """A body of another type is a text or a file, and says its type."""
        left = sent(document(requestBody=body({"type": "object"}, "application/xml")), body="<a/>")
        self.assertEqual((left.body, dict(left.headers)["Content-Type"]), (b"<a/>", "application/xml; charset=utf-8"))
        left = sent(document(requestBody=body({}, "image/png")), content="AAE=", content_type="image/png")
        self.assertEqual((left.body, dict(left.headers)["Content-Type"]), (b"\0\1", "image/png"))


class PartTests(LossCase):
    """Forms with files."""

    def test_files(self) -> None:
        """A part is a file by its format, its media type, or how the form encodes it; several can be one input."""
        by_type = {**TEXT, "contentMediaType": "application/octet-stream"}
        by_format = {**TEXT, "format": "binary"}
        one: Any
        for one in (by_type, by_format, {"anyOf": [by_format, {"type": "null"}]}):
            found = document(requestBody=body({"type": "object", "properties": {"f": one}}, "multipart/form-data"))
            self.assertEqual(self.lost(found), [])
            (part,) = sent(found, f="AAE=", f_type="a/b", f_name="n").parts
            self.assertEqual((part.name, part.filename, part.media_type, part.content), ("f", "n", "a/b", b"\0\1"))
        several = {"type": "array", "items": by_type}
        schema: dict[str, Any] = {"type": "object", "required": ["f"], "properties": {"f": several}}
        found = document(requestBody={**body(schema, "multipart/form-data"), "required": True})
        files = [{"filename": name, "media_type": "a/b", "base64": "AAE="} for name in ("n", "m")]
        self.assertEqual([each.filename for each in sent(found, f=files).parts], ["n", "m"])

    def test_encoded(self) -> None:
        """A part without a type of its own is a file if the form encodes it as one; an object is JSON."""
        schema = {"type": "object", "properties": {"f": {}, "meta": {"type": "object", "properties": {"a": TEXT}}}}
        encoding = {"f": {"contentType": "image/png, image/jpeg"}}
        found = document(requestBody=body(schema, "multipart/form-data", encoding=encoding))
        self.assertEqual(self.lost(found), [])
        parts = sent(found, f="AAE=", f_type="image/png", f_name="n", meta={"a": "b"}).parts
        self.assertEqual([each.media_type for each in parts], ["image/png", "application/json"])

    def test_texts(self) -> None:
        """An array of texts is a part for each."""
        schema = {"type": "object", "properties": {"t": {"type": "array", "items": TEXT}}}
        found = document(requestBody=body(schema, "multipart/form-data"))
        self.assertEqual([each.content for each in sent(found, t=["a", "b"]).parts], [b"a", b"b"])


class ParameterTests(LossCase):
    """Parameters."""

    def query(self, value: Any, schema: Any, **style: Any) -> str:
        """The query that one parameter makes."""
        parameter = {"name": "p", "in": "query", "schema": schema, **style}
        found = document("/x", "get", parameters=[parameter])
        self.assertEqual(self.lost(found), [])
        return sent(found, p=value).url.removeprefix(f"{BASE}/x")

    def test_styles_of_query(self) -> None:
        """Arrays and objects of a query stand there as their style says."""
        numbers = {"type": "array", "items": {"type": "integer"}}
        table = {"type": "object", "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}}}
        for value, schema, style, wanted in (
            ([1, 2], numbers, {}, "?p=1&p=2"),
            ([1, 2], numbers, {"explode": False}, "?p=1,2"),
            ([1, 2], numbers, {"style": "pipeDelimited"}, "?p=1%7C2"),
            ([1, 2], numbers, {"style": "spaceDelimited", "explode": False}, "?p=1%202"),
            ([1, 2], numbers, {"style": "pipeDelimited", "explode": True}, "?p=1&p=2"),
            ({"from": 1, "to": 2}, table, {"explode": False}, "?p=from,1,to,2"),
        ):
            self.assertEqual(self.query(value, schema, **style), wanted)

    def test_styles_of_path(self) -> None:
        """So do those of a path, a single value as well."""
        several = {"type": "array", "items": TEXT}
        for value, schema, style, wanted in (
            (["3", "4"], several, {}, "3,4"),
            (["3", "4"], several, {"style": "label", "explode": True}, ".3.4"),
            (["3", "4"], several, {"style": "matrix", "explode": True}, ";p=3;p=4"),
            (["3", "4"], several, {"style": "matrix"}, ";p=3,4"),
            ("3", TEXT, {"style": "matrix"}, ";p=3"),
            ({"a": "1"}, {"type": "object", "properties": {"a": TEXT}}, {"explode": True}, "a=1"),
        ):
            parameter = {"name": "p", "in": "path", "required": True, "schema": schema, **style}
            found = document("/x/{p}", "get", parameters=[parameter])
            self.assertEqual(sent(found, p=value).url, f"{BASE}/x/{wanted}")

    def test_one_name(self) -> None:
        """Of two parameters that would end under one name the second is marked, and the action works."""
        table = {"type": "object", "properties": {"limit": {"type": "integer"}, "after": TEXT}}
        parameters = [
            {"name": "limit", "in": "query", "schema": {"type": "integer"}},
            {"name": "page", "in": "query", "schema": table},
        ]
        found = document("/x", "get", parameters=parameters)
        self.assertEqual(self.lost(found), [])
        self.assertEqual(sent(found, limit=1, after="b").url, f"{BASE}/x?limit=1&after=b")
        self.assertIn("has the name of another one in the request: limit", written(found).marks[0])

    def test_encoded(self) -> None:
        """A parameter that holds JSON is a text, and what is not checked is marked."""
        parameter = {"name": "p", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}}
        found = document("/x", "get", parameters=[parameter])
        self.assertEqual((self.lost(found), sent(found, p='{"a":1}').url), ([], f"{BASE}/x?p=%7B%22a%22%3A1%7D"))
        self.assertIn("is not checked", written(found).marks[0])

    def test_path(self) -> None:
        """A path may have names of any script, and one that is not described; their descriptions tell them."""
        parameters = [{"name": "straße", "in": "path", "required": True, "schema": TEXT}]
        found = document("/größe/{straße}/{id}", "get", parameters=parameters)
        self.assertEqual(sent(found, stra_e="a", id="1").url, f"{BASE}/gr%C3%B6%C3%9Fe/a/1")
        self.assertIn("straße", operation(found, "odd").parameters[0].description)
        self.assertIn("is not described", written(found).marks[0])

    def test_misleading_path(self) -> None:
        """A path with an empty segment or a dot segment is refused, as a connector file cannot have it."""
        for path in ("//x", "/a//x", "/a/./x", "/a/../x", "/a/..", "/."):
            found = written(document(path, "get"))
            self.assertIn("its path has an empty segment", found.refused["odd"], path)
        for path in ("/a/x/", "/.well-known/x", "/a/...", "/"):
            self.assertEqual(written(document(path, "get")).refused, {}, path)

    def test_paged(self) -> None:
        """Of too many inputs those that page are kept."""
        names = [*(f"f{at}" for at in range(64)), "limit", "offset"]
        parameters = [{"name": each, "in": "query", "schema": {"type": "integer"}} for each in names]
        schema = {"type": "object", "properties": {"results": {"type": "array", "items": {"type": "object"}}}}
        responses = {"200": {"content": {"application/json": {"schema": schema}}}}
        found = document("/x", "get", parameters=parameters, responses=responses)
        self.assertEqual(self.lost(found), [])
        self.assertIn("f62, f63", written(found).marks[0])
        pages = spec(found, "odd").operations["odd"].pages
        self.assertIsNotNone(pages)
        self.assertIn("offset", {each.name for each in action(found, "odd").inputs})


class AnswerTests(SynchronousTestCase):
    """Answers that are not described."""

    def test_marked(self) -> None:
        """A success without content is read as it comes, and marked; a 204 has none."""
        for responses, answer, marked in (
            ({"200": {"description": "Success"}}, "auto", True),
            ({"201": {"description": "Made"}, "400": JSON_ANSWER["200"]}, "auto", True),
            ({}, "auto", True),
            ({"204": {"description": "Done"}}, "none", False),
            ({"default": JSON_ANSWER["200"]}, "json", False),
            ({"200": {"content": {"text/csv": {}}}}, "text", False),
        ):
            found = document("/x", "get", responses=responses)
            self.assertEqual(spec(found, "odd").operations["odd"].answer, answer, responses)
            self.assertEqual(any("is read by its type" in each for each in written(found).marks), marked, responses)

    def test_described(self) -> None:
        """Each action tells the model something below its heading."""
        for keys in ({}, {"summary": "Finds"}, {"summary": "Finds", "description": "Finds things."}):
            found = document("/x/{id}", "get", parameters=[], **keys)
            heading, _, words = action(found, "odd").description.strip().partition("\n")
            self.assertTrue(heading.startswith("# "))
            self.assertTrue(words.strip(), keys)


class PlaceTests(SynchronousTestCase):
    """Servers, credentials and parts that are elsewhere."""

    def test_port(self) -> None:
        """A variable for the port has its default, and a port that every URL has anyway is left out."""
        variables = {"port": {"default": "443", "enum": ["443", "8443"]}, "v": {"default": "v1/x"}}
        found = document("/x", "get", [{"url": "https://a.example:{port}/{v}", "variables": variables}])
        described = describe(found)
        self.assertEqual(described.base_url, "https://a.example/v1/x")
        self.assertIn("always 443, and not 8443", described.marks[0])
        for url, base in (
            ("https://a.example:443/v1", "https://a.example/v1"),
            ("http://a.example:80/v1", "https://a.example/v1"),
            ("https://a.example:8443/v1", "https://a.example:8443/v1"),
        ):
            self.assertEqual(describe(document("/x", "get", [{"url": url}])).base_url, base)

    def test_several(self) -> None:
        """Of several servers it is told which were not chosen."""
        servers = [{"url": "http://insecure.example/api"}, {"url": "https://staging.a.example"}]
        described = describe(document("/x", "get", servers))
        self.assertEqual(described.base_url, "https://staging.a.example")
        self.assertIn("http://insecure.example/api", described.marks[0])

    def test_credential(self) -> None:
        """A credential that no operation asks for is named."""
        found = document("/x", "get")
        del found["security"]
        found["components"] = {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-K"}}}
        described = describe(found)
        self.assertIsNone(described.credential)
        self.assertIn("(k), but no operation asks for it", described.marks[0])

    def test_methods(self) -> None:
        """A method that no connector sends is named."""
        found = document("/x", "get")
        found["paths"]["/x"]["options"] = {"responses": {}}
        self.assertIn("has the method OPTIONS: /x", describe(found).marks[0])

    def test_key(self) -> None:
        """A header that none can be is not the credential's."""
        found = document("/x", "get")
        found["security"] = [{"k": []}]
        found["components"] = {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "a header"}}}
        self.assertIn("a guess", written(found).marks[0])
        self.assertEqual(spec(found, "odd").description.credential.header, "Authorization")  # type: ignore[union-attr]

    def test_elsewhere(self) -> None:
        """A path of another document is named, and the others are imported; without others the cause is told."""
        found = document("/x", "get")
        found["paths"]["/a"] = {"$ref": "./paths/a.yaml"}
        self.assertIn("refers to another document: /a", describe(found).marks[0])
        del found["paths"]["/x"]
        error = self.assertRaises(NotImported, reader, found)
        self.assertIn("/a refers to another document", error.problem)
        self.assertIn("bundle", error.advice)


class EachTests(SynchronousTestCase):
    """Operations by themselves."""

    def test_one_bad(self) -> None:
        """An operation that cannot be imported is refused with its reason, and the others are imported."""
        found = document("/x", "get")
        bad: dict[str, Any] = {
            "/a": {"post": {"parameters": 7, "requestBody": body({"type": "object", "properties": {"a": [1]}})}},
            "/b": {"post": {"requestBody": {**body({"$ref": "b.yaml"}), "required": True}}},
            "/c": {"get": {"parameters": [{"name": "p", "in": "query", "schema": {"enum": {}}, "required": True}]}},
            "/d": {"get": {"parameters": [[1]], "responses": [1]}},
            "/e": {"post": {"requestBody": {"content": {"application/json": {"schema": {"allOf": 5, "oneOf": [1]}}}}}},
        }
        found["paths"] |= bad
        read = read_api(json.dumps(found).encode())
        files = write_connector(read.describe(NAME, read.list_operations()))
        self.assertIn("odd", files.connector.text)
        self.assertTrue(files.refused)
        self.assertTrue(all(files.refused.values()))
