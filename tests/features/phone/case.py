"""The public name over memory: a phone with a software authenticator, and a page that signs its requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from attrs import evolve, frozen
from treq.testing import StubTreq
from twisted.internet.defer import Deferred, succeed

from aileron.base.signatures import write_base64url
from aileron.features.core import Core
from aileron.features.phone._certificate_store import CertificateStore
from aileron.features.phone._pairing import Pairings
from aileron.features.phone._signing_in import signin_challenge
from aileron.features.phone.running import PhoneListener, RunningPhone
from aileron.features.phone.values import PhoneSettings
from aileron.testing import MemoryBindings, MemoryOperators, SigningBrowser, SoftwareAuthenticator
from aileron.vault import Approvers, Passkeys
from tests.api.case import ApiCase, running

PUBLIC = "https://phone.example.org"
SITE = "phone.example.org"
COOKIE = "__Host-aileron_life"


@frozen
class Heard:
    """An answer of the public name."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        """The answer's JSON."""
        return json.loads(self.text) if self.text.startswith("{") else self.text


class PhoneCase(ApiCase):
    """A daemon with a public name, of which no phone knows yet."""

    settings = PhoneSettings(PUBLIC)

    def setUp(self) -> None:
        """Build both sites and the one of the public name."""
        super().setUp()
        self.bindings = MemoryBindings(self.vault)
        self.passkeys = Passkeys(
            self.passkey_book, lambda: (MemoryOperators.ADDRESS,), self.clock, elsewhere=lambda: (PUBLIC,)
        )
        require_key = self.operators.require_key
        self.approvers = Approvers(self.passkeys, MemoryOperators.INSTANCE, require_key, self.clock)
        self.phone_passkeys = Passkeys(self.passkey_book, lambda: (PUBLIC,), self.clock, needs_room=True)
        self.pairings = Pairings(self.phone_passkeys, self.clock)
        store = CertificateStore(self.settings, self.bindings, self.clock)
        self.listener = PhoneListener(self.settings, store, self.vault)
        process = SimpleNamespace(reactor=self.clock, in_thread=self.in_thread)
        core = cast("Core", SimpleNamespace(vault=self.vault, process=process))
        self.running = RunningPhone(core, self.settings, self.phone_passkeys, self.pairings, store, self.listener)
        self.build(
            passkeys=self.passkeys, approvers=self.approvers, bindings=self.bindings, features=running(self.running)
        )
        self.site = self.running._make_site(self.deps)
        self.treq: Any = StubTreq(self.site.resource)
        self.person = SoftwareAuthenticator(PUBLIC, SITE, id=b"phone-1", synced=True)

    def in_thread(self, at_once: int = 1) -> Callable[..., Deferred[Any]]:
        """Call in this thread."""
        return lambda work, *args: succeed(work(*args))

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        browser: SigningBrowser | None = None,
        cookie: str = COOKIE,
        headers: Mapping[str, str] | None = None,
    ) -> Heard:
        """Send a request to the public name, and return the answer."""
        data = None if body is None else json.dumps(body).encode()
        fields = {} if body is None else {"Content-Type": "application/json"}
        if browser is not None:
            fields |= browser.headers(cookie, method, path, data or b"")
        sent = self.treq.request(method, PUBLIC + path, headers={**fields, **(headers or {})}, data=data)
        self.treq.flush()
        return self.successResultOf(Deferred.fromCoroutine(self._hear(sent)))

    async def _hear(self, sent: Any) -> Heard:
        response = await sent
        told = {name.decode().lower(): values[-1].decode() for name, values in response.headers.getAllRawHeaders()}
        return Heard(response.code, (await self.treq.content(response)).decode("utf-8", "replace"), told)

    def add_phone(self, person: SoftwareAuthenticator | None = None, name: str = "Phone") -> None:
        """Register a phone's passkey."""
        found = self.person if person is None else person
        self.phone_passkeys.confirm(self.phone_passkeys.propose(name, found.create(self.phone_passkeys.offer())))

    def answer_to(self, nonce: str, page: SigningBrowser, person: SoftwareAuthenticator | None = None) -> Any:
        """What the phone signs to let a page in."""
        challenge = signin_challenge("life", nonce, page.public_key)
        return (person or self.person).get({"challenge": write_base64url(challenge)})

    def sign_in(
        self, person: SoftwareAuthenticator | None = None, before: SigningBrowser | None = None
    ) -> SigningBrowser:
        """Sign in, and return the page."""
        page = SigningBrowser.generate("", self.clock.seconds)
        nonce = self.send("POST", "/signin/nonce", {}).json["nonce"]
        body = {"nonce": nonce, "public_key": page.public_key, "credential": self.answer_to(nonce, page, person)}
        headers = {} if before is None else {"Cookie": f"{COOKIE}={before.cookie}"}
        heard = self.send("POST", "/signin", body, headers=headers)
        self.assertEqual(heard.status, 200, heard.text)
        value = heard.headers["set-cookie"].partition(";")[0].partition("=")[2]
        # The operators of these tests have another instance than the daemon.
        return evolve(page.with_instance(MemoryOperators.INSTANCE), cookie=value)
