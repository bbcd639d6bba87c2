"""Of the connector made of a file: the contract, what leaves, and what each answer comes to."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, canonical
from aileron.connectors import HttpConnector
from aileron.model.connectors import Outcome
from aileron.model.errors import BindingFailed, BindingRequired, CapabilityDenied
from aileron.model.interfaces.vault import ICredential
from aileron.testing import ConnectorContract, MemoryCredential
from tests.connectors.service import NOW, Service, answer, json_answer, spec_of

BASE = "http://127.0.0.1:8080/api"

TRACKER = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = { default = "http://127.0.0.1:8080/api" }
hosts = ["127.0.0.1:8080"]
private_network = true

[credential]
kind = "api_key"
header = "X-Key"
format = "Token {key}"

[operations.create]
method = "POST"
path = "/projects/${in.project}/items"
json = { title = "${in.title}", labels = "${in.labels}", note = "Re: ${in.title}" }
headers = { Idempotency-Key = "${effect.key}" }
refused = [503]
error = { when = "ok == false", message = "error" }

[operations.show]
method = "GET"
path = "/projects/${in.project}"
query = { q = "${in.title}" }
effect = "read"
redirect = "same-origin"
max_response_bytes = 2000

[operations.replace]
method = "PUT"
path = "/note"
text = "${in.title}"
answer = "none"
idempotent = true
timeout_seconds = 5
"""

INPUTS: Mapping[str, JSON] = {"project": "p/1", "title": "Grüße"}
SECRET = b"s3cret/va+lue=42"


@define
class Rig:
    """The tracker and its service, in the contract's hand."""

    service: Service = field(factory=Service)
    connector: HttpConnector = field()
    base_url: str = BASE
    reads: str = "show"
    writes: str = "create"
    inputs: Mapping[str, JSON] = field(factory=lambda: INPUTS)
    secret: bytes = SECRET

    @connector.default
    def _(self) -> HttpConnector:
        return self.service.connector(spec_of(TRACKER))

    def queue_answer(self, output: JSON) -> JSON:
        """With status 200."""
        self.service.replies.append(json_answer(output))
        return output

    def queue_silence(self) -> None:
        """No bytes ever."""
        self.service.replies.append(None)

    def advance(self, seconds: float) -> None:
        self.service.advance(seconds)

    def sent(self) -> int:
        return len(self.service.requests)

    def send(self, operation: str, inputs: Mapping[str, JSON] | None = None, seconds: float = 60) -> Deferred[Outcome]:
        """Start one sending."""
        inputs = self.inputs if inputs is None else inputs
        return self.service.start(
            self.connector, operation, inputs, base_url=self.base_url, secret=self.secret, seconds=seconds
        )


class HttpContractTests(ConnectorContract, SynchronousTestCase):
    """The engine keeps the contract of every connector."""

    rig = Rig


class HttpCase(SynchronousTestCase):
    """A tracker to ask."""

    def setUp(self) -> None:
        self.rig = Rig()

    def outcome(
        self, reply: bytes | None, operation: str = "create", inputs: Mapping[str, JSON] | None = None
    ) -> Outcome:
        """What one answer comes to."""
        self.rig.service.replies.append(reply)
        return self.successResultOf(self.rig.send(operation, inputs))

    def fault(self, outcome: Outcome) -> tuple[str, bool]:
        """Its class, and whether it may be retried."""
        self.assertIsNotNone(outcome.fault)
        return (outcome.fault.kind, outcome.fault.retriable) if outcome.fault else ("", False)


class SendingTests(HttpCase):
    """What leaves."""

    def test_request(self) -> None:
        """The request is as declared, with the credential, our name, and nothing asked to be compressed."""
        self.outcome(json_answer({"ok": True}))
        head, _, body = self.rig.service.requests[0].partition(b"\r\n\r\n")
        first, *fields = head.decode("ascii").split("\r\n")
        self.assertEqual("POST /api/projects/p%2F1/items HTTP/1.1", first)
        self.assertEqual('{"note":"Re: Grüße","title":"Grüße"}', body.decode("utf-8"))
        expected = {
            "Host: 127.0.0.1:8080",
            "X-Key: Token s3cret/va+lue=42",
            "Idempotency-Key: effect-1",
            "Accept-Encoding: identity",
            "Connection: close",
        }
        self.assertEqual(expected, expected & set(fields))

    def test_connection_is_dropped(self) -> None:
        """Every sending has a connection of its own, closed after the answer."""
        self.outcome(json_answer({"ok": True}))
        self.outcome(json_answer({"ok": True}))
        self.rig.advance(0)
        self.assertEqual([True, True], [peer.closed for peer in self.rig.service.peers])

    def test_no_credential(self) -> None:
        """Without the credential that it needs nothing is sent, nor with one that breaks the header, shown nowhere."""
        request = self.rig.connector.prepare("create", INPUTS, BASE, "effect-1")
        self.failureResultOf(Deferred.fromCoroutine(self.rig.connector.invoke(request, None, 1)), BindingRequired)
        for secret in (b"a\r\nX-Evil: 1", b"", "schlüssel".encode()):
            credential: ICredential = MemoryCredential(secret, "Token {key}")
            refused = Deferred.fromCoroutine(self.rig.connector.invoke(request, credential, 1))
            failure = self.failureResultOf(refused, BindingFailed)
            self.assertNotIn("Evil", str(failure.value))
        self.assertEqual([], self.rig.service.connected)

    def test_request_of_another(self) -> None:
        """A request that was changed or is another connector's is refused before its credential is opened."""
        connector = self.rig.service.connector(
            spec_of(TRACKER.replace('["127.0.0.1:8080"]', '["127.0.0.1:8080", "127.0.0.1:8081"]'))
        )
        request, credential = (
            connector.prepare("create", INPUTS, BASE, "effect-1"),
            MemoryCredential(SECRET, "Token {key}"),
        )
        for changed in (
            evolve(request, connector="local://me/other"),
            evolve(request, url=request.url.replace(":8080", ":8081")),  # which is declared, but not the base URL's
            evolve(request, url="http://127.0.0.1:9090/x"),
            evolve(request, url="https://evil.invalid/x"),
            evolve(request, url="http://127.0.0.1:8080@evil.invalid/x"),
            evolve(request, method="DELETE"),
            evolve(request, idempotent=True),
        ):
            invoked = connector.invoke(changed, credential, 1)
            self.failureResultOf(Deferred.fromCoroutine(invoked), CapabilityDenied)
        self.assertEqual(([], 0), (self.rig.service.connected, credential.opened))

    def test_cancelling_drops_the_connection(self) -> None:
        """Cancelling closes the connection at once."""
        self.rig.queue_silence()
        sending = self.rig.send("create")
        self.assertFalse(self.rig.service.peers[0].closed)
        sending.cancel()
        self.failureResultOf(sending)
        self.rig.advance(0)
        self.assertTrue(self.rig.service.peers[0].closed)


class AnswerTests(HttpCase):
    """What each answer comes to."""

    def test_declared(self) -> None:
        """The whole answer is the output; one that says no is classified, and carries the service's word for it."""
        outcome = self.outcome(json_answer({"ok": True, "id": 7}))
        self.assertEqual(({"ok": True, "id": 7}, 200, {}), (outcome.output, outcome.status, outcome.notes))
        outcome = self.outcome(json_answer({"ok": False, "error": "no_such_project"}))
        self.assertEqual((("external_api_error", False), True), (self.fault(outcome), outcome.classified))
        assert outcome.fault is not None
        self.assertIn("no_such_project", outcome.fault.message)
        self.assertEqual({"status": 200, "code": "no_such_project"}, outcome.fault.details)
        outcome = self.outcome(answer(b"<html>" + SECRET), "replace", {"title": "hello"})  # which reads no answer
        self.assertEqual((None, None, ["plain"]), (outcome.output, outcome.fault, outcome.notes["echoed"]))
        self.assertTrue(self.rig.service.requests[-1].endswith(b"\r\n\r\nhello"))

    def test_nothing_said(self) -> None:
        """A write whose answer lacks what was looked for was refused only where the service says what went wrong."""
        self.rig.connector = self.rig.service.connector(spec_of(TRACKER.replace("ok == false", "id missing")))
        for told, classified in (({"error": "full"}, True), ({"queued": True}, False), (["id"], False)):
            outcome = self.outcome(json_answer(told))
            self.assertEqual((outcome.sent, outcome.classified), (True, classified), told)
            self.assertEqual(self.fault(outcome)[0], "external_api_error")

    def test_nonsense(self) -> None:
        """A success that is not what was declared, or was encoded unasked, tells nothing: it may have happened."""
        encoded = json_answer({"ok": True}, headers={"Content-Encoding": "gzip"})
        endless = b"HTTP/1.1 200 OK\r\n" + b"X-Pad: 1\r\n" * 60000
        for reply in (
            *map(
                answer,
                (
                    b"<html>",
                    b"",
                    b'{"a": NaN}',
                    b"1e999",
                    b"-Infinity",
                    b"{",
                    b"[" * 70 + b"]" * 70,
                    b"[" * 5000,
                    b"\xff",
                ),
            ),
            encoded,
            endless,
        ):
            outcome = self.outcome(reply)
            self.assertEqual(
                (None, True, False, "external_api_error"),
                (outcome.output, outcome.sent, outcome.classified, self.fault(outcome)[0]),
            )
        self.rig.service.replies.append(b'HTTP/1.1 200 OK\r\n\r\n{"ok": true}')
        sending = self.rig.send("create")
        self.rig.service.reset()
        outcome = self.successResultOf(sending)
        self.assertEqual((None, True, False), (outcome.output, outcome.sent, outcome.classified))

    def test_statuses(self) -> None:
        """Refusals are classified, what may have happened is not, and what may pass may be retried."""
        told = {
            400: (True, False),
            404: (True, False),
            408: (False, True),
            429: (True, True),
            500: (False, True),
            503: (True, True),
            302: (False, False),
        }
        for status, expected in told.items():
            outcome = self.outcome(json_answer({}, status))
            self.assertEqual(expected, (outcome.classified, self.fault(outcome)[1]), status)
            self.assertEqual(("external_api_error", status), (self.fault(outcome)[0], outcome.status))

    def test_retry_after(self) -> None:
        """The service's wish for patience is read as seconds or as a date; what is absurd is none."""
        wishes: dict[str, float | None] = {
            "7": 7.0,
            "86400": 86400.0,
            "Fri, 01 May 2026 12:01:00 GMT": 60.0,
            "Fri, 01 May 2020 12:01:00 GMT": 0.0,
        }
        absurd = ["soon", "-1", "1.5", "86401", "9" * 400, "1e3", "0x10", "Fri, 01 May 99999 12:01:00"]
        absurd += ["Fri, 01 May 2099 12:01:00 GMT", "Fri, 01 May 2026 12:01:00 +99999999999999999999"]
        wishes |= dict.fromkeys(absurd)
        for wish, seconds in wishes.items():
            outcome = self.outcome(json_answer({}, 429, {"Retry-After": wish}))
            self.assertEqual(seconds, outcome.retry_after_seconds, wish)

    def test_rate_limit(self) -> None:
        """If the usual headers say that no request is left, that is told until when, of a success as of a failure."""
        unix = str(int(NOW.timestamp()) + 30)
        said: list[tuple[dict[str, str], float | None]] = [
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": unix}, 30.0),
            ({"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": unix}, None),
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "1.5", "X-RateLimit-Reset": unix}, 1.5),
            ({"X-Rate-Limit-Remaining": "0", "X-Rate-Limit-Reset": "20"}, 20.0),
            ({"RateLimit-Remaining": "0", "RateLimit-Reset": "9"}, 9.0),
            ({"RateLimit": "limit=10, remaining=0, reset=50"}, 50.0),
            ({"RateLimit": '"default";r=0;t=7'}, 7.0),
            ({"RateLimit": '"default";r=10;t=7'}, None),
            ({"RateLimit": "limit=10, remaining=10, reset=50"}, None),
            ({"X-RateLimit-Remaining": "0"}, None),
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, None),
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "-5"}, None),
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "99999999999"}, None),
            ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9" * 400}, None),
            ({"Retry-After": "3", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": unix}, 30.0),
        ]
        for headers, seconds in said:
            self.assertEqual(self.outcome(json_answer({}, headers=headers)).retry_after_seconds, seconds, headers)
        headers, _ = said[-1]
        self.assertEqual(self.outcome(json_answer({}, 429, headers)).retry_after_seconds, 3.0)
        self.assertEqual(self.outcome(json_answer({}, 403, said[0][0])).retry_after_seconds, 30.0)

    def test_foreign_text_is_tamed(self) -> None:
        """The service's word is one bounded line without unseen characters."""
        outcome = self.outcome(json_answer({"error": "bad\n\x1b[31m\u202e" + "x" * 999}, 400))
        assert outcome.fault is not None
        self.assertLess(len(outcome.fault.message), 300)
        for unseen in ("\n", "\x1b", "\u202e"):
            self.assertNotIn(unseen, outcome.fault.message)

    def test_redirect_of_a_read(self) -> None:
        """A read follows a redirect to the same origin, without the credential; an effect follows none."""
        elsewhere = json_answer({}, 302, {"Location": "/api/new", "X-Debug": SECRET.decode()})
        self.rig.service.replies = [elsewhere, json_answer({"ok": 1})]
        outcome = self.successResultOf(self.rig.send("show"))
        self.assertEqual(({"ok": 1}, {"echoed": ["plain"]}), (outcome.output, outcome.notes))
        self.assertIn(b"X-Key", self.rig.service.requests[0])
        self.assertNotIn(b"X-Key", self.rig.service.requests[1])
        self.assertTrue(self.rig.service.requests[1].startswith(b"GET /api/new HTTP/1.1"))
        self.outcome(json_answer({}, 307, {"Location": "/api/elsewhere"}))
        self.assertEqual(3, self.rig.sent())

    def test_redirect_elsewhere(self) -> None:
        """A redirect to another origin, or a fourth one, is the answer, and nobody goes there."""
        for place in (
            "https://127.0.0.1:8080/x",
            "http://127.0.0.1:9/x",
            "//evil.invalid/x",
            "http://a@127.0.0.1:8080/",
        ):
            outcome = self.outcome(json_answer({}, 302, {"Location": place}), "show")
            self.assertEqual(302, outcome.status)
        self.assertEqual({("127.0.0.1", 8080)}, set(self.rig.service.connected))
        self.rig.service.replies = [json_answer({}, 302, {"Location": "/api/again"})] * 5
        self.assertEqual(302, self.successResultOf(self.rig.send("show")).status)
        self.assertEqual(4 + 4, self.rig.sent())


class LimitTests(HttpCase):
    """Time and size."""

    def test_declared_timeout(self) -> None:
        """The operation's own time limit holds where it is the shorter one."""
        self.rig.queue_silence()
        sending = self.rig.send("replace", {"title": "hello"}, seconds=60)
        self.rig.advance(4.9)
        self.assertNoResult(sending)
        self.rig.advance(0.2)
        self.assertEqual(("resource_limit_exceeded", False), self.fault(self.successResultOf(sending)))
        self.assertTrue(self.rig.service.peers[0].closed)

    def late(self, seconds: float = 5.0) -> Deferred[Outcome]:
        """An effect whose answer is listened for a minute longer than C{seconds}."""
        self.rig.queue_silence()
        request = self.rig.connector.prepare("create", INPUTS, BASE, "effect-1")
        return Deferred.fromCoroutine(
            self.rig.connector.invoke(request, MemoryCredential(SECRET, "Token {key}"), seconds, 60.0)
        )

    def test_late_answer(self) -> None:
        """What comes within the longer time is read as any other answer; if nothing does, the connection is closed."""
        for reply, classified in ((json_answer({"you": SECRET.decode()}), True), (json_answer({}, 502), False)):
            sending = self.late()
            self.rig.advance(0)
            self.rig.advance(64.0)
            self.assertNoResult(sending)
            transport = self.rig.service.peers[-1].transport
            assert transport is not None
            transport.write(reply)
            self.rig.advance(0)
            outcome = self.successResultOf(sending)
            self.assertEqual((True, classified), (outcome.sent, outcome.classified))
            self.assertNotIn("s3cret", str(outcome))
        sending = self.late()
        self.rig.advance(0)
        self.rig.advance(65.0)
        self.assertEqual("resource_limit_exceeded", self.fault(self.successResultOf(sending))[0])
        self.rig.advance(0)
        self.assertTrue(self.rig.service.peers[-1].closed)

    def test_late_connection(self) -> None:
        """What is not connected when the time is up never will be: nothing happened, and nothing will."""
        sending = self.late()
        self.rig.service.reactor.advance(5.0)
        outcome = self.successResultOf(sending)
        self.assertEqual((False, "resource_limit_exceeded"), (outcome.sent, self.fault(outcome)[0]))
        self.assertTrue(self.rig.service.reactor.connectors[0].stoppedConnecting)

    def test_slow_body(self) -> None:
        """An answer whose body does not end in time is sent, and not classified."""
        self.rig.service.replies.append(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        sending = self.rig.send("create")
        self.assertNoResult(sending)
        self.rig.advance(31)
        outcome = self.successResultOf(sending)
        self.assertEqual((True, False), (outcome.sent, outcome.classified))

    def test_too_large(self) -> None:
        """A body past the cap is dropped with its connection, nobody waits for it whose length is announced."""
        chunk = b"400\r\n" + b" " * 0x400 + b"\r\n"
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 3
        announced = b"HTTP/1.1 200 OK\r\nContent-Length: 2001\r\n\r\n{"
        for reply in (answer(b" " * 2001), chunked, announced):
            outcome = self.outcome(reply, "show")
            self.assertEqual(("resource_limit_exceeded", False), self.fault(outcome))
            self.assertEqual((True, False, 200), (outcome.sent, outcome.classified, outcome.status))
            self.rig.advance(0)
            self.assertTrue(self.rig.service.peers[-1].closed)


class EchoTests(HttpCase):
    """What a service sends back of the secret."""

    def test_echo(self) -> None:
        """The secret is taken out of an output in every usual form, and the outcome says so."""
        import base64
        from urllib.parse import quote

        secret = SECRET.decode()
        forms = [
            secret,
            quote(secret, safe=""),
            quote(secret, safe="").lower(),
            secret.replace("/", "\\/"),
            base64.b64encode(b"user:" + SECRET).decode(),
            base64.urlsafe_b64encode(SECRET).decode(),
        ]
        outcome = self.outcome(json_answer({"you": forms, secret: 1}))
        self.assertEqual({"echoed": ["base64", "json", "plain", "url"]}, outcome.notes)
        shown = str(outcome)
        for form in (secret, "va%2", base64.b64encode(SECRET).decode()[:-3], "va+lue"):
            self.assertNotIn(form.lower(), shown.lower())

    def test_echo_in_a_fault(self) -> None:
        """The secret is taken out of a fault; across the end of a bounded message it leaves no part of itself."""
        outcome = self.outcome(json_answer({"error": f"bad key {SECRET.decode()}"}, 403))
        assert outcome.fault is not None
        self.assertIn("bad key [redacted]", outcome.fault.message)
        for before in range(180, 200):
            error = "x" * before + SECRET.decode()
            for reply in (json_answer({"error": error}, 403), json_answer({"ok": False, "error": error})):
                outcome = self.outcome(reply)
                self.assertNotIn("s3c", str(outcome))
                self.assertEqual(["plain"], outcome.notes["echoed"])

    def test_echo_where_nobody_looks(self) -> None:
        """An echo in a header, in the reason phrase or in a body that is not read is noted, and crosses nowhere."""
        secret = SECRET.decode()
        head = b"HTTP/1.1 200 " + SECRET + b"\r\nContent-Length: 2\r\n\r\n{}"
        for reply in (
            json_answer({}, headers={"X-Debug": f"Token {secret}"}),
            json_answer({}, headers={f"X-{SECRET.hex()}": "1"}),
            head,
            json_answer({}, 503, {"Retry-After": "1", "Set-Cookie": f"k={secret}"}),
            answer(b"not JSON: " + SECRET),
            answer(b"x" + SECRET, 200, {"Content-Encoding": "gzip"}),
            json_answer({"e": secret}, 500),
            answer(b"not JSON: " + SECRET, 500),
        ):
            outcome = self.outcome(reply)
            self.assertEqual(1, len(outcome.notes.get("echoed", ())), reply)  # type: ignore[arg-type]
            self.assertNotIn("s3cret", str(outcome))

    def test_echo_of_digits_in_a_number(self) -> None:
        """A secret of digits is no patience, and no number of the output."""
        self.rig.secret = b"86399"
        outcome = self.outcome(json_answer({"n": 86399}, 503, {"Retry-After": "86399"}))
        self.assertEqual((None, ["plain"]), (outcome.retry_after_seconds, outcome.notes["echoed"]))
        self.assertEqual({"n": "[redacted]"}, self.outcome(json_answer({"n": 86399})).output)

    def test_echo_in_chunks(self) -> None:
        """A secret that is split between chunks is found, and so is one that JSON escapes hide."""
        body = canonical({"you": SECRET.decode()})
        chunks = b"".join(b"%x\r\n%b\r\n" % (1, body[at : at + 1]) for at in range(len(body)))
        reply = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
        self.assertEqual({"you": "[redacted]"}, self.outcome(reply).output)
        hidden = "".join(f"\\u{byte:04x}" for byte in SECRET)
        self.assertEqual({"you": "[redacted]"}, self.outcome(answer(f'{{"you": "{hidden}"}}'.encode())).output)
