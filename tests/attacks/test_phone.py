"""The public name of the inbox: pages of others beside it, programs in the daemon's place, and what they leave."""

import json
from typing import Any, ClassVar

from cryptography.hazmat.primitives.serialization import Encoding
from twisted.internet import ssl
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from aileron.base.json import utc
from aileron.features.phone._certificates import make_certificate
from tests.functional.chromium import Page
from tests.functional.phoned import NAME, PhonedTestCase, fetch, spki
from tests.functional.ports import free_port
from tests.functional.test_phone_proxy import ProxyTestCase, why_not

_GET = """(async ([site, tag, instance, nonce]) => {
  const text = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const pair = await crypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-256" }, true, ["sign"]);
  const point = text(await crypto.subtle.exportKey("raw", pair.publicKey));
  const said = JSON.stringify([tag, instance, nonce, point]);
  const challenge = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(said));
  const found = await navigator.credentials.get({ publicKey: { challenge, rpId: site, userVerification: "required" } });
  const { clientDataJSON, authenticatorData, signature } = found.response;
  const response = { clientDataJSON: text(clientDataJSON), authenticatorData: text(authenticatorData),
    signature: text(signature) };
  return { nonce, public_key: point, credential: { id: found.id, rawId: text(found.rawId), type: found.type, response,
    clientExtensionResults: {} } };
})"""
"""Has the passkey sign a sign-in, as our page does."""

_WORKER = b"""addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate") {
    event.respondWith(new Response("<!doctype html><p>FORGED", { headers: { "Content-Type": "text/html" } }));
  }
});"""
_ARM = b"""<!doctype html><p id="state">not yet</p><script>
navigator.serviceWorker.register("/evil-worker.js", { scope: "/" }).then(() => navigator.serviceWorker.ready)
  .then(() => { document.getElementById("state").textContent = "armed"; },
    (error) => { document.getElementById("state").textContent = String(error); });
</script>"""


class Planter(Resource):
    """Serves a page that leaves a service worker, and one that stays in the browser's cache."""

    isLeaf = True

    def render_GET(self, request: Request) -> bytes:
        """Answer."""
        if request.path == b"/runs":
            request.setHeader(b"Cache-Control", b"max-age=86400, immutable")
            return b"<!doctype html><p>FORGED"
        is_worker = request.path == b"/evil-worker.js"
        request.setHeader(b"Content-Type", b"text/javascript" if is_worker else b"text/html")
        return _WORKER if is_worker else _ARM


class NeighbourTests(PhonedTestCase):
    """Pages of others to which the browser gives the same passkey."""

    def setUp(self) -> Any:
        """Start it."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    def start_hashes(self) -> tuple[str, ...]:
        """The daemon's certificate, and one of another program that the phone knows as well."""
        self.neighbour = make_certificate(NAME, utc(self.reactor.seconds()))
        return (*super().start_hashes(), spki(self.neighbour.leaf.public_bytes(Encoding.DER)))

    async def relay(self, page: Page) -> int:
        """Have a page at our name and another port sign, and send that to the daemon; what the daemon answers."""
        status, told = await deferToThread(fetch, self.public, "/signin/nonce", verify=False, body={})
        self.assertEqual(status, 200, told)
        offered = json.loads(told)
        wanted = [offered["site"], "aileron.signin.v1", offered["instance"], offered["nonce"]]
        signed = await page.evaluate(f"{_GET}({json.dumps(wanted)})")
        self.assertTrue(signed["credential"]["id"], "the browser did not sign: this shows nothing")
        status, _ = await deferToThread(fetch, self.public, "/signin", verify=False, body=signed)
        return int(status)

    async def test_another_port(self) -> None:
        """At our name and another port the browser signs; the daemon alone refuses it, by the origin."""
        page, _ = await self.tab()
        await self.pair(page)
        await page.open(f"{self.public}/signin")
        await page.shows("Use the passkey")
        self.assertEqual(await self.relay(page), 200, "not even our own page signs: this shows nothing")
        reactor: Any = self.reactor
        site = _serve(reactor, self, free_port("neighbour"))
        await page.open(f"https://{NAME}:{free_port('neighbour')}/")
        await page.until("document.getElementById('state') !== null")
        self.assertEqual(await self.relay(page), 401)
        await site.stopListening()

    async def test_impostor(self) -> None:
        """What takes the daemon's port has no certificate that the phone takes: no page of it is shown."""
        page, _ = await self.tab()
        await page.open(f"{self.public}/signin")
        await page.shows("Use the passkey")
        await self.kill_daemon()
        reactor: Any = self.reactor
        site = _serve(reactor, self, free_port(), known=False)
        await page.call("Page.navigate", url=f"{self.public}/planted")
        await page.until("location.protocol === 'chrome-error:'")
        self.assertFalse(await page.evaluate("document.body.innerText.includes('not yet')"))
        await site.stopListening()


def _serve(reactor: Any, case: NeighbourTests, port: int, *, known: bool = True) -> Any:
    """Serve the planter by TLS, with a certificate that the phone takes, or with one of its own."""
    certificate = case.neighbour if known else make_certificate(NAME, utc(reactor.seconds()))
    options = ssl.PrivateCertificate.loadPEM(certificate.key_pem()).options()
    return reactor.listenSSL(port, Site(Planter()), options, interface="127.0.0.1")


class PlantedTests(ProxyTestCase):
    """A proxy that reaches the daemon by plain HTTP, and a program that takes the daemon's port meanwhile."""

    skip = why_not()
    tls: ClassVar[str] = "none"
    plain: ClassVar[bool] = True

    def setUp(self) -> Any:
        """Start it."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def test_worker(self) -> None:
        """The worker that was left shows its first view, and is gone a few seconds later."""
        page, _ = await self.tab()
        port = await self.impersonate(Planter(), None)
        await page.open(f"{self.public}/planted")
        await page.until("document.getElementById('state')?.textContent === 'armed'")
        await port.stopListening()
        await page.open("about:blank")
        await self.unlock()
        await page.open(f"{self.public}/signin")
        await page.shows("FORGED")
        # The browser asks for the worker's script a moment after a view has loaded, if no other view follows at once.
        await page.until("navigator.serviceWorker.getRegistrations().then((all) => all.length === 0)", 20)
        await page.open(f"{self.public}/signin")
        await page.shows("Use the passkey")
        left = await page.evaluate("navigator.serviceWorker.getRegistrations().then((all) => all.length)")
        self.assertEqual(left, 0)

    async def test_cached(self) -> None:
        """A page that was left in the browser's cache is shown without asking the daemon, until the next sign-in."""
        page, _ = await self.tab()
        await self.pair(page)
        await self.sign_in(page)
        port = await self.impersonate(Planter(), None)
        await page.open(f"{self.public}/runs")
        await page.shows("FORGED")
        await port.stopListening()
        await self.unlock()
        await page.open("about:blank")
        await page.until("location.href === 'about:blank'")
        await page.open(f"{self.public}/runs")
        await page.shows("FORGED")
        await self.sign_in(page)
        await page.open(f"{self.public}/runs")
        await page.until("document.querySelector('#main > [data-title]') !== null")
        self.assertFalse(await page.evaluate("document.body.innerText.includes('FORGED')"))

    async def test_told(self) -> None:
        """The doctor says what this way in allows."""
        found = await self.aileron("doctor", "--offline")
        self.assertIn("plain HTTP", found.stdout)
