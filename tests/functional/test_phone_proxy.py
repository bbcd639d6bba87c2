"""The inbox on a phone behind the real nginx, as the guide sets it up: it checks the daemon's certificate."""

import re
from typing import Any, ClassVar

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from twisted.internet import ssl as tls
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.internet.threads import deferToThread
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from aileron.base.json import utc
from aileron.features.phone._certificates import Certificate, make_certificate
from tests.functional import nginx
from tests.functional.listings.reading import pages
from tests.functional.phoned import NAME, PhonedTestCase, config, fetch, spki
from tests.functional.ports import LOOPBACK, free_port
from tests.functional.process import Command
from tests.functional.reactor import Patience, until

_AROUND = """\
daemon off;
master_process off;
pid {directory}/pid;
error_log stderr;
events {{}}
http {{
access_log off;
client_body_temp_path {directory}/body;
proxy_temp_path {directory}/proxy;
fastcgi_temp_path {directory}/fastcgi;
uwsgi_temp_path {directory}/uwsgi;
scgi_temp_path {directory}/scgi;
{server}}}
"""


def why_not() -> str | None:
    """Why nginx cannot be tried here, or None."""
    try:
        nginx.program()
    except AssertionError as error:
        return str(error)
    return None


class Impostor(Resource):
    """What a program serves that has taken the daemon's port."""

    isLeaf = True

    def render(self, request: Request) -> bytes:
        """Answer everything."""
        return b"FORGED"


def key_pem(certificate: Certificate) -> bytes:
    """The private key in PEM."""
    return certificate.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class ProxyTestCase(PhonedTestCase):
    """The daemon behind nginx, which ends TLS with a certificate of the domain.

    :cvar plain: whether nginx reaches the daemon by plain HTTP, without checking who it is.
    """

    tls: ClassVar[str] = "proxy"
    plain: ClassVar[bool] = False

    def public_port(self) -> int:
        """The port of nginx."""
        return free_port("nginx")

    def text(self) -> str:
        """The configuration."""
        return config(self.tls, self.public_port())

    async def begin(self) -> None:
        """Start nginx too."""
        self.domain = make_certificate(NAME, utc(self.reactor.seconds()))
        await super().begin()
        running = self.start(self._nginx())
        await until(self.reactor, self._is_up, 30, f"nginx: {running!r}")

    def start_hashes(self) -> tuple[str, ...]:
        """The certificate that the phone takes: the domain's."""
        return (spki(self.domain.leaf.public_bytes(Encoding.DER)),)

    def _is_up(self) -> bool:
        try:
            return fetch(self.public, "/signin", verify=False)[0] > 0
        except OSError:
            return False

    def _nginx(self) -> Command:
        directory = self.home.root / "nginx"
        directory.mkdir()
        (directory / "chain.pem").write_bytes(self.domain.leaf.public_bytes(Encoding.PEM))
        (directory / "key.pem").write_bytes(key_pem(self.domain))
        (directory / "aileron-ca.pem").write_text(self.authority)
        server = re.findall(r"```nginx\n(.*?)```", (pages() / "phone.md").read_text(encoding="utf-8"), re.DOTALL)[0]
        daemon = f"{LOOPBACK}:{free_port()}"
        for shown, ours in (
            ("listen 443 ssl", f"listen {LOOPBACK}:{self.public_port()} ssl"),
            ("/etc/nginx/aileron.example.org.pem", f"{directory}/chain.pem"),
            ("/etc/nginx/aileron.example.org.key", f"{directory}/key.pem"),
            ("/etc/nginx/aileron-ca.pem", f"{directory}/aileron-ca.pem"),
            ("aileron.example.org", NAME),
            ("https://127.0.0.1:8443", f"{'http' if self.plain else 'https'}://{daemon}"),
        ):
            assert shown in server, shown
            server = server.replace(shown, ours)
        (directory / "nginx.conf").write_text(_AROUND.format(directory=directory, server=server))
        arguments = (nginx.program(), "-p", str(directory), "-e", "stderr", "-c", str(directory / "nginx.conf"))
        return Command(arguments=arguments, environment=self.home.environment(), directory=directory)

    async def impersonate(self, resource: Resource, certificate: Certificate | None) -> Any:
        """Kill the daemon, and serve at its port in its place; what stops that.

        :param certificate: the impostor's, or None for plain HTTP.
        """
        await self.kill_daemon()
        reactor: Any = self.reactor
        patience, site = Patience(self.reactor, 30), Site(resource)
        while True:
            try:
                if certificate is None:
                    return reactor.listenTCP(free_port(), site, interface=LOOPBACK)
                pem = certificate.leaf.public_bytes(Encoding.PEM) + key_pem(certificate)
                options = tls.PrivateCertificate.loadPEM(pem.decode()).options()
                return reactor.listenSSL(free_port(), site, options, interface=LOOPBACK)
            except CannotListenError as error:
                self.assertFalse(patience.is_over, error)
                await self.pause(0.05)


class PinnedTests(ProxyTestCase):
    """nginx as the guide sets it up."""

    skip = why_not()

    def setUp(self) -> Any:
        """Start it."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def test_decided(self) -> None:
        """A phone is paired, signs in and approves through the proxy."""
        page, _ = await self.tab()
        await self.pair(page)
        await self.sign_in(page)
        run_id = await self.ask()
        await page.open(f"{self.public}/approvals/{run_id}")
        await self.ready(page)
        await page.tap("#approve:not(:disabled)")
        await self.stands(page, "completed")

    async def test_impostor(self) -> None:
        """After the daemon was killed, what takes its port is answered 502, with any certificate of its own."""
        self.assertEqual((await deferToThread(fetch, self.public, "/signin", verify=False))[0], 200)
        forged = make_certificate(NAME, utc(self.reactor.seconds()))
        port = await self.impersonate(Impostor(), forged)
        status, text = await deferToThread(fetch, self.public, "/signin", verify=False)
        await port.stopListening()
        self.assertEqual((status, "FORGED" in text), (502, False))
