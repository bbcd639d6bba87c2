"""Of inputs of several parts in a path, a query or a form, of bodies that are left out, and of answers of any type."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.http._classify import find_form
from aileron.model.connectors import Request
from aileron.model.errors import InvalidRequest
from tests.connectors.service import Service, answer, spec_of

HEAD = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = "https://api.example"

[operations.find]
"""
BASE = "https://api.example"


def prepared(operation: str, **inputs: JSON) -> Request:
    """The request of an operation's table."""
    return Service().connector(spec_of(HEAD + operation)).prepare("find", inputs, BASE, "k1")


class JoinedTests(SynchronousTestCase):
    """Parts behind each other in one text."""

    def test_query(self) -> None:
        """Elements, and names with their values, are encoded, and what stands between them is not."""
        table = 'method = "GET"\npath = "/x"\nquery = {{ range = "${{in.range}}" }}\njoined = {{ range = {{ {how} }} }}'
        members: Mapping[str, JSON] = {"from": 1, "to": "2,3&4", "none": None}
        cases: tuple[tuple[str, JSON, str], ...] = (
            ('between = ","', ["a", "b,c", 1, True], "?range=a,b%2Cc,1,true"),
            ('between = "%20"', ["a", "b c"], "?range=a%20b%20c"),
            ('between = "%7C"', ["a", "b"], "?range=a%7Cb"),
            ('between = ",", pair = ","', members, "?range=from,1,to,2%2C3%264"),
            ('between = ","', "one", "?range=one"),
            ('between = ","', [], ""),
            ('between = ","', None, ""),
        )
        for how, given, sent in cases:
            self.assertEqual(prepared(table.format(how=how), range=given).url, f"{BASE}/x{sent}", how)
        self.assertEqual(prepared(table.format(how='between = ","')).url, f"{BASE}/x")

    def test_path(self) -> None:
        """A path has them in its segment, behind what the style begins with; none is an error."""
        table = 'method = "GET"\npath = "/x/${{in.ids}}/y"\njoined = {{ ids = {{ {how} }} }}'
        cases: tuple[tuple[str, JSON, str], ...] = (
            ('between = ","', ["3", "4/5"], "3,4%2F5"),
            ('before = ";ids=", between = ";ids="', ["3", "4"], ";ids=3;ids=4"),
            ('before = ".", between = "."', ["3", "4"], ".3.4"),
            ('before = ";", between = ";", pair = "="', {"a": 1, "b": 2}, ";a=1;b=2"),
        )
        for how, given, sent in cases:
            self.assertEqual(prepared(table.format(how=how), ids=given).url, f"{BASE}/x/{sent}/y", how)
        wrong: tuple[JSON, ...] = ([], [".."], {"a": []})
        for given in wrong:
            self.assertRaises(InvalidRequest, prepared, table.format(how='between = ","'), ids=given)
        self.assertRaises(InvalidRequest, prepared, table.format(how='between = ","'))

    def test_header_and_form(self) -> None:
        """A header has them as they are, and a form as a query has."""
        table = 'method = "POST"\npath = "/x"\nheaders = { X-A = "${in.a}" }\nform = { b = "${in.b}" }\n'
        table += 'joined = { a = { between = "," }, b = { between = "," } }'
        sent = prepared(table, a=["1", "2"], b=["3", "4"])
        self.assertEqual((dict(sent.headers)["X-A"], sent.body), ("1,2", b"b=3,4"))
        self.assertRaises(InvalidRequest, prepared, table, a=["1\r\nX: 2"])

    def test_faults(self) -> None:
        """What joins nothing, or would end a segment or a value, is a fault."""
        table = 'method = "GET"\npath = "/x"\nquery = {{ a = "${{in.a}}" }}\njoined = {{ {how} }}'
        for how in ('b = { between = "," }', 'a = { between = "&" }', 'a = { between = "/" }', "a = {}", "a = 1"):
            found = read_file((HEAD + table.format(how=how)).encode(), "x.toml")
            self.assertIsNone(found.spec, how)


class LeftOutTests(SynchronousTestCase):
    """Bodies that are not sent."""

    def test_optional(self) -> None:
        """Without its inputs an optional body is left out with its type, and another is as empty as it was."""
        for body, given, sent in (
            ('json = { a = "${in.a}" }', {}, b"{}"),
            ('json = "${in.a}"', {"a": None}, b"null"),
            ('json = "${in.a}"', {}, None),
            ('form = { a = "${in.a}" }', {}, b""),
            ('text = "${in.a}"', {}, None),
            ('json = { a = "${in.a}" }\noptional_body = true', {}, None),
            ('json = { a = "${in.a}" }\noptional_body = true', {"a": 1}, b'{"a":1}'),
            ('form = { a = "${in.a}" }\noptional_body = true', {}, None),
            ('multipart = { a = "${in.a}" }\noptional_body = true', {}, None),
            ('file = { media_type = "a/b", base64 = "${in.a}" }\noptional_body = true', {}, None),
        ):
            request = prepared(f'method = "POST"\npath = "/x"\nheaders = {{}}\n{body}', **given)
            self.assertEqual(request.body, sent, body)
            self.assertEqual("Content-Type" in dict(request.headers), sent is not None, body)
        own = 'method = "POST"\npath = "/x"\nheaders = { Content-Type = "a/b" }\njson = "${in.a}"'
        self.assertNotIn("Content-Type", dict(prepared(own).headers))
        self.assertIn("Content-Type", dict(prepared(own, a=1).headers))

    def test_get(self) -> None:
        """A GET may have a body of JSON, and no other; a HEAD has none."""
        self.assertEqual(prepared('method = "GET"\npath = "/x"\njson = "${in.a}"', a={"q": 1}).body, b'{"q":1}')
        for table in ('method = "GET"\nform = { a = "1" }', 'method = "HEAD"\njson = 1'):
            self.assertIsNone(read_file(f'{HEAD}path = "/x"\n{table}'.encode(), "x.toml").spec)


class PartsTests(SynchronousTestCase):
    """Parts of a form that are several, or no text."""

    def test_several(self) -> None:
        """An array is a part for each element, a list of files a file for each, and JSON a part of its type."""
        table = 'method = "POST"\npath = "/x"\n[operations.find.multipart]\ntags = "${in.tags}"\n'
        table += 'files = { files = "${in.files}" }\nmeta = { json = "${in.meta}" }'
        files: JSON = [
            {"filename": "a.txt", "media_type": "text/plain", "text": "${in.tags}"},
            {"filename": "b.bin", "media_type": "application/x-b", "base64": "AAE="},
        ]
        sent = prepared(table, tags=["a", "b"], files=files, meta={"k": [1]})
        self.assertEqual(
            [(each.name, each.filename, each.media_type, each.content) for each in sent.parts],
            [
                ("tags", None, sent.parts[0].media_type, b"a"),
                ("tags", None, sent.parts[0].media_type, b"b"),
                ("files", "a.txt", "text/plain", b"${in.tags}"),
                ("files", "b.bin", "application/x-b", b"\x00\x01"),
                ("meta", None, "application/json", b'{"k":[1]}'),
            ],
        )
        wrong: tuple[JSON, ...] = ("a", [1], [{"filename": "a"}], [{"filename": "a", "media_type": "a/b"}])
        for each in (*wrong, [{"filename": "a\r\nb", "media_type": "a/b", "text": ""}]):
            self.assertRaises(InvalidRequest, prepared, table, files=each)

    def test_faults(self) -> None:
        """Such a part says nothing else."""
        for part in ('{ files = "a" }', '{ files = "${in.a}", json = "${in.a}" }', '{ json = "x${in.a}" }'):
            table = f'{HEAD}method = "POST"\npath = "/x"\nmultipart = {{ a = {part} }}'
            self.assertIsNone(read_file(table.encode(), "x.toml").spec, part)


class AutoTests(SynchronousTestCase):
    """Answers whose type only the service knows."""

    def test_forms(self) -> None:
        """An answer is read as its type says, and as a text or a file if it is not of that form."""
        for media_type, body, form in (
            ("application/json; charset=utf-8", b"{}", "json"),
            ("application/problem+json", b"[1]", "json"),
            ("application/json", b"plain", "text"),
            ("application/json", b"\xff", "file"),
            ("application/atom+xml", b"<a/>", "xml"),
            ("text/xml", b"<a", "text"),
            ("text/html", b"<p>", "text"),
            ("image/png", b"png", "file"),
            ("", b'{"a": 1}', "json"),
            ("", b"a", "text"),
            ("application/json", b"", "none"),
        ):
            self.assertEqual(find_form(media_type, body), form, (media_type, body))

    def test_read(self) -> None:
        """The output is what came."""
        for headers, body, output in (
            ({"Content-Type": "application/json"}, b'{"a": 1}', {"a": 1}),
            ({"Content-Type": "text/plain"}, b"a", "a"),
            ({}, b"", None),
        ):
            service = Service()
            text = HEAD + 'method = "GET"\npath = "/x"\neffect = "read"\nanswer = "auto"'
            text = text.replace("https://api.example", "http://127.0.0.1:8080").replace(
                '1.0.0"', '1.0.0"\nprivate_network = true'
            )
            service.replies.append(answer(body, 200, headers))
            found = self.successResultOf(service.start(service.connector(spec_of(text)), "find"))
            self.assertEqual((found.fault, found.output), (None, output))
