"""Of Google's Discovery documents: what their methods become."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.importing.description import NotImported
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from tests.features.importing.reading import action, describe, operation, reader, request, spec

BASE = "https://notes.googleapis.com/v1"
_AUTH = "https://www.googleapis.com/auth/"


def _method(key: str, verb: str, path: str, **more: Any) -> dict[str, Any]:
    return {"id": f"notes.{key}", "httpMethod": verb, "path": path, "description": f"Does {key}. And more.", **more}


_BOOK = {"type": "string", "location": "path", "required": True, "pattern": "^shelves/[^/]+/books/[^/]+$"}
_NOTE = {
    "id": "Note",
    "type": "object",
    "properties": {
        "text": {"type": "string", "annotations": {"required": ["notes.books.notes.insert"]}},
        "created": {"type": "string", "format": "google-datetime", "description": "Output only. When."},
        "due": {"type": "string", "format": "date"},
        "replies": {"type": "array", "items": {"$ref": "Note"}},
        "values": {"type": "array", "items": {"type": "array", "items": {"type": "any"}}},
        "etag": {"type": "string", "readOnly": True},
    },
}
_LIST = {"nextPageToken": {"type": "string"}, "notes": {"type": "array", "items": {"$ref": "Note"}}}
NOTES: dict[str, Any] = {
    "kind": "discovery#restDescription",
    "name": "notes",
    "title": "Notes API",
    "rootUrl": "https://notes.googleapis.com/",
    "servicePath": "v1/",
    "parameters": {"alt": {"type": "string", "location": "query"}},
    "schemas": {"Note": _NOTE, "NoteList": {"id": "NoteList", "type": "object", "properties": _LIST}},
    "resources": {
        "books": {
            "methods": {
                "search": _method(
                    "books.search",
                    "POST",
                    "books:search",
                    request={"$ref": "Note"},
                    response={"$ref": "Note"},
                    scopes=[f"{_AUTH}notes", f"{_AUTH}notes.readonly"],
                ),
                "export": _method(
                    "books.export",
                    "GET",
                    "books/{bookId}/export",
                    supportsMediaDownload=True,
                    parameters={
                        "bookId": {"type": "string", "location": "path", "required": True},
                        "mimeType": {"type": "string", "location": "query"},
                    },
                ),
                "upload": _method("books.upload", "POST", "books", supportsMediaUpload=True),
                "watch": _method(
                    "books.watch", "POST", "books/watch", scopes=[f"{_AUTH}notes.readonly"], request={"$ref": "Note"}
                ),
                "getToken": _method("books.getToken", "GET", "token", response={"$ref": "Note"}),
                "odd": _method("books.odd", "GET", "books/{a}{?b}", response={"$ref": "Note"}),
            },
            "resources": {
                "notes": {
                    "methods": {
                        "list": _method(
                            "books.notes.list",
                            "GET",
                            "{+parent}/notes",
                            response={"$ref": "NoteList"},
                            scopes=[f"{_AUTH}cloud", f"{_AUTH}notes", f"{_AUTH}notes.readonly"],
                            parameters={
                                "parent": _BOOK,
                                "pageToken": {"type": "string", "location": "query"},
                                "pageSize": {
                                    "type": "integer",
                                    "location": "query",
                                    "minimum": "1",
                                    "maximum": "10",
                                    "default": "5",
                                },
                                "old": {"type": "string", "location": "query", "deprecated": True},
                                "labels": {
                                    "type": "string",
                                    "location": "query",
                                    "repeated": True,
                                    "enum": ["a", "b"],
                                    "description": "Which.",
                                },
                            },
                        ),
                        "insert": _method(
                            "books.notes.insert",
                            "POST",
                            "{+parent}/notes:add",
                            supportsMediaUpload=True,
                            request={"$ref": "Note"},
                            response={"$ref": "Note"},
                            scopes=[f"{_AUTH}cloud", f"{_AUTH}other"],
                            parameters={"parent": _BOOK},
                        ),
                        "delete": _method("books.notes.delete", "DELETE", "{+parent}", parameters={"parent": _BOOK}),
                    }
                }
            },
        }
    },
}


class DiscoveryTests(SynchronousTestCase):
    def test_list(self) -> None:
        """Methods of all resources are listed; a POST only reads if its verb and one of its scopes say so."""
        listed = {each.key: (each.name, each.effect) for each in reader(NOTES).list_operations()}
        self.assertEqual(listed["notes.books.notes.list"], ("books_notes_list", "read"))
        self.assertEqual(listed["notes.books.search"], ("books_search", "read"))
        self.assertEqual(listed["notes.books.watch"], ("books_watch", "write"))
        self.assertEqual(listed["notes.books.notes.delete"], ("books_notes_delete", "write"))
        self.assertEqual(len(listed), 9)

    def test_secret_reads(self) -> None:
        """A read whose name says that it hands out something secret is asked for, another is not."""
        self.assertEqual(operation(NOTES, "notes.books.getToken").effect, "read")
        self.assertTrue(action(NOTES, "notes.books.getToken").approval.gated)
        self.assertFalse(action(NOTES, "notes.books.search").approval.gated)

    def test_read(self) -> None:
        """A name of several segments keeps its slashes, an array repeats its parameter, and pages follow."""
        made = request(
            NOTES, "notes.books.notes.list", BASE, parent="shelves/1/books/a b", labels=["a", "b"], page_size=3
        )
        url = urlsplit(made.url)
        self.assertEqual((made.method, url.path), ("GET", "/v1/shelves/1/books/a%20b/notes"))
        self.assertEqual(parse_qs(url.query), {"labels": ["a", "b"], "pageSize": ["3"]})
        pages = spec(NOTES, "notes.books.notes.list").operations["books_notes_list"].pages
        assert pages is not None
        self.assertEqual((pages.items, pages.cursor, pages.parameter), (("notes",), ("nextPageToken",), ("pageToken",)))

    def test_inputs(self) -> None:
        """Bounds, choices and patterns are checked, outdated parameters left out, defaults named."""
        properties: Any = action(NOTES, "notes.books.notes.list").input_schema["properties"]
        self.assertEqual(set(properties), {"parent", "page_token", "page_size", "labels"})
        self.assertEqual((properties["page_size"]["minimum"], properties["page_size"]["maximum"]), (1, 10))
        self.assertIn("Default: 5.", properties["page_size"]["description"])
        self.assertEqual(properties["labels"]["items"], {"type": "string", "enum": ["a", "b"]})
        self.assertEqual(properties["labels"]["description"], "Which.")
        self.assertEqual(properties["parent"]["pattern"], "^shelves/[^/]+/books/[^/]+$")

    def test_body(self) -> None:
        """A body's members are arguments, without what only Google writes; what repeats itself is any object."""
        made = request(NOTES, "notes.books.notes.insert", BASE, parent="shelves/1/books/2", text="Hi", due="2030-01-31")
        self.assertEqual(made.url, f"{BASE}/shelves/1/books/2/notes:add")
        self.assertEqual(made.body, b'{"due":"2030-01-31","text":"Hi"}')
        schema: Any = action(NOTES, "notes.books.notes.insert").input_schema
        self.assertEqual(set(schema["properties"]), {"parent", "text", "due", "replies", "values"})
        self.assertEqual(set(schema["required"]), {"parent", "text"})
        self.assertEqual(schema["properties"]["replies"]["items"], {"type": "object"})
        self.assertEqual(schema["properties"]["values"]["items"], {"type": "array"})

    def test_scopes(self) -> None:
        """Of scopes of which each is enough, the one named like the method is chosen, else the rarest."""
        self.assertEqual(operation(NOTES, "notes.books.notes.list").scopes, (f"{_AUTH}notes.readonly",))
        self.assertEqual(operation(NOTES, "notes.books.notes.insert").scopes, (f"{_AUTH}other",))
        credential = describe(NOTES, "notes.books.notes.list", "notes.books.notes.insert").credential
        assert credential is not None
        self.assertEqual(credential.keys["scopes"], [f"{_AUTH}notes.readonly", f"{_AUTH}other"])
        self.assertEqual(credential.keys["token_url"], "https://oauth2.googleapis.com/token")
        self.assertEqual(len(credential.marks), 1)
        self.assertIsNone(describe(NOTES, "notes.books.notes.delete").credential)

    def test_answers(self) -> None:
        """A method without a response has none; a download is a file; a failure has its message."""
        self.assertEqual(operation(NOTES, "notes.books.notes.delete").extra["answer"], "none")
        made = request(NOTES, "notes.books.export", BASE, book_id="7", mime_type="text/plain")
        self.assertEqual(made.url, f"{BASE}/books/7/export?mimeType=text%2Fplain&alt=media")
        self.assertEqual(operation(NOTES, "notes.books.export").extra["answer"], "file")
        self.assertEqual(operation(NOTES, "notes.books.search").extra["error"], {"message": "error.message"})

    def test_refused(self) -> None:
        """What only uploads, and a path of another form, is refused with the reason; what also uploads is marked."""
        refused = write_connector(describe(NOTES)).refused
        self.assertEqual(set(refused), {"books_upload", "books_odd"})
        self.assertIn("uploads a file", refused["books_upload"])
        self.assertIn("its path", refused["books_odd"])
        self.assertIn("only what describes the file is sent", operation(NOTES, "notes.books.notes.insert").marks[0])

    def test_other_hosts(self) -> None:
        """A credential of Google's goes nowhere else, whatever a document says."""
        for root in (
            "https://evil.example/",
            "http://notes.googleapis.com/",
            "https://googleapis.com.evil.example/",
            "https://evil.example/.googleapis.com/",
            "https://user@notes.googleapis.com/",
            "https://notes.googleapis.com:8443/",
            "https://notes.googleapis.com/../",
            "",
        ):
            with self.assertRaises(NotImported):
                reader({**NOTES, "rootUrl": root})

    def test_named_host(self) -> None:
        """A host that a person named is taken, whatever the document says."""
        document = json.dumps({**NOTES, "rootUrl": "https://evil.example/"}).encode()
        found = read_api(document, "", "https://europe-notes.googleapis.com/v1/").describe("local://me/notes", ())
        self.assertEqual(found.base_url, "https://europe-notes.googleapis.com/v1")

    def test_hostile(self) -> None:
        """Values of other types, circles, scopes with blanks and resources in resources do no harm."""
        deep: dict[str, Any] = {}
        for _ in range(40):
            deep = {"resources": {"a": deep}}
        with self.assertRaises(NotImported):
            reader({**NOTES, **deep})
        members = {"a": {"$ref": "A"}, "b": {"$ref": "B"}, "c": {"$ref": "Gone"}}
        circle = {"A": {"type": "object", "properties": members}, "B": {"$ref": "B"}}
        method = _method(
            "x.y",
            "POST",
            "x",
            request={"$ref": "A"},
            scopes=["https://a b", 7, 'https://a" evil = "b'],
            parameters={"q": 7, "r": {"location": "query", "type": "object"}, "s": {"location": "header", "type": 3}},
        )
        wild = {**NOTES, "schemas": circle, "resources": {"x": {"methods": {"y": method, "z": 7, "w": {}}}, "v": []}}
        found = operation(wild, "notes.x.y")
        self.assertEqual((found.scopes, found.refused), ((), ""))
        self.assertEqual([each.name for each in found.parameters], ["a"])
        self.assertEqual(dict(found.parameters[0].schema), {"type": "object"})
        spec(wild)
