"""A write that is tied to what was read: headers in a read's result, and the answer that it was changed since."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._schema import read_file
from aileron.model.connectors import Outcome
from tests.connectors.service import Service, answer, json_answer, spec_of

BASE = "http://127.0.0.1:8080"
PAGES = """
[connector]
name = "local://me/pages"
version = "1.0.0"
base_url = { default = "http://127.0.0.1:8080" }
hosts = ["127.0.0.1:8080"]
private_network = true

[credential]
kind = "api_key"
header = "X-Key"

[operations.show]
method = "GET"
path = "/page"
effect = "read"
result = { title = "title" }
answer_headers = { etag = "ETag", length = "X-Length" }

[operations.look]
method = "HEAD"
path = "/page"
effect = "read"
answer = "none"
answer_headers = { etag = "ETag" }

[operations.write]
method = "PUT"
path = "/page"
headers = { If-Match = "${in.if_match}" }
json = { title = "${in.title}" }
precondition = ["if_match"]

[operations.replace]
method = "PUT"
path = "/page"
json = { title = "${in.title}" }
"""
SECRET = b"s3cret-in-a-header"


class PagesTests(SynchronousTestCase):
    """A service whose pages have versions."""

    def outcome(self, operation: str, reply: bytes, inputs: Mapping[str, JSON] | None = None) -> Outcome:
        """What one answer comes to."""
        service = Service(replies=[reply])
        sending = service.start(service.connector(spec_of(PAGES)), operation, inputs, secret=SECRET)
        self.requests = service.requests
        return self.successResultOf(sending)

    def test_lifted(self) -> None:
        """Headers stand in the result by the file's names, a missing one as null; without a body they are all of it."""
        found = self.outcome("show", json_answer({"title": "Plan", "more": 1}, headers={"eTaG": '"v1"'}))
        self.assertEqual(found.output, {"title": "Plan", "etag": '"v1"', "length": None})
        reply = b'HTTP/1.1 200 OK\r\nETag: "v1"\r\nContent-Length: 4000\r\n\r\n'
        self.assertEqual(self.outcome("look", reply).output, {"etag": '"v1"'})
        found = self.outcome("show", json_answer({}, headers={"ETag": SECRET.decode()}))
        self.assertNotIn(SECRET.decode(), repr(found))
        self.assertEqual(found.notes["echoed"], ["plain"])

    def test_bounded(self) -> None:
        """A header that is longer than any tie, or empty, is null; of several the first counts."""
        for value, expected in (("x" * 4096, "x" * 4096), ("x" * 4097, None), ("", None), ("a\r\nETag: b", "a")):
            found = self.outcome("show", json_answer({}, headers={"ETag": value}))
            self.assertEqual(found.output, {"etag": expected, "length": None})

    def test_changed_since(self) -> None:
        """The answer that a precondition failed is a refusal, and says why; elsewhere it is as any refusal.

        It speaks of this request alone: what changed may be what an earlier attempt of the same run did.
        """
        operations = spec_of(PAGES).description.operations
        self.assertEqual((operations["write"].precondition, operations["replace"].precondition), (("if_match",), ()))
        inputs: Mapping[str, JSON] = {"title": "New", "if_match": '"v1"'}
        found = self.outcome("write", answer(status=412), inputs)
        self.assertIn(b'If-Match: "v1"\r\n', self.requests[0])
        assert found.fault is not None
        self.assertEqual(
            (found.fault.kind, found.fault.retriable, found.classified), ("external_api_error", False, True)
        )
        self.assertIn(
            "refused this request, because what it acts on has changed since it was shown", found.fault.message
        )
        self.assertNotIn("othing was done", found.fault.message)
        other = self.outcome("replace", answer(status=412), {"title": "New"})
        assert other.fault is not None
        self.assertIn("answered with status 412", other.fault.message)

    def test_faults(self) -> None:
        """What makes no sense is a fault."""
        lift = 'answer_headers = { etag = "ETag", length = "X-Length" }'
        for old, new, part in (
            ('["if_match"]', '["nobody"]', "not an input"),
            ('["if_match"]', '"if_match"', "must be an array"),
            (lift, 'answer_headers = { title = "ETag" }', "is part of the result already"),
            (lift, 'answer_headers = { etag = "E Tag" }', "is not a valid header name"),
            (lift, 'answer_headers = { etag = "Set-Cookie" }', "not handed on"),
            (lift, "answer_headers = { etag = 1 }", "must be a string"),
            (lift, 'precondition = ["x"]\n', "is for what has an effect"),
            ('result = { title = "title" }\n', "", "needs a result"),
            ('precondition = ["if_match"]', 'answer = "none"\nanswer_headers = { etag = "ETag" }', "is for reads"),
        ):
            self.assertIn(old, PAGES)
            found = read_file(PAGES.replace(old, new).encode(), "pages.toml").problems
            self.assertTrue(any(part in each.message for each in found), (new, found))
