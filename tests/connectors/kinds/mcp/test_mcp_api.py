"""Of the relay to a local MCP server's API: which requests pass, when, and that the credential goes one way only."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.logger import capturedLogs
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from aileron.base.json import JSON, canonical
from aileron.base.waiting import Interrupted
from aileron.connectors import ApiRelay, HttpTransport, check
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.mcp._api import Api, ApiRefused
from aileron.connectors.kinds.mcp._api_relay import MOST_BODY_BYTES, MOST_CONNECTIONS
from aileron.connectors.programs import Enclosure, Launch
from aileron.credentials import KINDS, CredentialUse, no_exchange
from aileron.model.connectors import READ, WRITE, Request
from aileron.model.errors import CapabilityDenied, VaultLocked
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization, Scope
from aileron.testing import MemoryCredential
from tests.connectors.kinds.mcp.test_mcp_local import FILE as LOCAL
from tests.connectors.kinds.mcp.test_mcp_local import LocalCase, confine
from tests.connectors.mcpserver import filled, result, spec_of
from tests.connectors.service import NOW, PIECE_BYTES, Service, answer
from tests.extent import examples

SECRET = "tracker-secret-4815162342"
FILE = (
    LOCAL.replace('kind = "mcp"', 'kind = "mcp"\nprivate_network = true')
    .replace('LANG = "C.UTF-8"', 'API_URL = "${api.url}", TRACKER_TOKEN = "placeholder"')
    .replace('"--stdio"]', '"--api=${api.url}/"]')
    .replace("[credential]", '[mcp.api]\nurl = "http://127.0.0.1:8765/api/v1"\n\n[credential]')
    .replace('variable = "TRACKER_TOKEN"', 'header = "Authorization"\nformat = "Bearer {key}"')
    .replace('readable_by = "the program and everything that it starts"', "")
)
HERE = "http://127.0.0.1:8377/api/v1"
LAUNCH = Launch(["/usr/bin/tracker", "--api=${api.url}/"], "/srv", {"API_URL": "${api.url}"})
CREATE = Request("local://me/tracker", "create_issue", WRITE, False, "CALL", "file:///usr/bin/tracker")
SEARCH = evolve(CREATE, operation="search", effect=READ)


class SlowTransport(StringTransport):
    """A connection whose other end reads when a test says so."""

    def write(self, data: bytes) -> None:
        """Hold it, and no more than a little."""
        super().write(data)  # type: ignore[no-untyped-call]
        if len(self.value()) > PIECE_BYTES:
            self.producer.pauseProducing()  # type: ignore[union-attr]

    def writeSequence(self, data: Any) -> None:
        """Hold it likewise."""
        self.write(b"".join(data))

    def read(self) -> None:
        """Read all that is held."""
        self.clear()
        self.producer.resumeProducing()  # type: ignore[union-attr]


def _chunks(framed: bytes) -> Iterator[bytes]:
    while framed:
        size, _, framed = framed.partition(b"\r\n")
        yield framed[: int(size, 16)]
        framed = framed[int(size, 16) + 2 :]


class Signing:
    """A credential of AWS's kind, as the vault opens it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        kept = (
            b'{"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"}'
        )
        scope = Scope((), "", "Authorization", "AWS4-HMAC-SHA256 {key}", settings)
        self._use = CredentialUse(scope, kept, lambda _: None, lambda: NOW, no_exchange)

    async def authorize(self, request: Request) -> Authorization:
        """Sign a request."""
        return await KINDS["aws_sigv4"].authorize(self._use, request)


class RelayCase(SynchronousTestCase):
    """A relay, the API behind it, and the server's connections."""

    def setUp(self) -> None:
        self.service, self.stopped, self.reports = Service(), list[bool](), list[str]()
        self.credential: Any = MemoryCredential(SECRET.encode())
        self.channel: Any = None
        self.factory: Any = None
        self.begin(FILE)

    def begin(self, text: str, *, inside: bool = True) -> None:
        """Make a relay as a file says, and have it listen for a process."""
        spec = spec_of(text)
        assert spec.local is not None and spec.local.api is not None
        transport, clock = HttpTransport(self.service.opener), self.service.reactor
        self.relay = ApiRelay(spec.description, spec.local.api, transport, clock, self.reports.append)
        self.launch = self.open(self.listen if inside else None)
        if not inside:
            self.factory = clock.tcpServers[-1][1]

    def open(self, listen: Callable[[Any], Any] | None) -> Launch:
        """Have the relay listen for a process."""
        return self.relay.open(self.service.reactor, LAUNCH, listen=listen, credential=self.credential)

    def listen(self, factory: Any) -> tuple[Any, Callable[[], object]]:
        """Listen in a sandbox."""
        self.factory = factory
        return "the socket", partial(self.stopped.append, True)

    def connect(self, transport: Any = None) -> tuple[Any, Any]:
        """Connect, as the server does."""
        transport = transport or StringTransport()
        if self.channel is not None:
            self.channel.connectionLost(Failure(ConnectionDone()))
        channel = self.channel = self.factory.buildProtocol(None)
        channel.makeConnection(transport)
        return channel, transport

    def ask(self, head: str, body: bytes = b"", reply: bytes | None = None) -> tuple[int, bytes]:
        """Ask for something, on a connection of its own; status and the whole of what came back."""
        self.service.replies.append(answer(b"{}") if reply is None else reply)
        channel, transport = self.connect()
        lines = [head.format(base="/api/v1"), *(["Host: 127.0.0.1:8377"] if "\nHost" not in head else [])]
        channel.dataReceived("\r\n".join((*"\n".join(lines).split("\n"), "", "")).encode("latin-1") + body)
        self.service.advance()
        said = transport.value()
        self.last = transport
        return int(said.split(b" ")[1]) if said else 0, said

    def during(self, request: Request = CREATE) -> AbstractContextManager[Callable[[], Mapping[str, JSON]]]:
        """A call that executes."""
        credential: ICredential = self.credential
        return self.relay.during(request, credential)

    def headers(self) -> Sequence[str]:
        """The lines of the newest request at the API."""
        return self.service.requests[-1].partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")


class PassedTests(RelayCase):
    """What passes."""

    def test_credential(self) -> None:
        """A request gets the credential in place of what the server has sent for one, and keeps its other headers."""
        self.assertEqual(
            (self.launch.argv, self.launch.environment, self.launch.meeting),
            (["/usr/bin/tracker", f"--api={HERE}/"], {"API_URL": HERE}, "the socket"),
        )
        head = (
            "POST {base}/issues?a=1&b=%2F HTTP/1.1\nAuthorization: Bearer placeholder\nCookie: a=b\nX-Own: c\n"
            "X-Hop: d\nauthorization_: e\nConnection: close, X-Hop\n"
            "Range: bytes=0-4\nIf_Range: a\nX-MS-Range: bytes=0-4\n"
            "Accept-Encoding: gzip\nUser-Agent: f\nProxy-Authorization: g\nContent-Length: 5"
        )
        with self.during() as notes:
            status, said = self.ask(head, b"Grass", answer(b"issue-7", 201, {"Set-Cookie": "s=1", "X-Kept": "k"}))
        self.assertEqual((status, said.partition(b"\r\n\r\n")[2]), (201, b"6\r\nissue-\r\n1\r\n7\r\n0\r\n\r\n"))
        self.assertIn(b"X-Kept: k", said)
        self.assertNotIn(b"s=1", said)
        self.assertEqual(self.headers()[0], "POST /api/v1/issues?a=1&b=%2F HTTP/1.1")
        sent = sorted(each for each in self.headers()[1:] if not each.startswith("User-Agent: aileron/"))
        self.assertEqual(
            sent,
            [
                "Accept-Encoding: identity",
                f"Authorization: Bearer {SECRET}",
                "Authorization_: e",
                "Connection: close",
                "Content-Length: 5",
                "Host: 127.0.0.1:8765",
                "X-Own: c",
            ],
        )
        self.assertEqual(
            notes(), {"api": {"requests": 1, "failed": 0, "refused": 0, "sent": 5, "received": 7, "between": 0}}
        )

    def test_chunked(self) -> None:
        """A chunked body arrives whole, and an answer whose end only its connection shows has an end of its own."""
        with self.during():
            self.ask(
                "PUT {base}/issues HTTP/1.1\nTransfer-Encoding: chunked",
                b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
                b"HTTP/1.1 200 OK\r\n\r\nsome",
            )
            self.service.hang_up()
        self.assertTrue(self.last.value().endswith(b"4\r\nsome\r\n0\r\n\r\n"), self.last.value())
        self.assertTrue(self.service.requests[-1].endswith(b"\r\n\r\nabcde"))

    def test_links(self) -> None:
        """No redirect is followed; one within the API leads to the relay, and any other is handed over as it is."""
        for place, shown in (
            ("http://127.0.0.1:8765/api/v1/a", f"{HERE}/a"),
            ("http://evil.example/api/v1/a", "http://evil.example/api/v1/a"),
        ):
            with self.during():
                status, said = self.ask("GET {base}/x HTTP/1.1", reply=answer(b"", 302, {"Location": place}))
            self.assertEqual((status, len(self.service.connected)), (302, len(self.service.requests)))
            self.assertIn(f"Location: {shown}\r\n".encode(), said)

    def test_head(self) -> None:
        """An answer without a body stays one, and tells the length that the body would have."""
        early = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
        for before in (b"", early):
            with self.during():
                head = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nX-A: b\r\n\r\n"
                _, said = self.ask("HEAD {base}/x HTTP/1.1", reply=before + head)
            self.assertTrue(said.endswith(b"\r\n\r\n"))
            self.assertEqual(said.count(b"\r\nContent-Length: 9\r\n"), 1)
        with self.during():
            _, said = self.ask("HEAD {base}/x HTTP/1.1", reply=b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n")
        self.assertNotIn(b"ength", said)

    def test_underscores(self) -> None:
        """The server cannot send the credential's header beside it, in whatever way an API reads its name."""
        self.begin(FILE.replace('header = "Authorization"\nformat = "Bearer {key}"', 'header = "Api_Key"'))
        with self.during():
            self.ask("GET {base}/x HTTP/1.1\nApi-Key: other\napi_key: other")
        self.assertEqual([each for each in self.headers() if "key" in each.lower()], [f"Api_key: Bearer {SECRET}"])

    def test_query(self) -> None:
        """A credential for the query takes the place of the server's own parameter, however that is written."""
        self.begin(FILE.replace('header = "Authorization"\nformat = "Bearer {key}"', 'query = "api_key"'))
        with self.during():
            self.ask("GET {base}/x?api_key=placeholder&a=1&api%5Fkey=2 HTTP/1.1")
        self.assertEqual(self.headers()[0], f"GET /api/v1/x?a=1&api_key={SECRET} HTTP/1.1")

    def test_signed(self) -> None:
        """A kind that signs requests signs each as it leaves, and takes away what the server has signed."""
        text = FILE.replace("api_key", "aws_sigv4").replace('header = "Authorization"\nformat = "Bearer {key}"', "")
        self.credential = Signing({"region": "eu-west-1", "service": "s3"})
        self.begin(text.replace("aws_sigv4", 'aws_sigv4"\nregion = "eu-west-1"\nservice = "s3', 1))
        with self.during():
            self.ask("GET {base}/x HTTP/1.1\nX-Amz-Date: 20200101T000000Z\nAuthorization: AWS4-HMAC-SHA256 other")
        dates = [each for each in self.headers() if each.startswith("X-Amz-Date")]
        self.assertEqual(dates, ["X-Amz-Date: 20260501T120000Z"])
        (signed,) = (each for each in self.headers() if each.startswith("Authorization"))
        self.assertIn("Credential=AKIAIOSFODNN7EXAMPLE/20260501/eu-west-1/s3/aws4_request", signed)

    def test_refused_by_api(self) -> None:
        """A 401 reaches the server, and the credential is renewed before the next request."""
        with self.during():
            self.assertEqual(self.ask("GET {base}/x HTTP/1.1", reply=answer(b"", 401))[0], 401)
        self.assertEqual(len(self.credential.refusals), 1)
        self.assertEqual((bool(self.credential.doubtful[0]), self.credential.acceptances), (True, []))
        with self.during():
            wrong = answer(b"", 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'})
            self.ask("GET {base}/x HTTP/1.1", reply=wrong)
            self.ask("GET {base}/x HTTP/1.1")
        self.assertEqual((self.credential.doubtful[1:], len(self.credential.acceptances)), ([""], 1))

    def test_kept_connection(self) -> None:
        """A connection that is kept carries one request after the other, each judged by itself."""
        channel, transport = self.connect()
        line = b"GET /api/v1/x HTTP/1.1\r\nHost: 127.0.0.1:8377\r\n\r\n"
        with self.during():
            self.service.replies += [answer(b"one"), answer(b"two")]
            channel.dataReceived(line + line)
            self.service.advance()
        channel.dataReceived(line)
        self.service.advance()
        self.assertEqual(transport.value().count(b"HTTP/1.1 200"), 2)
        self.assertEqual((transport.value().count(b"HTTP/1.1 403"), len(self.service.requests)), (1, 2))


class RefusedTests(RelayCase):
    """What does not pass."""

    def test_elsewhere(self) -> None:
        """Nothing passes that names another place, or that somebody could read so."""
        for head, status in {
            "GET http://evil.example/api/v1/x HTTP/1.1": 405,
            "GET //evil.example/api/v1/x HTTP/1.1": 403,
            "GET @evil.example/api/v1 HTTP/1.1": 405,
            "CONNECT evil.example:443 HTTP/1.1": 405,
            "TRACE {base}/x HTTP/1.1": 405,
            "GET {base}/x HTTP/1.1\nHost: evil.example": 421,
            "GET {base}/x HTTP/1.1\nHost: 127.0.0.1:8377\nHost: evil.example": 421,
            "GET /api/v1x/y HTTP/1.1": 403,
            "GET /admin HTTP/1.1": 403,
            "GET {base}/../../admin HTTP/1.1": 403,
            "GET {base}/%2e%2e/admin HTTP/1.1": 403,
            "GET {base}/%252E./admin HTTP/1.1": 403,
            "GET {base}/..%2fadmin HTTP/1.1": 403,
            "GET {base}/..%5Cadmin HTTP/1.1": 403,
            "GET {base}/..;/admin HTTP/1.1": 403,
            "GET {base}/..%00/admin HTTP/1.1": 403,
            "GET {base}/..%20/admin HTTP/1.1": 403,
            f"GET {{base}}/{'%' + '25' * 6 + '2e'}./admin HTTP/1.1": 403,
            "GET {base}/x HTTP/1.1\nHost: \xff": 421,
            "GET {base}/..\\admin HTTP/1.1": 400,
            "GET {base}/x#y HTTP/1.1": 400,
            "GET {base}/x HTTP/1.1\nX-A: \xe4": 400,
            "POST {base}/x HTTP/1.1\nContent-Length: 0\nTransfer-Encoding: chunked": 400,
            "POST {base}/x HTTP/1.1\nContent-Length: 1\nContent-Length: 2": 400,
        }.items():
            with self.during():
                self.assertEqual(self.ask(head)[0], status, head)
        self.assertEqual((self.service.requests, self.service.connected), ([], []))

    def test_line_break(self) -> None:
        """A bare carriage return begins no other header: it is refused, or is a space where Twisted reads it as one."""
        with self.during():
            status, _ = self.ask("GET {base}/x HTTP/1.1\nX-A: b\rX-B: c")
        if status != 400:
            self.assertIn("X-A: b X-B: c", self.headers())
        self.assertNotIn("\rX-B", "".join(map(bytes.decode, self.service.requests)))

    def test_override(self) -> None:
        """Nothing passes that some framework would read as another method or path, whatever executes."""
        for request in (CREATE, SEARCH):
            for head in (
                "GET {base}/x?_method=DELETE HTTP/1.1",
                "GET {base}/x?a=1;_method=DELETE HTTP/1.1",
                "GET {base}/x?%5Fmethod=DELETE HTTP/1.1",
                "GET {base}/x?.method=DELETE HTTP/1.1",
                "GET {base}/x?+_method[]=DELETE HTTP/1.1",
                "GET {base}/x?method=delete HTTP/1.1",
                "GET {base}/x?X-HTTP-Method-Override=DELETE HTTP/1.1",
                "GET {base}/x?$httpMethod=DELETE HTTP/1.1",
                "GET {base}/x HTTP/1.1\nX-HTTP-Method-Override: DELETE",
                "GET {base}/x HTTP/1.1\nX_HTTP_Method: DELETE",
                "GET {base}/x HTTP/1.1\nX-Method-Override: DELETE",
                "GET {base}/x HTTP/1.1\nX-Original-URL: /admin",
                "GET {base}/x HTTP/1.1\nX_Rewrite_Url: /admin",
                "GET {base}/x HTTP/1.1\nX-Forwarded-Host: evil.example",
                "GET {base}/x HTTP/1.1\nConnection: X-HTTP-Method\nX-HTTP-Method: DELETE",
            ):
                with self.during(request):
                    status, said = self.ask(head)
                self.assertEqual((status, b"another request" in said), (403, True), head)
        self.assertEqual(self.service.requests, [])
        with self.during(SEARCH):
            self.assertEqual(self.ask("GET {base}/x?method=flickr.photos.search&payment_method=a HTTP/1.1")[0], 200)

    def test_override_in_body(self) -> None:
        """A POST that only reads holds no field that makes another method of it, however that is written."""
        self.begin(FILE.replace("/api/v1", '/api/v1"\npost_reads = true#').replace('true#"', "true"))
        with self.during(SEARCH):
            for body in (
                b"a=1&_method=DELETE",
                b"a=1&%5fmethod=DELETE",
                b".method=DELETE",
                b'{"_method": "DELETE"}',
                b'{"\\u005Fmethod": "DELETE"}',
                b'--b\r\nContent-Disposition: form-data; name="_method"\r\n\r\nDELETE\r\n--b--',
                b"--b\r\nContent-Disposition: form-data; name=_method\r\n\r\nDELETE\r\n--b--",
                b"X-HTTP-Method-Override=DELETE",
                '{"_method": "DELETE"}'.encode("utf-16"),
                '{"_method": "DELETE"}'.encode("utf-32-be"),
            ):
                status, _ = self.ask(f"POST {{base}}/x HTTP/1.1\nContent-Length: {len(body)}", body)
                self.assertEqual(status, 403, body)
            form = "Content-Type: application/x-www-form-urlencoded; charset"
            for line, body in (
                ("Content-Encoding: gzip", gzip.compress(b"_method=DELETE")),
                ("Content-Encoding: identity\nContent-Encoding: Deflate", zlib.compress(b"_method=DELETE")),
                ("Content_Encoding: br", b"\x8b\x06\x80_method=DELETE\x03"),
                (f"{form}=ibm037", "_method=DELETE".encode("cp037")),
                (f'{form} = "UTF-7"', b"+AF8-method+AD0-DELETE"),
            ):
                status, _ = self.ask(f"POST {{base}}/x HTTP/1.1\n{line}\nContent-Length: {len(body)}", body)
                self.assertEqual(status, 415, line)
            self.assertEqual(self.service.requests, [])
            body = b'{"query": "{ order(id: 1) { payment_method method shipping.method } }"}'
            for line in ("Content-Type: application/json; charset=UTF-8", "Content-Encoding: identity"):
                head = f"POST {{base}}/x HTTP/1.1\n{line}\nContent-Length: {len(body)}"
                self.assertEqual(self.ask(head, body)[0], 200, line)

    def test_between(self) -> None:
        """Nothing passes while nothing executes; that is reported once, and counted by the next call."""
        for _ in range(3):
            status, said = self.ask("GET {base}/x HTTP/1.1")
            self.assertEqual(status, 403)
            self.assertIn(b"only while a call of this server executes", said)
        self.assertEqual((self.reports, self.service.requests), (["local://me/tracker"], []))
        with self.during() as notes:
            pass
        self.assertEqual(
            notes(), {"api": {"requests": 0, "failed": 0, "refused": 0, "sent": 0, "received": 0, "between": 3}}
        )
        with self.during() as notes:
            pass
        self.assertEqual(notes(), {})

    def test_read(self) -> None:
        """While only reads execute, nothing passes that could change something, but for a POST if the file says so."""
        for text, post in ((FILE, 403), (FILE.replace("/api/v1", '/api/v1"\npost_reads = true#'), 200)):
            self.begin(text.replace('true#"', "true"))
            with self.during(SEARCH) as notes:
                self.assertEqual(self.ask("GET {base}/x HTTP/1.1")[0], 200)
                self.assertEqual(self.ask("POST {base}/x HTTP/1.1\nContent-Length: 0")[0], post)
                self.assertEqual(self.ask("DELETE {base}/x HTTP/1.1")[0], 403)
                refused = notes()["api"]
                with self.during(CREATE):
                    self.assertEqual(self.ask("DELETE {base}/x HTTP/1.1")[0], 200)
                self.assertEqual(self.ask("DELETE {base}/x HTTP/1.1")[0], 403)
            self.assertEqual(refused["refused"], 2 if post == 403 else 1)  # type: ignore[index,call-overload]

    def test_accounts(self) -> None:
        """A request passes for calls with the credential that its process was started for, and for no others."""
        other = MemoryCredential(b"another-account-108")
        with self.during(SEARCH), self.relay.during(CREATE, other) as notes:
            self.assertEqual(self.ask("GET {base}/x HTTP/1.1")[0], 200)
            self.assertIn(f"Authorization: Bearer {SECRET}", self.headers())
            self.assertEqual(self.ask("POST {base}/x HTTP/1.1\nContent-Length: 0")[0], 403)
        with self.relay.during(CREATE, other) as notes:
            self.assertEqual(self.ask("GET {base}/x HTTP/1.1")[0], 403)
        self.assertEqual((len(self.service.requests), other.opened, notes()), (1, 0, {}))

    def test_left_behind(self) -> None:
        """A connection that outlives its process leads nowhere, even while a call executes."""
        self.relay.close()
        with self.during():
            self.assertEqual(self.ask("GET {base}/x HTTP/1.1")[0], 403)
        self.assertEqual(self.service.connected, [])

    def test_ended(self) -> None:
        """What is under way when the call ends is dropped at both ends; so is what its server hangs up on."""
        for hang_up in (False, True):
            self.service.replies.append(None)
            channel, transport = self.connect()
            with self.during():
                channel.dataReceived(b"GET /api/v1/x HTTP/1.1\r\nHost: 127.0.0.1:8377\r\n\r\n")
                self.service.advance()
                self.assertFalse(self.service.peers[-1].closed)
                if hang_up:
                    channel.connectionLost(Failure(ConnectionDone()))
                    self.service.advance()
                    self.assertTrue(self.service.peers[-1].closed)
            self.service.advance()
            self.assertTrue(self.service.peers[-1].closed)
            self.assertEqual((transport.value(), transport.disconnecting), (b"", not hang_up))

    def test_ended_beside(self) -> None:
        """What is under way when a call ends goes on for another that lets it pass, and counted and watched there."""
        for outer, said in ((CREATE, b"issue"), (CREATE, SECRET.encode()), (SEARCH, b"issue")):
            self.service.replies.append(None)
            channel, transport = self.connect()
            with self.during(outer) as notes:
                with self.during(CREATE):
                    channel.dataReceived(
                        b"POST /api/v1/x HTTP/1.1\r\nHost: 127.0.0.1:8377\r\nContent-Length: 0\r\n\r\n"
                    )
                    self.service.advance()
                self.service.advance()
                self.assertEqual(self.service.peers[-1].closed, outer is SEARCH)
                if outer is CREATE:
                    self.service.peers[-1].transport.write(answer(said))  # type: ignore[union-attr]
                    self.service.advance()
            self.assertEqual(b"issue" in transport.value(), said == b"issue" and outer is CREATE)
            self.assertEqual(notes().get("echoed"), ["plain"] if said != b"issue" else None)
            self.assertEqual("api" in notes(), outer is CREATE)

    def test_locked(self) -> None:
        """Where the credential does not open, nothing is sent, and the server is not told why; it is logged once."""
        self.credential.secret = VaultLocked("The vault is locked.")
        with self.during() as notes, capturedLogs() as logged:
            for _ in range(3):
                self.assertEqual(self.ask("GET {base}/x HTTP/1.1")[0], 502)
        self.assertEqual(self.service.connected, [])
        self.assertEqual((notes()["api"]["failed"], len(logged)), (3, 1))  # type: ignore[index,call-overload]

    def test_private(self) -> None:
        """An API that leads to a private address is not connected to, unless the file allows that."""
        self.begin(FILE.replace("private_network = true", "").replace("http://127.0.0.1:8765", "https://api.example"))
        self.service.names["api.example"] = ["10.0.0.1"]
        with self.during():
            self.assertEqual(self.ask("GET {base}/x HTTP/1.1")[0], 502)
        self.assertEqual(self.service.connected, [])

    def test_bounds(self) -> None:
        """A body, a head, silence and connections have bounds."""
        with self.during():
            self.ask(f"POST {{base}}/x HTTP/1.1\nContent-Length: {MOST_BODY_BYTES + 1}", b"x" * (MOST_BODY_BYTES + 1))
            self.assertTrue(self.last.disconnecting)
            self.assertEqual(self.ask("GET {base}/x HTTP/1.1\nX-A: " + "a" * 20_000)[0], 0)
            self.assertTrue(self.last.disconnecting)
        self.assertEqual(self.service.requests, [])
        self.begin(FILE)
        opened = [StringTransport() for _ in range(MOST_CONNECTIONS)]
        for each in opened:
            self.factory.buildProtocol(None).makeConnection(each)
        self.assertIsNone(self.factory.buildProtocol(None))
        self.service.advance(61)
        self.assertTrue(all(each.disconnecting for each in opened))

    def test_stopped(self) -> None:
        """When the process is gone, nobody listens."""
        self.relay.close()
        self.assertEqual(self.stopped, [True])


class AnswerTests(RelayCase):
    """What does not come back."""

    def test_echo(self) -> None:
        """An answer with the credential in it, in whatever form and however cut, is broken off, and that is noted."""
        for said, kind in ((f"you sent {SECRET}!", "plain"), (SECRET.encode().hex(), "hex")):
            with self.during() as notes:
                self.service.replies.append(None)
                channel, transport = self.connect()
                channel.dataReceived(b"GET /api/v1/x HTTP/1.1\r\nHost: 127.0.0.1:8377\r\n\r\n")
                self.service.advance()
                whole = answer(said.encode())
                for at in range(0, len(whole), 5):
                    if not self.service.peers[-1].closed:
                        self.service.peers[-1].transport.write(whole[at : at + 5])  # type: ignore[union-attr]
                        self.service.advance()
            self.assertTrue(transport.disconnecting)
            self.assertNotIn(said[9:15].encode(), transport.value())
            self.assertEqual(notes()["echoed"], [kind])

    def test_echo_in_head(self) -> None:
        """An answer whose head has it, or whose body is encoded, does not come back at all."""
        for more in ({"X-You-Sent": SECRET}, {"Content-Encoding": "gzip"}):
            with self.during():
                status, said = self.ask("GET {base}/x HTTP/1.1", reply=answer(b"{}", headers=more))
            self.assertEqual(status, 502)
            self.assertNotIn(SECRET.encode(), said)

    def test_part(self) -> None:
        """A part of an answer does not come back: an echo that is cut would not be found."""
        for status, more in ((206, {"Content-Range": "bytes 0-4/26"}), (206, {}), (200, {"Content-Range": "a"})):
            with self.during():
                found, said = self.ask("GET {base}/x HTTP/1.1", reply=answer(SECRET[:5].encode(), status, more))
            self.assertEqual((found, SECRET[:5].encode() in said), (502, False))

    def test_large(self) -> None:
        """An answer of 10 GB does not come back; nor does more of an endless one than a bound."""
        with self.during():
            head = b"HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n"
            self.assertEqual(self.ask("GET {base}/x HTTP/1.1", reply=head)[0], 502)
            endless = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (16 * 1024 * 1024 + 1)
            self.ask("GET {base}/x HTTP/1.1", reply=endless)
            self.assertTrue(self.last.disconnecting)

    def test_slow_reader(self) -> None:
        """Of an answer that its server reads slowly, little is held; the rest is left with the API until then."""
        body, got, transport = b"0123456789abcdef" * 64 * 1024, b"", SlowTransport()
        self.service.replies += [answer(body), answer(b"next")]
        with self.during():
            channel, _ = self.connect(transport)
            line = b"GET /api/v1/x HTTP/1.1\r\nHost: 127.0.0.1:8377\r\n\r\n"
            channel.dataReceived(line)
            while piece := self._held(transport):
                self.assertLess(len(piece), 3 * PIECE_BYTES)
                got += piece
                transport.read()
            self.assertEqual(len(b"".join(_chunks(got.partition(b"\r\n\r\n")[2]))), len(body))
            channel.dataReceived(line)
            self.assertIn(b"HTTP/1.1 200", self._held(transport))

    def test_slow_reader_leaves(self) -> None:
        """A server that leaves in the middle, or whose call ends then, has the API's connection dropped."""
        for leaves in (True, False):
            self.service.replies.append(answer(b"x" * 1024 * 1024))
            with self.during() as notes:
                channel, transport = self.connect(SlowTransport())
                channel.dataReceived(b"GET /api/v1/x HTTP/1.1\r\nHost: 127.0.0.1:8377\r\n\r\n")
                self._held(transport)
                if leaves:
                    transport.producer.stopProducing()
                    channel.connectionLost(Failure(ConnectionDone()))
                    self.channel = None
                    self.service.advance()
                    self.assertEqual(notes()["api"]["failed"], 1)  # type: ignore[index,call-overload]
            self.service.advance()
            self.assertTrue(self.service.peers[-1].closed)
            self.assertEqual(transport.disconnecting, not leaves)

    def _held(self, transport: StringTransport) -> bytes:
        self.service.advance()
        held: bytes = transport.value()
        return held


class UnconfinedTests(RelayCase):
    """Without a network of its own."""

    def test_path(self) -> None:
        """Over loopback, only the path that the process was told leads anywhere, and each process has another."""
        self.begin(FILE, inside=False)
        url = self.launch.environment["API_URL"]
        port = self.service.reactor.tcpServers[-1][0]
        self.assertEqual(self.service.reactor.tcpServers[-1][3], "127.0.0.1")
        prefix = url.removeprefix(f"http://127.0.0.1:{port}").removesuffix("/api/v1")
        self.assertGreater(len(prefix), 43)
        self.assertEqual(self.ask(f"GET /api/v1/x HTTP/1.1\nHost: 127.0.0.1:{port}")[0], 404)
        self.assertEqual(self.reports, [])
        with self.during():
            self.assertEqual(self.ask(f"GET {prefix}/api/v1/x HTTP/1.1\nHost: 127.0.0.1:{port}")[0], 200)
            self.assertEqual(self.ask(f"GET {prefix}/admin HTTP/1.1\nHost: 127.0.0.1:{port}")[0], 403)
            self.assertEqual(self.headers()[0], "GET /api/v1/x HTTP/1.1")
            for place in ("/api/v1/a", "http://127.0.0.1:8765/api/v1/a"):
                head = f"GET {prefix}/api/v1/x HTTP/1.1\nHost: 127.0.0.1:{port}"
                self.service.replies.clear()
                _, said = self.ask(head, reply=answer(b"", 302, {"Location": place}))
                self.assertRegex(said, rf"Location: (http://127.0.0.1:{port})?{prefix}/api/v1/a\r\n".encode())
        again = self.open(None).environment["API_URL"]
        self.assertNotEqual(again, url)


class ProcessTests(LocalCase):
    """The process that the relay is for."""

    def enclose(self, directory: str, network: bool, repository: bool) -> Enclosure:
        """A sandbox in which somebody listens."""
        return Enclosure(directory, confine, b"", *(() if network else (("entry",), self.listen)))

    def listen(self, factory: Any) -> tuple[Any, Callable[[], object]]:
        """Listen in it."""
        self.factory = factory
        return None, lambda: None

    def test_accounts(self) -> None:
        """All calls with one credential share a process; with another there is another, which knows nothing of it."""
        connector = self.service.local(spec_of(FILE), self.enclose)
        for secret, processes in ((b"mine", 1), (b"mine", 1), (b"yours", 2)):
            self.assertIsNone(self.successResultOf(self.start(connector, secret=secret)).fault)
            self.assertEqual(len(self.service.started), processes)
        (first, args, environment), _ = self.service.started
        self.assertTrue(first.is_over)
        self.assertEqual(args[-4:], ("bwrap", "entry", "/usr/bin/tracker", f"--api={HERE}/"))
        self.assertNotIn("mine", " ".join((*args, *environment.values())))

    def test_url_told(self) -> None:
        """Where the process tells the URL that it was told, the API's is passed on: nobody else can use the relay."""

        def tell(message: Mapping[str, Any]) -> bytes:
            pipes, _, environment = self.service.started[-1]
            url = environment["API_URL"]
            token = url.split("/")[3]
            self.assertGreater(len(token), 40)
            pipes.protocol.childDataReceived(2, f"GET {url}/issues\nno: {token}\n".encode())
            said = [{"type": "text", "text": f"{url}/issues/7, {token}"}]
            return canonical(result(message, {"content": said})) + b"\n"

        self.service.answers["tools/call"] = tell
        connector = self.service.local(spec_of(FILE.replace("--api=${api.url}/", "--stdio")), None)
        with capturedLogs() as logged:
            outcome = self.successResultOf(self.start(connector))
        self.assertEqual(outcome.output, {"text": "http://127.0.0.1:8765/api/v1/issues/7, [redacted]"})
        lines = [each["line"] for each in logged if "line" in each]
        self.assertEqual(lines, ["GET http://127.0.0.1:8765/api/v1/issues", "no: [redacted]"])

    def test_cancelled(self) -> None:
        """Of a call that is cancelled it is recorded what was asked of the relay during it."""
        self.service.answers["tools/call"] = lambda _: b""
        calling = self.start(self.service.local(spec_of(FILE), self.enclose))
        channel = self.factory.buildProtocol(None)
        channel.makeConnection(StringTransport())
        channel.dataReceived(b"GET /admin HTTP/1.1\r\nHost: 127.0.0.1:8377\r\n\r\n")
        calling.cancel()
        ended = self.failureResultOf(calling, Interrupted).value
        assert isinstance(ended, Interrupted)
        self.assertEqual(ended.notes["api"]["refused"], 1)

    def test_argument(self) -> None:
        """Where all users of the machine could read the relay's URL, it does not go into an argument."""
        network, alone = FILE.replace("[mcp.api]", "network = true\n[mcp.api]"), None
        for text, sandbox in ((FILE, alone), (network, self.enclose)):
            connector = self.service.local(spec_of(text.replace("sandbox", "# sandbox")), sandbox)
            with self.assertRaisesRegex(CapabilityDenied, "Other users of this machine"):
                connector.prepare("create_issue", {"title": "x"}, "file:///usr/bin/tracker", "k1")
            connector = self.service.local(spec_of(text.replace("--api=${api.url}/", "--stdio")), sandbox)
            connector.prepare("create_issue", {"title": "x"}, "file:///usr/bin/tracker", "k1")


class JudgeTests(SynchronousTestCase):
    """Any target."""

    @settings(max_examples=examples(200), deadline=None)
    @given(st.text(st.sampled_from("/.%2efF@:;?#\\ avpi1\r\n"), max_size=30))
    def test_base(self, tail: str) -> None:
        """Whatever is asked for, what leaves is below the API's URL, or nothing does."""
        local = spec_of(FILE).local
        assert local is not None and isinstance(local.api, Api)
        for target in (tail, f"/api/v1{tail}", f"/api/v1/{tail}"):
            try:
                url = local.api.judge(evolve(CREATE, method="GET"), target, Headers({"Host": ["h"]}), host="h").url
            except ApiRefused:
                continue
            rest = url.removeprefix("http://127.0.0.1:8765/api/v1")
            self.assertIn(rest[:1], ("", "/", "?"))
            self.assertFalse({".", ".."} & set(rest.partition("?")[0].split("/")))
            self.assertTrue(url.isprintable() and " " not in url)


class FileTests(SynchronousTestCase):
    """The file of such a connector."""

    def test_described(self) -> None:
        """The credential is sealed for the API's host and URL, and nothing else is said to be reached."""
        about = spec_of(FILE).description
        assert about.credential is not None
        self.assertEqual(about.hosts, ("127.0.0.1:8765",))
        self.assertEqual(about.credential.settings["api"], "http://127.0.0.1:8765/api/v1")

    def test_check(self) -> None:
        """The offline check says who can read the credential."""
        path, said = Path(self.mktemp()).with_suffix(".toml"), list[str]()
        for text, end in ((FILE, "The program cannot read it."), (LOCAL, "everything that it starts can read it.")):
            path.write_text(filled(text))
            self.assertEqual(check(path, said.append), [])
            self.assertTrue(said[-1].endswith(end), said)

    def test_faults(self) -> None:
        """What it says wrongly is a fault, with its line."""
        for old, new, problem in (
            ("http://127.0.0.1:8765", "http://api.example", "must begin with https://"),
            ('url = "http://127.0.0.1:8765/api/v1"', "", "`url` is missing"),
            ('/api/v1"', '/api/v1"\nother = 1', "`other` is not a known key"),
            ('/api/v1"', '/api/v1?a=1"', "must have no query"),
            ("${api.url}", "literal", "`api` must be there if ${api.url} stands"),
            ("[mcp.api]\nurl", "[other]\nurl", "`api` must be there if ${api.url} stands"),
            (
                'kind = "api_key"\nheader = "Authorization"\nformat = "Bearer {key}"',
                'kind = "ssh_key"',
                "`kind` must be",
            ),
            ('header = "Authorization"\nformat = "Bearer {key}"', 'path = "/bot{key}"', "`kind` must be"),
            ('header = "Authorization"', 'variable = "A"\nheader = "Authorization"', "`variable` is not a known key"),
        ):
            self.assertIn(old, FILE)
            problems = read_file(filled(FILE.replace(old, new)).encode(), "tracker.toml").problems
            self.assertIn(problem, " ".join(each.message for each in problems))
        text = FILE[: FILE.index("[credential]")] + FILE[FILE.index("[operations") :]
        problems = read_file(filled(text).encode(), "tracker.toml").problems
        self.assertIn("must stand beside a [credential]", " ".join(each.message for each in problems))
