"""A user with a public name for the inbox, and a phone whose browser finds that name on loopback."""

import base64
import hashlib
import json
import re
import socket
import ssl
from http.client import HTTPSConnection
from typing import Any, ClassVar
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.functional.browsed import BrowsedTestCase
from tests.functional.chromium import Chromium, Page
from tests.functional.operated import PASSPHRASE
from tests.functional.ports import LOOPBACK, free_port
from tests.functional.process import Running

NAME = "phone.example.org"
_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


def config(tls: str = "own", public: int | None = None) -> str:
    """The configuration of a public name.

    :param public: the port of the name, if it is not the daemon's own.
    """
    port = free_port()
    url = f"https://{NAME}:{public or port}"
    return f"phone:\n  public_url: {url}\n  listen: tcp:{port}:interface={LOOPBACK}\n  tls: {tls}\n"


def spki(certificate: bytes) -> str:
    """The hash by which Chromium is told to take a certificate as if it knew its authority."""
    key = x509.load_der_x509_certificate(certificate).public_key()
    data = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def fetch(url: str, path: str, *, verify: bool = True, body: Any = None, origin: str = "") -> tuple[int, str]:
    """Send a request to a public name on loopback as a program does, and return the status and the text.

    :param verify: False to take any certificate.
    """
    parts = urlsplit(url)
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = HTTPSConnection(LOOPBACK, parts.port, timeout=10, context=context)
    headers = {"Host": parts.netloc}
    if body is not None:
        headers |= {"Origin": origin or url, "Content-Type": "application/json"}
    try:
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")
    finally:
        connection.close()


class PhonedTestCase(BrowsedTestCase):
    """A daemon with a public name and a certificate, and a phone.

    :cvar tls: C{phone.tls}.
    """

    tls: ClassVar[str] = "own"
    phone: Chromium
    authority: str
    public: str

    async def begin(self) -> None:
        """Start the daemon, an agent and the phone's browser."""
        await self.furnish(self.text())
        self.url = str(self.home.discovery()["operator_url"])
        self.agent = await self.session("opencode")
        place = self.home.root / "ca.pem"
        await self.operator("phone", "certificate", "--output", str(place))
        self.authority = place.read_text()
        self.public = f"https://{NAME}:{self.public_port()}"
        self.phone = self.start_phone(*self.start_hashes())

    def start_hashes(self) -> tuple[str, ...]:
        """The certificates that the phone's browser takes as if it knew their authority."""
        return (spki(self.presented()),)

    def text(self) -> str:
        """The configuration."""
        return config(self.tls)

    def public_port(self) -> int:
        """The port of the name."""
        return free_port()

    def start_phone(self, *hashes: str) -> Chromium:
        """The phone's browser, which takes certificates with these keys."""
        profile = self.home.root / "phone"
        profile.mkdir()
        flags = [f"--host-resolver-rules=MAP *.example.org {LOOPBACK}"]
        if hashes:
            flags.append(f"--ignore-certificate-errors-spki-list={','.join(hashes)}")
        environment = self.home.environment()
        started = Chromium.start(self.reactor, profile, environment, flags=flags, notifies=self.notifies)
        self.finally_(started.stop)
        return started

    def presented(self, name: str = NAME, port: int | None = None) -> bytes:
        """The certificate that the listener presents, which the authority vouches for: a handshake as a browser's."""
        context = ssl.create_default_context(cadata=self.authority)
        plain = socket.create_connection((LOOPBACK, port or free_port()), 10)
        with plain, context.wrap_socket(plain, server_hostname=name) as secured:
            found = secured.getpeercert(binary_form=True)
        assert found is not None
        return found

    async def tab(self) -> tuple[Page, str]:
        """A tab of the phone, narrow and touched, with an authenticator; and the authenticator's id."""
        page = await self.phone.page()
        await page.look(width=390, height=800)
        await page.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=1)
        await page.call("WebAuthn.enable")
        made = await page.call("WebAuthn.addVirtualAuthenticator", options=_AUTHENTICATOR)
        return page, str(made["authenticatorId"])

    async def begin_pairing(self, name: str = "Mine") -> tuple[Running, str]:
        """``aileron phone pair`` in a terminal, and the address that it shows."""
        running = self.on_terminal("phone", "pair", "--name", name)
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        shown = await running.expect(rf"{re.escape(self.public)}/pair#[\w-]+")
        return running, str(shown[0])

    async def pair(self, page: Page, name: str = "Mine") -> None:
        """Pair the phone."""
        running, address = await self.begin_pairing(name)
        await page.open(address)
        await page.tap("#go")
        await page.shows("Type these two words")
        await self.keep(page, "phone-words")
        await running.expect("The two words that the phone shows: ")
        running.send(await page.text("#words"))
        self.assertEqual((await running.finish(30)).exit_code, 0)
        await page.shows("This phone is paired.")

    async def sign_in(self, page: Page) -> None:
        """Sign in with the passkey."""
        await page.open(f"{self.public}/signin")
        await page.tap("#go:not(:disabled)")
        await page.until("document.querySelector('#main > [data-title]') !== null")

    async def verify(self, page: Page, authenticator: str, verified: bool) -> None:
        """Let the person be the one whose face it is, or not."""
        await page.call("WebAuthn.setUserVerified", authenticatorId=authenticator, isUserVerified=verified)
