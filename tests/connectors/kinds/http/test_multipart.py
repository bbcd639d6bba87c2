"""Of bodies that carry files: what leaves, what is shown of it, and what no input can break out of."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from email import message_from_bytes
from email.message import Message

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, digest_of_bytes
from aileron.connectors._schema import read_file
from aileron.model.connectors import Request
from aileron.model.errors import InvalidRequest
from aileron.model.reviews import ReviewedRequest
from tests.connectors.service import Service, answer, spec_of
from tests.extent import examples

SPEC = """
[connector]
name = "local://me/files"
version = "1.0.0"
base_url = "http://127.0.0.1:8080"
private_network = true

[operations.upload]
method = "POST"
path = "/upload"

[operations.upload.multipart]
title = "${in.title}"
mark = "(aileron ${effect.key})"
report = { filename = "${in.name}", media_type = "${in.type}", text = "${in.text}" }
picture = { filename = "a.png", media_type = "image/png", base64 = "${in.picture}" }

[operations.put]
method = "PUT"
path = "/put"
file = { media_type = "image/png", base64 = "${in.picture}" }
"""
PICTURE = b"\x89PNG\r\n\x1a\n\x00\xff"
GIVEN: dict[str, JSON] = {"title": "Q3", "name": "report.csv", "type": "text/csv", "text": "a,b\r\n1,\u00e9"}


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1)


def encoded(content: bytes) -> str:
    """Bytes as an input."""
    return base64.b64encode(content).decode()


def parts_of(request: Request) -> dict[str, Message]:
    """The parts as another reader of MIME finds them."""
    head = f"Content-Type: {dict(request.headers)['Content-Type']}\r\n\r\n".encode()
    message = message_from_bytes(head + (request.body or b""))
    return {
        str(part.get_param("name", header="content-disposition")): part
        for part in message.walk()
        if part is not message
    }


class UploadCase(SynchronousTestCase):
    """One connector that uploads."""

    def prepared(self, inputs: Mapping[str, JSON], operation: str = "upload") -> Request:
        """One request."""
        return Service().connector(spec_of(SPEC)).prepare(operation, inputs, "http://127.0.0.1:8080", "k1")


class BodyTests(UploadCase):
    """What leaves."""

    def test_parts(self) -> None:
        """Fields and files are parts with names, types and bytes as given; what was not given is left out."""
        parts = parts_of(self.prepared(GIVEN))
        self.assertEqual(list(parts), ["title", "mark", "report"])
        self.assertEqual(parts["mark"].get_payload(decode=True), b"(aileron k1)")
        report = parts["report"]
        self.assertEqual((report.get_filename(), report.get_content_type()), ("report.csv", "text/csv"))
        self.assertEqual(report.get_payload(decode=True), "a,b\r\n1,\u00e9".encode())
        whole = parts_of(self.prepared({**GIVEN, "picture": base64.urlsafe_b64encode(PICTURE).decode().rstrip("=")}))
        self.assertEqual(whole["picture"].get_payload(decode=True), PICTURE)

    def test_same(self) -> None:
        """The same inputs make the same bytes, others another boundary."""
        self.assertEqual(self.prepared(GIVEN), self.prepared(GIVEN))
        types = {dict(self.prepared({**GIVEN, "title": title}).headers)["Content-Type"] for title in ("a", "b")}
        self.assertEqual(len(types), 2)

    def test_file(self) -> None:
        """One file alone is the body."""
        request = self.prepared({"picture": encoded(PICTURE)}, "put")
        self.assertEqual((request.body, dict(request.headers)["Content-Type"]), (PICTURE, "image/png"))

    def test_sent(self) -> None:
        """The bytes arrive as they were prepared."""
        service = Service(replies=[answer()])
        request = self.prepared(GIVEN)
        self.successResultOf(service.start(service.connector(spec_of(SPEC)), "upload", GIVEN, key="k1"))
        self.assertEqual(service.requests[0].partition(b"\r\n\r\n")[2], request.body)

    def test_refused(self) -> None:
        """What is no base64, no media type or no file name makes no request."""
        wrong: list[dict[str, JSON]] = [
            {"picture": "not base64!"},
            {"picture": 7.5},
            {"type": "text/csv\r\nX: y"},
            {"type": "Text/CSV"},
            {"type": "text"},
            {"name": ""},
            {"name": "a\nb"},
            {"name": "a\x00b"},
            {"name": "\ud800"},
            {"text": "\ud800"},
            {"text": {"a": 1}},
        ]
        for bad in wrong:
            with self.assertRaises(InvalidRequest, msg=str(bad)):
                self.prepared({**GIVEN, **bad})

    @settings(deadline=None, max_examples=examples(200))
    @given(
        st.text(max_size=40), st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1), st.binary()
    )
    def test_wild(self, text: str, name: str, picture: bytes) -> None:
        """Whatever is given, it stays inside its part."""
        try:
            more = {"title": text, "text": text, "name": name, "picture": encoded(picture)}
            request = self.prepared({**GIVEN, **more})
        except InvalidRequest:
            return
        body, boundary = request.body or b"", dict(request.headers)["Content-Type"].partition("=")[2].encode()
        pieces = body.split(b"--" + boundary)
        self.assertEqual((len(pieces), pieces[0], pieces[-1]), (6, b"", b"--\r\n"))
        contents = [each.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n") for each in pieces[1:-1]]
        self.assertEqual(contents, [text.encode(), b"(aileron k1)", text.encode(), picture])


class ReviewTests(UploadCase):
    """What is shown of it."""

    def test_shown(self) -> None:
        """Each part is shown by name, type, size and digest, with its text where it is one, whatever its type says."""
        request = self.prepared({**GIVEN, "type": "image/png", "picture": encoded(PICTURE)})
        body = ReviewedRequest.of(request).body
        assert isinstance(body, dict)
        title, _, report, picture = body["parts"]
        self.assertEqual(title, {"name": "title", "text": "Q3", "size": 2, "digest": digest_of_bytes(b"Q3")})
        self.assertEqual(
            (report["text"], report["filename"], report["type"]), ("a,b\r\n1,\u00e9", "report.csv", "image/png")
        )
        shown = {"name": "picture", "filename": "a.png", "type": "image/png", "size": 10}
        self.assertEqual(picture, {**shown, "digest": digest_of_bytes(PICTURE)})

    def test_digest(self) -> None:
        """Another byte is another review."""
        made = [self.prepared({"picture": encoded(each)}, "put") for each in (b"\xff\x00", b"\xff\x01")]
        first, second = map(ReviewedRequest.of, made)
        self.assertNotEqual(first, second)


class FileTests(SynchronousTestCase):
    """What a file may say."""

    def test_faults(self) -> None:
        """A part says what it is and where its content comes from, and nothing else."""
        for old, new, words in (
            ('media_type = "${in.type}", ', "", "`media_type` is missing"),
            ('filename = "a.png", ', "", "`filename` is missing"),
            (', base64 = "${in.picture}" }\n\n', " }\n\n", "one of base64 and text"),
            ('text = "${in.text}"', 'text = "${in.text}", base64 = "x"', "one of base64 and text"),
            ('text = "${in.text}"', 'text = "${args.text}"', "unknown reference"),
            ('filename = "a.png"', 'filename = "a.png", size = 1', "`size` is not a known key"),
            ('title = "${in.title}"', "title = 7", "must be a string"),
            ('path = "/put"', 'path = "/put"\njson = {}', "must not stand beside"),
            ('path = "/put"', 'path = "/put"\nheaders = { Content-Type = "a/b" }', "Content-Type"),
            ('method = "PUT"', 'method = "GET"', "must not stand with GET"),
        ):
            self.assertIn(old, SPEC)
            found = read_file(SPEC.replace(old, new, 1).encode(), "t.toml", "local").problems
            self.assertTrue(any(words in each.message for each in found), (new, found))
