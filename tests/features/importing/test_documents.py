"""Of foreign documents as bytes: their bounds, whoever wrote them."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.importing._documents import MOST_BYTES, read_document
from aileron.features.importing._references import ApiDocument, Inexpressible, WorkBudget
from aileron.features.importing._schemas import narrow
from aileron.features.importing.description import NotImported

MANY = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
LAUGHS = MANY + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
MERGES = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i}\n  <<: [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))


class DocumentTests(SynchronousTestCase):
    def refused(self, data: bytes, *words: str) -> None:
        """It is not read, and the reason has these words."""
        with self.assertRaises(NotImported) as caught:
            read_document(data)
        for word in words:
            self.assertIn(word, caught.exception.problem)

    def test_yaml(self) -> None:
        """A scalar of YAML is what JSON has; everything else without quotes is a text, and so are keys."""
        read = read_document(
            b"a: no\nb: 2020-01-01\nc: 1.5\nd: 010\n200: x\ne: ~\nf: true\ng: -12\nh:\ni: 0x10\nj: 1e3\n"
        )
        texts = {"a": "no", "b": "2020-01-01", "d": "010", "200": "x", "i": "0x10"}
        self.assertEqual(read, texts | {"c": 1.5, "e": None, "f": True, "g": -12, "h": None, "j": 1000.0})

    def test_bombs(self) -> None:
        """Aliases of aliases, and merges of merges, are refused without being carried out."""
        self.refused(LAUGHS.encode(), "too many values")
        self.refused(MERGES.encode(), "merge key")
        self.refused(MERGES.replace("<<", "!!merge <<").encode(), "merge")
        self.refused(b"a: &a [*a]", "nested too deeply")

    def test_deep(self) -> None:
        """Depth is bounded in JSON and YAML, far below what a stack can hold."""
        for data in (b"[" * 200_000, b"a: " + b"[" * 200_000, b"- " * 30_000, b'{"a":' * 101 + b"1" + b"}" * 101):
            self.refused(data)

    def test_no_json(self) -> None:
        """Tags of Python, dates and sets, numbers that are none, and what is no object are refused."""
        self.refused(b"a: !!python/object/apply:os.system [ls]", "not valid YAML")
        self.refused(b"a: !!timestamp 2020-01-01", "JSON")
        self.refused(b"a: !!set {x, y}", "JSON")
        self.refused(b"? [1, 2]\n: x", "not valid YAML")
        self.refused(b'{"a": NaN}', "JSON")
        self.refused(b'{"a": }', "not valid JSON", "line 1")
        self.refused(b"a: [", "not valid YAML", "line")
        self.refused(b"[]", "not an object")
        self.refused(b"\xff", "UTF-8")
        self.refused(b" " * (MOST_BYTES + 1), "larger than")

    def test_surrogates(self) -> None:
        """A lone surrogate becomes a replacement character, in keys as well."""
        self.assertEqual(read_document(b'{"\\ud800": "\\udfff!"}'), {"\ufffd": "\ufffd!"})

    @given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
    def test_any_bytes(self, data: bytes) -> None:
        """Whatever the bytes are, they are an object or a reason."""
        try:
            self.assertIsInstance(read_document(data), dict)
        except NotImported as error:
            self.assertTrue(error.problem.startswith("The document"))


class ReferenceTests(SynchronousTestCase):
    def follow(self, root: dict[str, Any], reference: str) -> object:
        """Where a reference leads."""
        return ApiDocument(root).follow({"$ref": reference}).keys

    def test_local(self) -> None:
        """A pointer is followed through objects and arrays, with its escapes; what is around it does not matter."""
        root: dict[str, Any] = {"a/b": [{"x y": {"~": {"found": 1}}}], "$id": "https://elsewhere.example/"}
        self.assertEqual(self.follow(root, "#/a~1b/0/x%20y/~0"), {"found": 1})

    def test_elsewhere(self) -> None:
        """Another document, a place that is not there, and a circle are refused, and nothing is fetched or opened."""
        root = {"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}, "c": [1], "d": "x"}
        wrong = (
            "https://x.example/#/a",
            "file:///etc/passwd",
            "other.yaml#/a",
            "#a",
            "#/e",
            "#/c/9",
            "#/c/-1",
            "#/a",
            "#/d",
        )
        for reference in (*wrong, "#/c/" + "9" * 5000, "#/c/0"):
            self.assertRaises(Inexpressible, self.follow, root, reference)

    def test_chains(self) -> None:
        """References of references are followed a few times, and not for ever."""
        root: dict[str, Any] = {f"a{i}": {"$ref": f"#/a{i + 1}"} for i in range(40)} | {"a40": {"found": 1}}
        self.assertEqual(self.follow(root, "#/a30"), {"found": 1})
        self.assertRaises(Inexpressible, self.follow, root, "#/a0")

    @given(st.integers(2, 30), st.integers(2, 8))
    def test_counted(self, depth: int, width: int) -> None:
        """Schemas of schemas, which would be more than there is room for, end with the work that is allowed."""
        root: dict[str, Any] = {
            f"s{i}": {"type": "object", "properties": {f"p{j}": {"$ref": f"#/s{i + 1}"} for j in range(width)}}
            for i in range(depth)
        }
        work = WorkBudget(2000)
        with contextlib.suppress(Inexpressible):
            narrow(ApiDocument(root | {f"s{depth}": {"type": "string"}}), {"$ref": "#/s0"}, work)
        self.assertGreaterEqual(work.left, -2000)
