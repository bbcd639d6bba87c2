"""Of requests of agents' own tools: exactly what was written leaves, and whole answers come back without secrets."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, digest_of_bytes
from aileron.model.connectors import FORWARD, FORWARD_READ, READ, WRITE, Outcome, Request
from aileron.model.errors import CapabilityDenied, InvalidRequest
from tests.connectors.service import Service, answer, spec_of

BASE = "http://127.0.0.1:8080"
SECRET = b"s3cret/va+lue=42"
TRACKER = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = "http://127.0.0.1:8080/api"
private_network = true

[hosts]
files = "https://files.example"

[credential]
kind = "api_key"
header = "X-Key"
format = "Token {key}"

[own_tools]
service = "tracker"
variables = { TRACKER_TOKEN = "aileron-placeholder" }
headers = ["X-Key"]
raw = "ask"

[operations.show]
method = "GET"
path = "/projects/${in.project}"
effect = "read"
"""
WRITTEN: Mapping[str, JSON] = {
    "host": "127.0.0.1:8080",
    "method": "POST",
    "target": "/api/a%2Fb/items?q=%20x&q=2;3",
    "headers": ["Content-Type: application/json", "X-Twice: 1", "X-Twice: 2", "User-Agent: gh/2", "Range: bytes=0-1"],
    "body": '{ "title" :  "Gr\u00fc\u00dfe" }\n',
}


class ForwardCase(SynchronousTestCase):
    """A tracker whose tools' requests are forwarded."""

    def setUp(self) -> None:
        self.service = Service()
        self.connector = self.service.connector(spec_of(TRACKER))

    def prepare(self, operation: str = FORWARD, **changes: JSON) -> Request:
        """Return the request of the written inputs, with changes. None takes an input out."""
        inputs = {name: value for name, value in {**WRITTEN, **changes}.items() if value is not None}
        return self.connector.prepare(operation, inputs, f"{BASE}/api", "effect-1")

    def send(self, reply: bytes, operation: str = FORWARD, **changes: JSON) -> Outcome:
        """Return what an answer comes to."""
        self.service.replies.append(reply)
        inputs = {name: value for name, value in {**WRITTEN, **changes}.items() if value is not None}
        sending: Deferred[Outcome] = self.service.start(
            self.connector, operation, inputs, base_url=f"{BASE}/api", secret=SECRET
        )
        return self.successResultOf(sending)

    def refuse(self, **changes: JSON) -> str:
        """Return the message by which inputs are refused."""
        return str(self.assertRaises(InvalidRequest, self.prepare, **changes))


class PrepareTests(ForwardCase):
    """What leaves, as the operator is shown it."""

    def test_exact(self) -> None:
        """Method, target, headers and body leave as they were written; only the daemon's own headers are replaced."""
        outcome = self.send(answer(b'{"id": 1}', 201))
        head, _, body = self.service.requests[0].partition(b"\r\n\r\n")
        first, *fields = head.decode("ascii").split("\r\n")
        self.assertEqual("POST /api/a%2Fb/items?q=%20x&q=2;3 HTTP/1.1", first)
        self.assertEqual('{ "title" :  "Gr\u00fc\u00dfe" }\n', body.decode())
        self.assertEqual(["X-Twice: 1", "X-Twice: 2"], [each for each in fields if each.startswith("X-Twice")])
        self.assertIn("X-Key: Token s3cret/va+lue=42", fields)
        self.assertFalse([each for each in fields if each.startswith(("User-Agent: gh", "Range"))])
        self.assertIsNone(outcome.fault)

    def test_declared(self) -> None:
        """It is a write that always needs an approval and is never repeated; both operations are for tools only."""
        write, read = (self.connector.describe().operations[name] for name in (FORWARD, FORWARD_READ))
        self.assertEqual((WRITE, False, True), (write.effect, write.idempotent, write.tools_only))
        self.assertEqual((READ, True, True), (read.effect, read.idempotent, read.tools_only))
        self.assertTrue(write.needs_approval and read.needs_approval)

    def test_binary(self) -> None:
        """A body that is no text is given in base64."""
        content = bytes(range(256))
        request = self.prepare(body=None, body_base64=base64.b64encode(content).decode())
        self.assertEqual(content, request.body)
        self.refuse(body_base64="AA==")
        self.refuse(body=None, body_base64="!")
        self.refuse(body="x" * (1024 * 1024 + 1))

    def test_stored(self) -> None:
        """A stored body is given by digest and size, and stands alone."""
        digest = "sha256:" + "a" * 64
        shown: dict[str, JSON] = {"beginning": "a", "parts": ["x"]}
        given: dict[str, JSON] = {"body": None, "content": digest, "size": 7}
        request = self.prepare(FORWARD, **given, **shown)
        assert request.stored is not None
        self.assertEqual({**shown, "size": 7, "digest": digest}, request.stored.review())
        self.assertIsNone(request.body)
        self.refuse(content=digest, size=7)
        for changes in ({"content": "sha256:a"}, {"size": None}, {"size": 0}, {"size": True}, {"content": None}):
            self.refuse(**{**given, **changes})

    def test_host(self) -> None:
        """Requests go to the base URL's host and to the declared ones, and nowhere else."""
        self.assertEqual(f"{BASE}{WRITTEN['target']}", self.prepare().url)
        self.assertEqual("https://files.example/x", self.prepare(host="files.example", target="/x").url)
        for host in ("evil.example", "files.example:443", "127.0.0.1:8081", ""):
            self.assertRaises(CapabilityDenied, self.prepare, host=host)

    def test_other_base_url(self) -> None:
        """If a binding may choose the base URL, a request goes to that host, and under its name alone."""
        bindable = TRACKER.replace(
            f'base_url = "{BASE}/api"', f'base_url = {{ default = "{BASE}/api", bindable = true }}'
        )
        self.connector = self.service.connector(spec_of(bindable))
        self.assertEqual(f"{BASE}{WRITTEN['target']}", self.prepare().url)
        inputs = {**WRITTEN, "host": "my.example"}
        prepare = partial(self.connector.prepare, FORWARD, effect_key="effect-1")
        sent = prepare(inputs, base_url="https://my.example/api")
        self.assertEqual(f"https://my.example{WRITTEN['target']}", sent.url)
        for written, base_url in (
            (WRITTEN, "https://my.example/api"),
            (inputs, "https://my.example/other"),
            (inputs, "https://my.example:8443/api"),
            (inputs, f"{BASE}/api"),
        ):
            self.assertRaises(CapabilityDenied, prepare, written, base_url=base_url)
        hosts = [BASE[7:], "files.example:443", "old.example:443"]
        listed = TRACKER.replace("private_network = true", f"private_network = true\nhosts = {json.dumps(hosts)}")
        self.connector = self.service.connector(spec_of(listed))
        self.assertEqual(f"https://old.example{WRITTEN['target']}", self.prepare(host="old.example").url)

    def test_target(self) -> None:
        """A target that would not be sent as it is shown is refused."""
        for target in ("x", "", "/a#b", "/a b", "/a\r\nX: 1", "/\u00fc", "/a;", "/a?", "/" + "a" * 9000):
            self.assertIn("target", self.refuse(target=target))

    def test_credential(self) -> None:
        """No header of a tool can carry a credential, and none can end its line."""
        for line in ("X-Key: mine", "authorization: mine", "Cookie: a=b", "X: a\r\nY: b", "X", "X Y: 1", "X: \u00fc"):
            self.assertIn("headers", self.refuse(headers=[line]))
        self.refuse(headers="X: 1")
        self.refuse(headers=["X: 1"] * 65)

    def test_other_inputs(self) -> None:
        """Unknown inputs and other methods are refused."""
        self.refuse(path="/x")
        self.refuse(method="post")
        self.refuse(method="POST /x")

    def test_name_taken(self) -> None:
        """A file with own tools cannot declare operations of these names."""
        text = TRACKER.replace("[operations.show]", "[operations.forward]")
        self.assertRaises(AssertionError, spec_of, text)

    @given(st.text(max_size=60))
    def test_any_target(self, target: str) -> None:
        """Whatever the target is, it is refused or sent as it is."""
        try:
            url = self.prepare(target=target).url
        except InvalidRequest:
            return
        self.assertEqual(f"{BASE}{target}", url)


def whole(outcome: Outcome) -> Mapping[str, Any]:
    """Return the whole answer of a success or of a kept failure."""
    if outcome.fault is None:
        assert isinstance(outcome.output, Mapping)
        return outcome.output
    return dict(json.loads(str(outcome.kept_answer[0])))


class StoredTests(ForwardCase):
    """Bodies that are sent from a file."""

    CONTENT = b"\x00stored" * 50_000

    def setUp(self) -> None:
        super().setUp()
        self.path = Path(self.mktemp())
        self.path.write_bytes(self.CONTENT)
        self.files: list[BinaryIO] = []
        self.connector = evolve(self.connector, open_content=self.open)

    def open(self, digest: str) -> BinaryIO | None:
        """Return the file, if it is that of the digest."""
        if digest != digest_of_bytes(self.CONTENT):
            return None
        self.files.append(self.path.open("rb"))
        return self.files[-1]

    def sent(self, content: bytes = CONTENT) -> Outcome:
        """Return what the sending of a content comes to."""
        return self.send(answer(b"{}", 201), body=None, content=digest_of_bytes(content), size=len(content))

    def test_exact(self) -> None:
        """The bytes of the file leave, with their length."""
        outcome = self.sent()
        self.assertIsNone(outcome.fault)
        head, _, body = self.service.requests[0].partition(b"\r\n\r\n")
        self.assertEqual(self.CONTENT, body)
        self.assertIn(f"Content-Length: {len(self.CONTENT)}\r\n".encode(), head)
        self.assertTrue(self.files[0].closed)

    def test_changed(self) -> None:
        """A file that is missing, or was changed, is not sent, and not one byte of the request leaves."""
        for content, found in (
            (b"another", self.CONTENT),
            (self.CONTENT, self.CONTENT[:-1] + b"!"),
            (self.CONTENT, b""),
        ):
            self.path.write_bytes(found)
            outcome = self.sent(content)
            assert outcome.fault is not None
            self.assertEqual((False, "invalid_request"), (outcome.sent, outcome.fault.kind))
        self.assertEqual(([], []), (self.service.requests, self.service.connected))
        self.assertTrue(all(each.closed for each in self.files))


class AnswerTests(ForwardCase):
    """What comes back."""

    def test_success(self) -> None:
        """A success is the whole answer: its status, reason, headers and body."""
        found = whole(self.send(answer(b'{"id": 1}', 201, {"Link": "<x>; rel=next", "Set-Cookie": "a=b"})))
        self.assertEqual((201, "Whatever", '{"id": 1}'), (found["status"], found["reason"], found["body"]))
        self.assertEqual(["Link: <x>; rel=next"], found["headers"])

    def test_other_region(self) -> None:
        """S3 answers 301 if a bucket is in another region, and did nothing then."""
        outcome = self.send(answer(b"<Error/>", 301, {"x-amz-bucket-region": "us-west-2"}))
        self.assertTrue(outcome.classified)
        self.assertIsNotNone(outcome.fault)

    def test_head(self) -> None:
        """The answer to HEAD has the length that the service gave."""
        reply = answer(b"", 200, {"Content-Length": "12345", "ETag": "x"})
        found = whole(self.send(reply, FORWARD_READ, method="HEAD", body=None))
        self.assertEqual((["ETag: x", "Content-Length: 12345"], ""), (found["headers"], found["body"]))

    def test_refused(self) -> None:
        """A refusal is a failure with the whole answer; one that leaves it in doubt is not classified."""
        for status, classified in ((422, True), (307, True), (308, True), (408, False), (301, False), (500, False)):
            outcome = self.send(answer(b'{"message": "no"}', status))
            self.assertEqual((status, classified), (outcome.status, outcome.classified))
            self.assertEqual((status, '{"message": "no"}'), (whole(outcome)["status"], whole(outcome)["body"]))
            self.assertIsNotNone(outcome.fault)

    def test_read(self) -> None:
        """A read hands on every answer but 401, and follows no redirect."""
        for status in (200, 304, 404, 302, 500):
            self.service.requests.clear()
            outcome = self.send(answer(b"", status), FORWARD_READ, method="GET", body=None)
            self.assertEqual((None, status), (outcome.fault, whole(outcome)["status"]))
            self.assertEqual(1, len(self.service.requests))
        self.assertIsNotNone(self.send(answer(b"", 401), FORWARD_READ, method="GET", body=None).fault)

    def test_echo(self) -> None:
        """The credential is replaced in the body and in headers, in every form, and that is noted."""
        body = b'{"key": "s3cret/va+lue=42", "again": "' + base64.b64encode(SECRET) + b'"}'
        outcome = self.send(answer(body, 200, {"X-Echo": "s3cret/va+lue=42"}))
        self.assertNotIn("s3cret", json.dumps(whole(outcome)))
        self.assertNotIn(base64.b64encode(SECRET).decode(), json.dumps(whole(outcome)))
        self.assertTrue(outcome.notes["echoed"])
        self.assertNotIn("s3cret", json.dumps(whole(self.send(answer(body, 422)))))

    def test_binary_echo(self) -> None:
        """A binary body is in base64; one that holds the credential is withheld, and so is an encoded one."""
        content = b"\x00\xff" + bytes(range(9))
        self.assertEqual(base64.b64encode(content).decode(), whole(self.send(answer(content)))["body_base64"])
        self.assertEqual("[redacted]", whole(self.send(answer(content + SECRET)))["body"])
        encoded = whole(self.send(answer(content, 200, {"Content-Encoding": "gzip"})))
        self.assertEqual(("", "encoded"), (encoded["body"], encoded["withheld"]))

    def test_too_long(self) -> None:
        """An answer to a write that is too long leaves it in doubt."""
        outcome = self.send(answer(b"x" * (1024 * 1024 + 1)))
        self.assertFalse(outcome.classified)
        self.assertIsNotNone(outcome.fault)
