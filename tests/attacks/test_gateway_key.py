"""What an agent can do with its gateway key, and with a key that the gateway puts into its calls: ask models."""

import base64
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import attrs
from twisted.internet.defer import Deferred

from tests.attacks.case import AttackTestCase
from tests.attacks.provider import SAID, RawProvider
from tests.functional.canary import in_bytes, in_files, in_process
from tests.functional.operated import PASSPHRASE

KEY = "sk-canary-Wm93a2F0emU+/7"
NAME = "api_key/local/default"
CHAT = "/local/v1/chat/completions"
AUTHORIZATION = b"AUTHORIZATION: Bearer sk-mine\r\n"
EVIL = (
    AUTHORIZATION
    + b"x-api-key: sk-mine\r\nX-API-Key: sk-too\r\napi-key: a\r\nx_api_key: b\r\nApi-Key: c\r\nCookie: a=b\r\n"
)
KEPT = b"OpenAI-Organization: org-x\r\n"

# What an agent sends is bytes of its own making, and it keeps all that comes back.
_SEND = """
import base64, json, socket, sys
host, port, *requests = sys.argv[1:]
answers = []
for request in requests:
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(base64.b64decode(request))
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
    answers.append(base64.b64encode(answer).decode())
print(json.dumps(answers))
"""


def config(url: str) -> str:
    """A provider with a key of ours, at C{url}."""
    return f"gateway:\n  providers:\n    local: {{base_url: '{url}', credential: 'vault:{NAME}'}}\n"


class GatewayKeyTests(AttackTestCase):
    """An agent in a session of its own, whose calls get the user's key."""

    def setUp(self) -> Any:
        """Begin."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def begin(self) -> None:
        """Have a daemon, its vault with the key of a provider, and a session.

        What the daemon shows of its process is looked at where it was executed.
        """
        self.provider, self.evil = self.listening(), self.listening()
        await self.operator("vault", "init")
        self.executes_daemons = self.id().endswith(".test_put_in")
        await self.set_config(config(self.provider.url))
        await self.bind_key("gateway://local")
        self.own = await self.session()

    def listening(self) -> RawProvider:
        """A provider, until the test's end."""
        provider = RawProvider.listen(self.reactor)
        self.finally_(provider.stop)
        return provider

    async def bind_key(self, to: str) -> None:
        """Bind the user's key to a provider."""
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": KEY}
        setup = ("binding", "setup", to)
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)

    async def restart(self) -> None:
        """Another life of the daemon, unlocked."""
        await self.command("daemon", "stop")
        await self.unlock()

    async def send(self, *requests: bytes) -> list[bytes]:
        """What comes back of each."""
        at = urlsplit(self.home.discovery()["url"])
        encoded = [base64.b64encode(request).decode() for request in requests]
        answers = await self.attack(_SEND, str(at.hostname), str(at.port), *encoded)
        return [base64.b64decode(answer) for answer in answers]

    def request(self, path: str = CHAT, fields: bytes = b"", method: str = "POST", key: str | None = None) -> bytes:
        """One request; C{key} stands before its path, by default the session's own, and none where it is empty."""
        key = self.own.gateway_key if key is None else key
        target, host = (f"/s/{key}{path}" if key else path), urlsplit(self.home.discovery()["url"]).netloc
        head = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
        return head.encode() + b"Content-Type: application/json\r\nContent-Length: 2\r\n" + fields + b"\r\n{}"

    def refusals(self, answers: Sequence[bytes]) -> list[tuple[int, str]]:
        """Status and class of each."""
        return [(int(answer.split()[1]), _field(answer, b"x-aileron-error")) for answer in answers]

    async def assert_hidden(self, *answers: bytes) -> None:
        """Whatever an agent can read does not hold the key."""
        daemon = self.home.discovery()["pid"]
        found = [*in_files(self.home.root, KEY), *in_process(int(daemon), KEY)]
        for answer in answers:
            found += in_bytes("an answer", answer, KEY)
        self.assertEqual(found, [])

    async def test_put_in(self) -> None:
        """The provider gets the user's key once and nothing of what the agent showed; the agent never sees it."""
        answers = await self.send(
            self.request(fields=EVIL + KEPT),
            self.request(fields=EVIL + b"Accept-Encoding: gzip, br\r\nX-Forwarded-Host: evil.test\r\n"),
        )
        for answer in answers:
            self.assertTrue(answer.endswith(SAID), answer)
        for request in self.provider.requests:
            head = request.partition(b"\r\n\r\n")[0]
            ours = b"authorization: Bearer " + KEY.encode() + b"\r\naccept-encoding: identity"
            self.assertTrue(head.endswith(ours), head)
            theirs = head.removesuffix(ours).lower()
            for gone in (b"sk-", b"api-key", b"api_key", b"cookie", b"ail_g_", b"encoding", b"evil", b"authorization"):
                self.assertNotIn(gone, theirs)
        self.assertIn(KEPT, self.provider.requests[0])
        self.assertTrue(self.provider.requests[0].startswith(b"POST /v1/chat/completions HTTP/1.1\r\n"))
        self.assertEqual(len(self.provider.requests), 2)
        await self.assert_hidden(*answers)

    async def test_not_put_in(self) -> None:
        """No key for what asks no model, for no session, an ended one, or the token of one; nothing is sent then."""
        ended = await self.session()
        url = f"{self.home.discovery()['url']}/v1/sessions/{ended.id}/end"
        by_ended = self.request(key=ended.gateway_key)
        (answer,) = await self.send(by_ended)
        self.assertTrue(answer.endswith(SAID))
        await self.web.ask("POST", url, ended.token, {})
        header = b"X-Aileron-Gateway-Key: %s\r\n"
        answers = await self.send(
            *(self.request(path) for path in ("/local/v1/models", "/local/v1/files", "/local/v1/chat%2Fcompletions")),
            self.request(method="GET"),
            self.request(key=""),
            self.request(key="", fields=header % b"ail_g_unknown"),
            self.request(key="", fields=header % self.own.token.encode()),
            by_ended,
            by_ended,
            self.request(key=self.own.token),
            self.request(fields=AUTHORIZATION * 2),
        )
        statuses = [status for status, _ in self.refusals(answers)]
        self.assertEqual([status for status in statuses if status not in {400, 401, 403, 404}], [], answers)
        self.assertEqual(self.refusals(answers[:1] + answers[4:5]), [(403, "forbidden"), (403, "unauthorized")])
        self.assertEqual(len(self.provider.requests), 1)
        await self.assert_hidden(*answers)

    async def test_echoed(self) -> None:
        """A provider that sends the key back is cut, however it writes it; that is on record, the binding flagged."""
        raw = KEY.encode()
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.provider.will_answer(
            b"HTTP/1.1 401 No\r\nX-Sent: Bearer %s\r\nContent-Length: 2\r\n\r\nno" % raw,
            b"HTTP/1.1 401 No\r\nContent-Length: %d\r\n\r\n%s" % (len(raw), raw),
            head + b"".join(b"1\r\n%c\r\n" % byte for byte in b"first: " + raw) + b"0\r\n\r\n",
            head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(raw.hex()), raw.hex().encode()),
            head + b"5\r\nfirst\r\n0\r\nX-Sent: %s\r\n\r\n" % base64.b64encode(b"Bearer " + raw),
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nno",
        )
        answers = await self.send(*(self.request() for _ in range(6)))
        self.assertEqual(len(self.provider.requests), 6)
        for answer in answers:
            self.assertFalse(answer.endswith(b"0\r\n\r\n"), answer)
        self.assertEqual(self.refusals(answers[:1]), [(502, "external_api_error")])
        await self.assert_hidden(*answers)
        echoed = [each for each in await self.audit() if each["type"] == "secret.echoed"]
        self.assertEqual([each["payload"]["binding"] for each in echoed], [NAME] * 5)
        self.assertEqual({each["session_id"] for each in echoed}, {self.own.id})
        (bound,) = (await self.told("binding", "list"))["items"]
        self.assertIn("gateway://local", bound["flag"]["reason"])

    async def test_moved(self) -> None:
        """Neither an edited configuration nor a variable leads the key elsewhere, and the user is told what to do."""
        self.state.config.write_text(config(self.evil.url))
        await self.restart()
        (answer,) = await self.send(self.request())
        self.assertEqual(int(answer.split()[1]), 404)
        text = config(self.provider.url).replace("local", "openai")
        await self.set_config(text)
        await self.bind_key("gateway://openai")
        self.home = attrs.evolve(self.home, variables={"AILERON_OPENAI_BASE_URL": self.evil.url})
        await self.restart()
        answers = await self.send(self.request("/v1/chat/completions"), self.request("/v1/responses"))
        self.assertEqual(self.refusals(answers), [(403, "binding_failed"), (400, "binding_failed")])
        self.assertIn(b"aileron credential rebind api_key/openai/default", answers[0])
        self.assertEqual((self.evil.requests, self.provider.requests), ([], []))
        await self.assert_hidden(*answers)


def _field(answer: bytes, name: bytes) -> str:
    """A field of an answer's head, or nothing."""
    found = re.search(rb"\r\n" + name + rb": *([^\r]*)", answer.partition(b"\r\n\r\n")[0] + b"\r\n", re.IGNORECASE)
    return "" if found is None else found[1].decode()
