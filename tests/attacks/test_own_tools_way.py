"""Connections of an agent's own tools, made by a program that has all that a launcher has."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.attacks.case import AttackTestCase
from tests.functional.operated import AgentSession, kinds

HOST = "api.github.com"
MEBIBYTE = 1024 * 1024
LONG = MEBIBYTE - 100
"""How many characters the word LONG of a request stands for."""

_MINE = "ghp_CANARY_of_the_agent"
_ASK = """
import json, socket, ssl, sys, urllib.request
url, key, session, pem, host = sys.argv[1:6]
most = 60
context = ssl.create_default_context(cadata=pem)
def post(path, body):
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/sessions/{session}/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)
def connect(target=host + ":443", name=host):
    found = post("egress", {"allow": []})
    raw = socket.create_connection(("127.0.0.1", found["port"]), 20)
    raw.settimeout(most)
    raw.sendall(f"AILERON-EGRESS {found['ticket']}\\r\\nCONNECT {target} HTTP/1.1\\r\\n\\r\\n".encode())
    said = raw.recv(4096)
    return context.wrap_socket(raw, server_hostname=name) if b" 200 " in said else said.decode()
def read(each):
    got = b""
    try:
        while piece := each.recv(65536):
            got += piece
    except OSError:
        pass
    return got.decode("latin-1")
def say(data):
    with connect() as each:
        try:
            each.sendall(data.encode("latin-1"))
        except OSError:
            pass
        return read(each)
"""
_SAY = f"""{_ASK}
print(json.dumps([say(each.replace("LONG", "x" * {LONG})) for each in json.loads(sys.argv[6])]))
"""
_CERTIFICATES = f"""{_ASK}
def tried(*given):
    try:
        found = connect(*given)
        return found if isinstance(found, str) else "connected"
    except ssl.SSLCertVerificationError:
        return "not believed"
    except ssl.SSLError as error:
        return error.reason or str(error)
    except OSError as error:
        return str(error)
print(json.dumps([tried(), tried(host + ":443", "other.example"), tried("other.example:443", "other.example")]))
"""
# Connections whose requests are never complete, and what those were told that the daemon answers all the same.
_HOLD = f"""{_ASK}
import select
held = []
for _ in range(int(sys.argv[6])):
    each = connect()
    held.append(each)
    try:
        each.sendall(f"POST /x HTTP/1.1\\r\\nHost: {{host}}\\r\\nContent-Length: {MEBIBYTE}\\r\\n\\r\\n".encode())
        each.sendall(b"x" * {MEBIBYTE - 1})
    except OSError:
        pass
told = [read(each)[:13] for each in held if select.select([each], [], [], 0.2)[0]]
print(json.dumps([len(held), told]), flush=True)
import signal
signal.pause()
"""


def request(*lines: str, start: str = "POST /repos/me/mine/issues HTTP/1.1", body: str = "{}") -> str:
    """Return a request in one piece, after which the connection ends."""
    length = len(body) + (LONG - len("LONG")) * body.count("LONG")
    usual = (f"Host: {HOST}", "Content-Type: application/json", f"Content-Length: {length}", "Connection: close")
    return "\r\n".join((start, *usual, *lines, "", body))


_BARE = f"POST /x HTTP/1.1\r\nHost: {HOST}\r\n"
_NEXT = f"DELETE /repos/me/mine HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
SMUGGLED = (
    f"{_BARE}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{_NEXT}",
    f"{_BARE}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{_NEXT}",
    f"{_BARE}Content-Length: 0\r\nContent-Length: {len(_NEXT)}\r\n\r\n{_NEXT}",
    f"{_BARE}Transfer_Encoding: chunked\r\nContent-Length: 0\r\n\r\n{_NEXT}",
    f"{_BARE}Transfer-Encoding: chunked\r\n\r\n1;a=\nb\r\nx\r\n0\r\n\r\n{_NEXT}",
    f"{_BARE}Transfer-Encoding: chunked\r\n\r\n0\r\nX-HTTP-Method-Override: DELETE\r\n\r\n",
    f"{_BARE}X-A: b\r\n Content-Length: 9\r\n\r\n{_NEXT}",
    f"{_BARE}X-A: b\nContent-Length: 9\r\n\r\n{_NEXT}",
    f"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{_NEXT}",
    request(start=f"POST https://{HOST}/x HTTP/1.1"),
    request(start="POST //other.example/x HTTP/1.1"),
    request(start="POST /repos/%2e%2e/x HTTP/1.1"),
    request(start="POST /repos/x?_method=DELETE HTTP/1.1"),
    request("X-HTTP-Method-Override: DELETE"),
    request("Host: other.example"),
    _BARE.replace(HOST, "other.example") + "\r\n",
    request("Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    request("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
    request("connection: keep-alive, Upgrade"),
    request("Connection: Content-Type"),
    request("Connection: Authorization"),
    f"{_BARE}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{_NEXT}",
    f"{_BARE}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{_NEXT}",
    f"{_BARE}Content-Length: +5\r\n\r\nhello{_NEXT}",
    request(start="POST /x HTTP/1.0"),
    request(start="post /repos/me/mine/issues HTTP/1.1"),
    request(start="POST /repos\\mine HTTP/1.1"),
)

_MUTATION = 'mutation{addStar(input:{starrableId:\\"x\\"}){clientMutationId}}'
_GRAPHQL = "POST /graphql HTTP/1.1"
_READING = "GET /user HTTP/1.1"
DISGUISED = (
    request(start=_READING),
    request(start="GET /user?_method=DELETE HTTP/1.1", body=""),
    request("X-HTTP-Method-Override: DELETE", start=_READING, body=""),
    request(start="GET /graphql?query=mutation%7Bx%7D HTTP/1.1", body=""),
    request(start="POST /graphql?query=mutation%7Bx%7D HTTP/1.1", body='{"query": "{viewer{login}}"}'),
    request(start=_GRAPHQL, body='{"query": "query a{x} mutation b{y}", "operationName": "b", "variables": {}}'),
    request(start=_GRAPHQL, body=f'{{"query": "{{x}}", "query": "{_MUTATION}"}}'),
    request(start=_GRAPHQL, body=f'[{{"query": "{{x}}"}}, {{"query": "{_MUTATION}"}}]'),
    request(start=_GRAPHQL, body='{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "00"}}}'),
    request("Content-Encoding: gzip", start=_GRAPHQL, body='{"query": "{x}"}'),
    request(start=_GRAPHQL, body='\xef\xbb\xbf{"query": "{x}"}'),
    request(start=_GRAPHQL, body='{"query": "#\\u2028mutation{x}\\n{y}"}'),
    *(
        request(start=f"POST {path} HTTP/1.1", body=f'{{"query": "{_MUTATION}"}}')
        for path in ("/graphql/", "/%67raphql", "/GraphQL", "/graphql.json")
    ),
    request(start="GET /repos/me/%252e%252e/x HTTP/1.1", body=""),
    request(start="GET /repos/me/%2e%2e/x HTTP/1.1", body=""),
    request(start="GET /repos/me/a;b=c/x HTTP/1.1", body=""),
    request(start="TRACE /user HTTP/1.1", body=""),
    request(start="POST /$batch HTTP/1.1"),
)
"""Requests that write, or that a server could take for such, and that pass for reads if they are read otherwise."""

ASKED = (
    request(start=_GRAPHQL, body=f'{{"query": "#query\\n{_MUTATION}"}}'),
    request(start="GET /repos/me/mine/secret-scanning/alerts.json HTTP/1.1", body=""),
    request(start="GET /REPOS/me/mine/secret-scanning%2Falerts/ HTTP/1.1", body=""),
)
"""Requests that look like reads, and for which the user is asked."""


class WayTestCase(AttackTestCase):
    """A user who let the tools of agents use a service, and a program with the launch key."""

    tools = "github"

    async def begin(self) -> None:
        """Have the service added and a credential bound. A write is held for a second."""
        await self.furnish()
        await self.set_config("own_tools: {hold_seconds: 1}\n")
        await self.operator("own-tools", "add", self.tools, "--yes")
        await self.bind_service()

    async def bind_service(self) -> None:
        """Bind a credential."""
        await self.feed("ghp_CANARY", "credential", "setup", "builtin://github")

    async def opened(self, agent: str = "test") -> tuple[AgentSession, str]:
        """Open the service for a new session, and return the certificate of its authority too."""
        session = await self.session(agent)
        reply = await self.open(session, self.tools)
        self.assertEqual(200, reply.status, reply)
        return session, str(reply.body["certificate"])

    async def open(self, session: AgentSession, *services: str, key: str | None = None) -> Any:
        """Ask to open services."""
        found = self.home.discovery()
        url = f"{found['url']}/v1/sessions/{session.id}/own-tools"
        return await self.web.ask("POST", url, key or str(found["launch_key"]), {"services": list(services)})

    def given(self, session: AgentSession, pem: str, host: str = HOST) -> tuple[str, ...]:
        """Return what the program gets."""
        found = self.home.discovery()
        return str(found["url"]), str(found["launch_key"]), session.id, pem, host

    async def say(self, session: AgentSession, pem: str, requests: Sequence[str], host: str = HOST) -> list[str]:
        """Send requests, each by a connection of its own, and return the answers."""
        said: list[str] = await self.attack(_SAY, *self.given(session, pem, host), json.dumps(requests), seconds=120)
        return said


class WayTests(WayTestCase):
    """What such a program is stopped from."""

    async def test_services(self) -> None:
        """The token and the keys of a session open no service, and the launch key adds none to those opened."""
        await self.begin()
        session, _ = await self.opened()
        for key in (session.token, session.gateway_key):
            self.assertIn((await self.open(session, "github", key=key)).status, (401, 403))
        for services in (("github", "slack"), ("slack",), ("github", "none")):
            self.assertEqual(409, (await self.open(session, *services)).status)

    async def test_certificates(self) -> None:
        """The session's authority is for GitHub alone: by no name, in or behind TLS, another host is answered."""
        await self.begin()
        session, pem = await self.opened()
        same, named, other = await self.attack(_CERTIFICATES, *self.given(session, pem))
        self.assertEqual("connected", same)
        self.assertNotIn(named, ("connected", "not believed"))
        self.assertIn(" 403 ", other)
        _, foreign = await self.opened("another")
        self.assertEqual("not believed", (await self.attack(_CERTIFICATES, *self.given(session, foreign)))[0])

    async def test_smuggling(self) -> None:
        """What could hide another request, or change the protocol, is refused; nobody is asked, nothing is sent."""
        await self.begin()
        session, pem = await self.opened()
        for sent, answer in zip(SMUGGLED, await self.say(session, pem, SMUGGLED), strict=True):
            self.assertRegex(answer, r"\AHTTP/1\.1 (400|405|421|505) ", repr(sent))
            self.assertEqual(1, answer.count("\r\nConnection: close\r\n"), repr(sent))
        self.assertEqual([], await self.waiting(0))
        self.assertIn("own_tools.refused", kinds(await self.audit()))

    async def test_disguised(self) -> None:
        """What could be a write that passes for a read is refused or asked for; none is sent as a read."""
        await self.begin()
        session, pem = await self.opened()
        for sent, answer in zip(DISGUISED, await self.say(session, pem, DISGUISED), strict=True):
            self.assertRegex(answer, r"\AHTTP/1\.1 40[05] |Aileron refused this request", repr(sent))
        self.assertEqual([], await self.waiting(0))
        for sent, answer in zip(ASKED, await self.say(session, pem, ASKED), strict=True):
            self.assertIn("waits for the user's approval", answer, repr(sent))
        self.assertEqual(len(ASKED), len(await self.waiting(len(ASKED))))
        self.assertNotIn("own_tools.read", kinds(await self.audit()))

    async def test_credentials(self) -> None:
        """A credential of the agent's own is refused wherever it stands, and is recorded nowhere."""
        await self.begin()
        session, pem = await self.opened()
        sent = (
            request(f"Authorization: token {_MINE}"),
            request(f"Cookie: user_session={_MINE}"),
            request(f"Private-Token: {_MINE}"),
            request(start=f"POST /repos/me/mine/issues?access_token={_MINE} HTTP/1.1"),
            request(body=f"access_token={_MINE}").replace("application/json", "application/x-www-form-urlencoded"),
        )
        for answer in await self.say(session, pem, sent):
            self.assertIn("HTTP/1.1 403 Refused by Aileron", answer)
            self.assertNotIn(_MINE, answer)
        self.assertEqual([], await self.waiting(0))
        record = await self.audit()
        self.assertIn("own_tools.refused", kinds(record))
        self.assertNotIn(_MINE, json.dumps(record))

    async def test_parked(self) -> None:
        """A write that waits is no other live session's: the same request there is asked for anew."""
        await self.begin()
        for number, agent in enumerate(("test", "test", "another"), 1):
            session, pem = await self.opened(agent)
            (answer,) = await self.say(session, pem, [request(body='{"title": "x"}')])
            self.assertIn("HTTP/1.1 403 Waits for approval", answer)
            self.assertEqual(number, len(await self.waiting(number)))

    async def test_forged_caller(self) -> None:
        """Who names another session's command as its own gets neither its answer, nor what it is owed."""
        await self.begin()
        forged = {"process": 4242, "started": 7, "command": "gh issue create"}
        for number, agent in enumerate(("test", "another"), 1):
            session, pem = await self.opened(agent)
            script = _SAY.replace('{"allow": []}', json.dumps({"allow": [], "caller": forged}))
            (answer,) = await self.attack(script, *self.given(session, pem), json.dumps([request()]), seconds=120)
            self.assertIn("HTTP/1.1 403 Waits for approval", answer)
            self.assertEqual(number, len(await self.waiting(number)))


class FloodTests(WayTestCase):
    """Very many requests of such a program."""

    async def test_memory(self) -> None:
        """Requests that are never complete are held up to a limit; the daemon answers others meanwhile."""
        await self.begin()
        session, pem = await self.opened()
        before = self.resident_bytes()
        running = self.start(self.python(_HOLD, *self.given(session, pem), "60"))
        held, told = json.loads((await running.expect(r"\[.+\]\n", 120))[0])
        grown = self.resident_bytes() - before
        self.assertEqual(60, held)
        self.assertGreaterEqual(len(told), 60 - 33)
        self.assertIn("HTTP/1.1 403 ", told)
        self.assertLessEqual(set(told), {"HTTP/1.1 403 ", ""}, "some went on sending until they were cut")
        self.assertLess(grown, 3 * 32 * MEBIBYTE)
        another, its = await self.opened("another")
        (answer,) = await self.say(another, its, [request()])
        self.assertIn("HTTP/1.1 403 Waits for approval", answer)
        await running.kill()

    async def test_parked(self) -> None:
        """Writes that wait are kept up to a limit; further ones are refused in words."""
        await self.begin()
        session, pem = await self.opened()
        sent = [request(start=f"POST /repos/me/mine{n}/issues HTTP/1.1", body='{"a": "LONG"}') for n in range(10)]
        answers = await self.say(session, pem, sent)
        self.assertEqual([True] * 8 + [False] * 2, ["Waits for approval" in each for each in answers])
        self.assertIn("too long together", answers[-1])
