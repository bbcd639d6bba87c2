"""Answers that are XML."""

from __future__ import annotations

import traceback
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._answer import ServiceAnswer
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.http._classify import Reader
from aileron.connectors.kinds.http._xml import decode_xml
from aileron.model.connectors import Outcome
from aileron.model.errors import InvalidRequest
from aileron.redaction import Redactor
from tests.connectors.service import NOW, Service, spec_of
from tests.growth import seconds

LISTING = b"""<?xml version="1.0" encoding="UTF-8"?>
<ListResult xmlns="http://service.example/doc/" a="b">
  <Name>bucket</Name><!-- more --><Empty/>
  <x:Item xmlns:x="u"><Key>a &amp; b</Key><Size>3</Size></x:Item>
  <Item><Key><![CDATA[<c>]]></Key><Owner><Id>1</Id></Owner></Item>
</ListResult>"""
STORE = """
[connector]
name = "local://me/store"
version = "1.0.0"
base_url = { default = "https://store.example" }
hosts = ["store.example:443"]

[operations.list]
method = "GET"
path = "/${in.bucket}"
effect = "read"
answer = "xml"
lists = ["Item"]
error = { when = "ListResult missing", message = "Refusal.Code" }
result = { items = "ListResult.Item", cursor = "ListResult.Next" }

[operations.put]
method = "PUT"
path = "/${in.bucket}/${in.key}"
slashes = ["key"]
text = "${in.text}"
answer = "xml"
"""


class XmlTests(SynchronousTestCase):
    def test_read(self) -> None:
        """Elements are members of tables, a list is an array also with one element, and anything else is a text."""
        items = [{"Key": "a & b", "Size": "3"}, {"Key": "<c>", "Owner": {"Id": "1"}}]
        whole = {"ListResult": {"Name": "bucket", "Empty": "", "Item": items}}
        self.assertEqual(
            decode_xml(LISTING, {"Item", "Name"}), {"ListResult": whole["ListResult"] | {"Name": ["bucket"]}}
        )
        self.assertEqual(decode_xml(LISTING, {"Item"}), whole)
        self.assertEqual(decode_xml("<a>ü</a>".encode("utf-16"), ()), {"a": "ü"})

    def test_refused(self) -> None:
        """What is no XML, what declares a document type, and what is too deep or too much is refused."""
        bomb = b'<!DOCTYPE a [<!ENTITY b "cc"><!ENTITY d "&b;&b;">]><a>&d;</a>'
        outside = b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>'
        for wrong in (
            b"",
            b"{}",
            b"<a>",
            b"<a/><b/>",
            b"<a>&b;</a>",
            b"\xff<a/>",
            bomb,
            outside,
            b"<a>" * 65 + b"</a>" * 65,
        ):
            self.assertRaises(ValueError, decode_xml, wrong, ())
        self.assertRaises(ValueError, decode_xml, b"<a>" + b"<b/>" * 200_000 + b"</a>", ())

    def test_encoding(self) -> None:
        """An unknown encoding is refused without a word of the service's; the usual ones are read."""
        for name in ("canary", "rot13", "hex", "base64", "zlib", "idna", "utf-7", "shift_jis", "cp037", ""):
            body = f'<?xml version="1.0" encoding="{name}"?><a>x</a>'.encode()
            refused = self.assertRaises(ValueError, decode_xml, body, ())
            self.assertNotIn("canary", "".join(traceback.format_exception(refused)))
        for name in ("utf-8", "UTF-8", "us-ascii", "ISO-8859-1", "utf-16"):
            body = f'<?xml version="1.0" encoding="{name}"?><a>x</a>'.encode(name)
            self.assertEqual(decode_xml(body, ()), {"a": "x"})

    def test_linear(self) -> None:
        """A long answer takes time as its length, whatever it is made of."""
        for part, lists in ((b"<b>x</b>", ("b",)), (b"&lt;", ()), (b"<!--x-->", ()), (b"<b/>y", ())):
            took = [seconds(partial(decode_xml, b"<a>" + part * many + b"</a>", lists)) for many in (20_000, 160_000)]
            self.assertLess(took[1], 8 * 4 * max(took[0], 0.02))

    @given(st.binary(max_size=200))
    def test_wild(self, body: bytes) -> None:
        """Any bytes are a value, or refused."""
        try:
            decode_xml(body, ("a",))
        except ValueError:
            return


class StoreTests(SynchronousTestCase):
    """A connector whose service answers in XML."""

    def test_unknown_encoding(self) -> None:
        """A refusal stays one in an unknown encoding; a success that cannot be read is unknown."""
        body = b'<?xml version="1.0" encoding="canary-secret"?><Error/>'
        for status, classified in ((403, True), (200, False)):
            outcome = self.outcome(body, status, "put")
            self.assertEqual((outcome.fault is None, outcome.classified), (False, classified))

    def reader(self, operation: str) -> Reader:
        """What reads the answers to it, of a service that must not see a canary come back."""
        return Reader("local://me/store", spec_of(STORE).operations[operation], Redactor.of("canary<&-secret"))

    def outcome(self, body: bytes, status: int = 200, operation: str = "list") -> Outcome:
        """What one answer comes to."""
        return self.reader(operation).outcome(ServiceAnswer(status, {}, body), NOW)

    def test_answers(self) -> None:
        """Parts of an answer are named by their elements, a refusal is found there, and what is no XML is unknown."""
        done = self.outcome(LISTING)
        self.assertEqual(done.output, {"items": [{"Key": "a & b", "Size": "3"}, {"Key": "<c>", "Owner": {"Id": "1"}}]})
        refused = self.outcome(b"<Refusal><Code>NoSuchBucket</Code></Refusal>")
        assert refused.fault is not None
        self.assertIn("refused: NoSuchBucket.", refused.fault.message)
        for status, classified in ((404, True), (500, False)):
            failed = self.outcome(b"<Refusal><Code>Gone</Code></Refusal>", status)
            assert failed.fault is not None
            self.assertEqual((failed.classified, "Gone" in failed.fault.message), (classified, True))
        self.assertFalse(self.outcome(b"{}").classified)
        self.assertIsNone(self.outcome(b"", operation="put").output)

    def test_echoed(self) -> None:
        """A secret that comes back as XML writes it is not handed on."""
        said = b"<ListResult><Item><Key>canary&lt;&amp;-secret</Key></Item></ListResult>"
        self.assertEqual(self.outcome(said).output, {"items": [{"Key": "[redacted]"}]})

    def test_slashes(self) -> None:
        """An input of several segments keeps its slashes, and climbs nowhere; any other has none."""
        connector = Service().connector(spec_of(STORE))

        def url(bucket: str, key: str) -> str:
            return connector.prepare(
                "put", {"bucket": bucket, "key": key, "text": ""}, "https://store.example", "k"
            ).url

        self.assertEqual(url("a/b", "c/d e/%2F.txt"), "https://store.example/a%2Fb/c/d%20e/%252F.txt")
        for key in ("", "/a", "a/", "a//b", "..", "a/../b", "a/./b", "a/\r\nb"):
            self.assertRaises(InvalidRequest, url, "b", key)

    def test_faults(self) -> None:
        """Lists are of XML, and only inputs of the path have slashes."""
        for right, wrong, told in (
            ('answer = "xml"\nlists', 'answer = "json"\nlists', "is for an answer that is xml"),
            ('slashes = ["key"]', 'slashes = ["text"]', "not an input of the path"),
        ):
            (problem,) = read_file(STORE.replace(right, wrong).encode(), "x.toml").problems
            self.assertIn(told, problem.message)
