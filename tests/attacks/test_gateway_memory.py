"""An agent that has the gateway hold as much as it can, and one that sends fields where nobody looked at them."""

from __future__ import annotations

import base64
import resource
from typing import ClassVar
from urllib.parse import urlsplit

from twisted.internet.defer import maybeDeferred
from twisted.internet.protocol import Protocol, ServerFactory

from tests.attacks.case import AttackTestCase
from tests.attacks.provider import SAID, RawProvider
from tests.functional.ports import another_port

_RELAYS, _BODY_BYTES = 600, 1_000_000
# Sends so many requests with large bodies as one session, and reads no answer.  It is the provider as well: one that
# takes all and answers nothing, or one that accepts nobody.
_UPLOADS = """
import json, resource, selectors, socket, sys, time
site, target, port, count, length, accepts = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
host, _, at = site.partition(":")
ready, body = selectors.DefaultSelector(), bytes(1 << 16)
provider = socket.create_server(("127.0.0.1", port), backlog=4096 if accepts else 0)
provider.setblocking(False)
if accepts:
    ready.register(provider, selectors.EVENT_READ, None)
head = f"POST {target} HTTP/1.1\\r\\nHost: {site}\\r\\nContent-Length: {length}\\r\\n\\r\\n".encode()
left = {}
for _ in range(count):
    client = socket.create_connection((host, int(at)), 20)
    client.sendall(head)
    client.setblocking(False)
    left[client] = length
    ready.register(client, selectors.EVENT_WRITE, None)
def turn(one):
    if one is provider:
        taken = provider.accept()[0]
        taken.setblocking(False)
        ready.register(taken, selectors.EVENT_READ, None)
    elif one in left:
        try:
            left[one] -= one.send(body[:left[one]])
        except OSError:
            left[one] = 0
        if not left[one]:
            ready.unregister(one)
    else:
        try:
            ended = not one.recv(1 << 20)
        except ConnectionResetError:
            ended = True
        if ended:
            ready.unregister(one)
until, last = time.monotonic() + 60, time.monotonic()
while time.monotonic() < min(until, last + 3):
    for key, _ in ready.select(0.5):
        last = time.monotonic()
        turn(key.fileobj)
print(json.dumps(sum(length - each for each in left.values())), flush=True)
time.sleep(60)
"""
_DESCRIPTORS = 8192


class _Silent(Protocol):
    """A provider that keeps what comes and says nothing."""

    heard: ClassVar[list[bytes]] = []

    def dataReceived(self, data: bytes) -> None:
        """Keep it."""
        self.heard.append(data)


class GatewayMemoryTests(AttackTestCase):
    """A daemon whose gateway leads to a provider of the attacker's, and to one of the user's."""

    executes_daemons = True
    timeout = 300

    async def test_unanswered(self) -> None:
        """Hundreds of megabytes that nobody answers, or that nobody takes, are not held, and others are served."""
        port, site = await self.begin(), self.site()
        attacker = await self.session()
        for accepts in ("1", "0"):
            held = self.resident_bytes()
            target = f"/s/{attacker.gateway_key}/evil/v1/x"
            numbers = (str(port), str(_RELAYS), str(_BODY_BYTES), accepts)
            flood = self.start(self.python(_UPLOADS, site, target, *numbers))
            sent = int((await flood.expect(r"\d+\n", 90))[0])
            self.assertGreater(sent, _RELAYS * 10_000)
            self.assertLess(self.resident_bytes() - held, 100 << 20, accepts)
            await self.others_are_served()
            await flood.kill()

    async def test_trailers(self) -> None:
        """What must not leave this machine in a field does not leave it in one after the body."""
        _Silent.heard.clear()
        factory = ServerFactory.forProtocol(_Silent)
        silent = self.reactor.listenTCP(await self.begin(), factory, interface="127.0.0.1")  # type: ignore[arg-type]

        async def stop() -> None:
            await maybeDeferred(silent.stopListening)

        self.finally_(stop)
        own, site = await self.session(), urlsplit(self.home.discovery()["url"]).netloc
        for line in (f"Authorization: Bearer {own.token}", "X-Api-Key: mine", "Cookie: aileron_operator=x", "X-A: 1"):
            answer = await self.attack(_TRAILER, site, f"/s/{own.gateway_key}/evil/v1/x", line)
            self.assertIn(b"400 Bad Request", base64.b64decode(answer))
        heard = b"".join(_Silent.heard)
        self.assertEqual(heard.count(b"POST "), 4)
        for name in (b"ail_", b"Authorization", b"Api-Key", b"Cookie", b"X-A"):
            self.assertNotIn(name[:6], heard)

    def site(self) -> str:
        """The agents' site."""
        return str(urlsplit(self.home.discovery()["url"]).netloc)

    async def others_are_served(self) -> None:
        """Assert that another session is, and who has none."""
        own = await self.session()
        for before in (f"/s/{own.gateway_key}", ""):
            answers = await self.attack(_ASK, self.site(), f"{before}/good/v1/x")
            self.assertIn(SAID, base64.b64decode(answers))

    async def begin(self) -> int:
        """A daemon with both providers, which may have many connections; the port of the attacker's."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(_DESCRIPTORS, before[1]), before[1]))
        self.provider, port = RawProvider.listen(self.reactor), another_port()
        self.finally_(self.provider.stop)
        await self.operator("vault", "init")
        await self.set_config(
            "gateway:\n  providers:\n"
            f"    evil: {{base_url: 'http://127.0.0.1:{port}'}}\n    good: {{base_url: '{self.provider.url}'}}\n"
        )
        return port


# Asks once; what came, in base64.
_ASK = """
import base64, json, socket, sys
site, target = sys.argv[1:]
host, _, port = site.partition(":")
with socket.create_connection((host, int(port)), 20) as line:
    head = f"POST {target} HTTP/1.1\\r\\nHost: {site}\\r\\nConnection: close\\r\\nContent-Length: 2\\r\\n\\r\\n"
    line.sendall(head.encode() + b"{}")
    print(json.dumps(base64.b64encode(line.makefile("rb").read()).decode()))
"""
_TRAILER = """
import base64, json, socket, sys, time
site, target, field = sys.argv[1:]
host, _, port = site.partition(":")
head = f"POST {target} HTTP/1.1\\r\\nHost: {site}\\r\\nConnection: close\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
with socket.create_connection((host, int(port)), 20) as line:
    for piece in (head + "2\\r\\n{}\\r\\n", "0\\r\\n", field[:9], field[9:] + "\\r\\n\\r\\n"):
        line.sendall(piece.encode())
        time.sleep(0.05)
    print(json.dumps(base64.b64encode(line.makefile("rb").read()).decode()))
"""
