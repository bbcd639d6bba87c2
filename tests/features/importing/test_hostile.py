"""Of documents that somebody made to do harm, or that are broken: they end in sound files, or in a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import ManifestFault, parse
from aileron.connectors._schema import read_file
from aileron.features.importing._documents import read_document
from aileron.features.importing.description import NotImported
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from aileron.model.connectors import READ
from tests.extent import examples
from tests.features.importing.library import LIBRARY

LIBRARY_OF_OURS: Any = read_document(LIBRARY.read_bytes())
WORDS = [
    "object",
    "array",
    "$ref",
    "#/components/schemas/Book",
    "#",
    "path",
    "query",
    "form",
    "deepObject",
    "",
    "x",
    "\n",
]
WORDS += ["${in.a}", "${effect.key}", "../", "+++", '"""', "\u202e", "Authorization", "https://", "{id}", "2XX"]
LEAVES = st.sampled_from([None, True, False, 0, -1, 2**70, 1.5, *WORDS])
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WORDS, "type", "enum"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container in a value with each of its keys."""
    for key, each in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(each, (dict, list)):
            yield from places(each)


class HostileTests(SynchronousTestCase):
    def imported(self, document: object, number: int) -> None:
        """Import two operations of a document: only what reads is free in what is written."""
        try:
            reader = read_api(json.dumps(document).encode())
            operations = [*reader.list_operations(), *reader.list_operations()][number % 8 :][:2]
            description = reader.describe("local://me/x", tuple(operations))
        except NotImported:
            return
        written = write_connector(description)
        effects = {each.name: each.effect for each in description.operations}
        faults = read_file(written.connector.text.encode(), "x.toml").problems
        self.assertNotIn("parse_error", {each.kind for each in faults})
        for file in written.actions:
            try:
                action = parse(file.text.encode(), file.name)
            except ManifestFault:
                continue
            self.assertEqual(action.approval.gated, effects[action.steps[0].operation] != READ)

    @settings(max_examples=examples(200), suppress_health_check=list(HealthCheck), deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 10_000), TREES), min_size=1, max_size=4))
    def test_broken(self, changes: list[tuple[int, Any]]) -> None:
        """Whatever stands in the place of some parts of a document, importing it is no failure of ours."""
        document = json.loads(json.dumps(LIBRARY_OF_OURS))
        for number, tree in changes:
            there = list(places(document))
            container, key = there[number % len(there)]
            container[key] = tree
        self.imported(document, changes[0][0])

    def test_no_other_document(self) -> None:
        """References to elsewhere, in every place where one can be, are neither opened nor fetched."""
        other = {"$ref": "file:///etc/passwd"}
        operation = {"parameters": [other], "requestBody": other, "responses": {"200": other}}
        paths = {"/a": other, "/b": {"post": operation}, "/c": {"get": {"responses": {"200": other}}}}
        reader = read_api(json.dumps({"openapi": "3.1.0", "paths": paths}).encode())
        self.assertEqual([each.name for each in reader.list_operations()], ["post_b", "get_c"])
        written = write_connector(reader.describe("local://me/x", reader.list_operations()))
        self.assertEqual(written.refused, {"post_b": "refers to another document"})
        self.assertNotIn("passwd", written.connector.text)

    def test_identifiers(self) -> None:
        """C{$id} and C{$schema}, as in examples, change nothing."""
        document = json.loads(
            json.dumps(LIBRARY_OF_OURS).replace('"type": "object"', '"$id": "https://x/", "type": "object"')
        )
        reader = read_api(json.dumps(document).encode())
        ours = read_api(LIBRARY.read_bytes())
        texts = [
            write_connector(each.describe("local://me/x", each.list_operations())).connector.text
            for each in (reader, ours)
        ]
        self.assertEqual(texts[0], texts[1])

    def test_unseen(self) -> None:
        """An argument with characters that nobody sees is left out; an operation that needs it is refused."""
        hidden = {"name": "a\u202eb", "in": "query", "schema": {"type": "string"}}
        choice = {"name": "c", "in": "query", "required": True, "schema": {"enum": ["x\u200b"]}}
        long = {"name": "n" * 100_000, "in": "cookie", "required": True}
        paths = {f"/{i}": {"get": {"parameters": [each]}} for i, each in enumerate((hidden, choice, long))}
        reader = read_api(json.dumps({"openapi": "3.0.0", "paths": paths}).encode())
        written = write_connector(reader.describe("local://me/x", reader.list_operations()))
        self.assertEqual(list(written.refused), ["get_1", "get_2"])
        self.assertLess(max(map(len, written.refused.values())), 500)
        self.assertTrue(any("cannot be seen: a_b" in each for each in written.marks))
        self.assertNotIn("\u202e", written.connector.text)

    def test_this_machine(self) -> None:
        """A document that leads to this machine says so in a mark, unless it was found there."""
        document = {"openapi": "3.0.0", "servers": [{"url": "http://127.0.0.1:2375"}], "paths": {}}
        for address, marks in (("", 1), ("https://x.example/a", 1), ("http://127.0.0.1:8000/a", 0)):
            reader = read_api(json.dumps(document).encode(), address)
            found = reader.describe("local://me/x", ())
            self.assertEqual((found.base_url, len(found.marks)), ("http://127.0.0.1:2375", marks), address)

    def test_many(self) -> None:
        """Thousands of operations, parameters and choices with the same names take no more than their share of time."""
        parameters = [{"name": "a", "in": "query", "schema": {"enum": [str(i)]}} for i in range(1)]
        parameters += [{"name": f"a{'.' * i}", "in": "query", "schema": {"type": "string"}} for i in range(2000)]
        choices = {"name": "c", "in": "query", "required": True, "schema": {"enum": [str(i) for i in range(20_000)]}}
        paths: dict[str, Any] = {f"/{i}": {"get": {"operationId": "x"}} for i in range(3000)}
        paths["/0"]["get"]["parameters"] = parameters
        paths["/choices"] = {"get": {"operationId": "y", "parameters": [choices]}}
        reader = read_api(json.dumps({"openapi": "3.0.0", "paths": paths}).encode())
        operations = reader.list_operations()
        self.assertEqual(len({each.name for each in operations}), 3001)
        written = write_connector(reader.describe("local://me/x", (operations[0], operations[-1])))
        self.assertEqual(written.actions[0].text.count("[[inputs]]"), 64)
        self.assertIn("c is required", written.refused["y"])
