"""Signing in at the public name with a name and a passphrase, and by a link."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from zope.interface import implementer

from aileron.features.people._attempts import FREE, MOST_AT_ONCE
from aileron.features.phone.values import PhoneSettings, PhoneTls
from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable
from aileron.model.interfaces.store import IAudit
from aileron.model.people import Role
from aileron.model.queries import AuditQuery
from aileron.testing import SigningBrowser
from aileron.vault import KdfParameters
from tests.features.phone.case import COOKIE, PUBLIC

from .case import PASSPHRASE, PeopleCase, derive_fast


@implementer(IAudit)
@frozen
class _Full:
    """An audit log that takes no more events."""

    _audit: Any

    async def append(self, *events: Event) -> None:
        raise StoreUnavailable("full")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._audit, name)


class SignInTests(PeopleCase):
    """A name and a passphrase let a page in."""

    def enter_by(self, name: str = "alice", passphrase: str = PASSPHRASE) -> tuple[SigningBrowser, Any]:
        """Sign in, and return the page and the answer."""
        return self.enter("/signin/account", {"name": name, "passphrase": passphrase})

    def test_let_in(self) -> None:
        """The cookie is the host's own; the record names the person, and has the key that will sign decisions."""
        self.joined()
        page, heard = self.enter_by()
        self.assertEqual(heard.status, 200, heard.text)
        self.assertTrue(heard.headers["set-cookie"].startswith(f"{COOKIE}="))
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 200)
        [record, *_] = self.now(self.store.audit.list(AuditQuery(types=("operator.login",)))).items
        self.assertEqual(record.event.actor.person, "alice")
        self.assertEqual(record.event.payload["name"], "alice")
        self.assertIn("public_key", record.event.payload["key"])
        self.assertNotIn(PASSPHRASE, repr(record))

    def test_wrong(self) -> None:
        """A wrong name and a wrong passphrase are refused alike, and are on record."""
        self.joined()
        texts = {self.enter_by(*each)[1].text for each in (("alice", "wrong"), ("bob", PASSPHRASE), ("a.b", "x"))}
        self.assertEqual(texts, {"The name or the passphrase is wrong."})
        self.assertIn("operator.login_refused", self.events())

    def test_cookie_alone(self) -> None:
        """The cookie opens nothing without the signature of the page's key."""
        page = self.joined()
        plain = {"Cookie": f"{COOKIE}={page.cookie}"}
        self.assertEqual(self.send("GET", "/fragments/approvals", headers=plain).status, 401)

    def test_another_key(self) -> None:
        """Nor does it with the signature of another key."""
        page = self.joined()
        other = evolve(SigningBrowser.generate(page.cookie, self.clock.seconds), instance=page.instance)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=other).status, 401)

    def test_at_the_desk(self) -> None:
        """A person's login opens nothing at the desk's address."""
        page = self.joined(role=Role.ADMINISTRATOR)
        headers = page.headers("aileron_life", "GET", "/v1/action-approvals")
        self.assertEqual(self.operator.ask("GET", "/v1/action-approvals", headers=headers).status, 401)

    def test_again(self) -> None:
        """Signing in again in the same browser ends the login before."""
        first = self.joined()
        page = SigningBrowser.generate("", self.clock.seconds)
        body = {"name": "alice", "passphrase": PASSPHRASE, "public_key": page.public_key}
        self.send("POST", "/signin/account", body, headers={"Cookie": f"{COOKIE}={first.cookie}"})
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=first).status, 401)

    def test_unrecorded(self) -> None:
        """A login that cannot be recorded does not count."""
        self.joined()
        count = len(self.operators.list())
        self.build(audit=_Full(self.store.audit))
        self.site = self.running._make_site(self.deps)
        self.assertEqual(self.enter_by()[1].status, 503)
        self.assertEqual(len(self.operators.list()), count)

    def test_scanners(self) -> None:
        """Opening a link does nothing: no server gets the code, and it is still good."""
        code = self.add()
        for path in ("/join", f"/join?code={code}", "/signin/account"):
            for method in ("GET", "HEAD"):
                heard = self.send(method, path)
                self.assertEqual(heard.status, 200, path)
                self.assertEqual(heard.headers["cache-control"], "no-store")
                self.assertIn("frame-ancestors 'none'", heard.headers["content-security-policy"])
        self.assertEqual(self.enter("/join", {"code": code, "passphrase": PASSPHRASE})[1].status, 200)

    def test_malformed(self) -> None:
        """Bodies of another form are refused."""
        bodies: tuple[Any, ...] = ([], {"x": 1}, {"name": "alice"}, {"name": 1, "passphrase": 2, "public_key": 3}, "x")
        for path in ("/join", "/signin/account"):
            for body in (*bodies, {"code": "x" * 20_000, "passphrase": "", "public_key": ""}):
                self.assertEqual(self.send("POST", path, body).status, 400, (path, body))

    def test_bad_key(self) -> None:
        """A page without a valid key is not let in."""
        self.joined()
        body = {"name": "alice", "passphrase": PASSPHRASE, "public_key": "AAAA"}
        self.assertEqual(self.send("POST", "/signin/account", body).status, 400)

    def test_invisible(self) -> None:
        """The phone's page for signing in speaks of accounts only if there are any."""
        self.assertNotIn("/signin/account", self.send("GET", "/signin").text)
        self.add()
        self.assertIn("/signin/account", self.send("GET", "/signin").text)
        self.assertEqual(self.send("GET", "/static/people.js").status, 200)


class PlainTests(PeopleCase):
    """Something else ends TLS, so the daemon is reached by plain HTTP."""

    settings = PhoneSettings(PUBLIC, tls=PhoneTls.NONE)

    def test_refused(self) -> None:
        """No passphrase is accepted, neither a new one nor to sign in."""
        code = self.add()
        for path, body in (
            ("/join", {"code": code, "passphrase": PASSPHRASE}),
            ("/signin/account", {"name": "alice", "passphrase": PASSPHRASE}),
        ):
            self.assertEqual(self.enter(path, body)[1].status, 409)


class LimitTests(PeopleCase):
    """Somebody tries out passphrases."""

    def guess(self, name: str = "alice", passphrase: str = "wrong wrong wrong") -> int:
        """Try a passphrase, and return the status."""
        self.clock.advance(0.2)
        return self.enter("/signin/account", {"name": name, "passphrase": passphrase})[1].status

    def test_one_name(self) -> None:
        """After some attempts for a name each next one waits longer, with the right passphrase as well."""
        self.joined()
        self.assertEqual([self.guess() for _ in range(FREE)], [401] * FREE)
        self.assertEqual(self.guess(passphrase=PASSPHRASE), 429)
        self.assertEqual(self.guess("bob"), 401)
        allowed = 0
        for _ in range(60):
            self.clock.advance(60)
            allowed += self.guess() == 401
        self.assertGreaterEqual(allowed, 55)
        self.clock.advance(61)
        self.assertEqual(self.guess(passphrase=PASSPHRASE), 200)
        self.assertEqual(self.guess(passphrase=PASSPHRASE), 200)

    def test_strangers(self) -> None:
        """All together are slowed down, however many names they use."""
        statuses = [self.enter("/signin/account", {"name": f"n{at}", "passphrase": "x"})[1].status for at in range(60)]
        self.assertEqual((statuses[0], statuses[-1]), (401, 429))


class AtOnceTests(PeopleCase):
    """Many sign in at the same time."""

    def setUp(self) -> None:
        """Derive no key before the test says so."""
        super().setUp()
        self.held: list[Deferred[None]] = []

    async def derive(self, passphrase: str, parameters: KdfParameters) -> bytes:
        """Wait for the test."""
        waiting: Deferred[None] = Deferred()
        self.held.append(waiting)
        await waiting
        return await derive_fast(passphrase, parameters)

    def test_at_once(self) -> None:
        """Only so many wait for their key, and each attempt at the same time counts."""
        self.add()
        for at in range(MOST_AT_ONCE):
            self.attempts.begin(f"n{at}")
        page = SigningBrowser.generate("", self.clock.seconds)
        body = {"name": "alice", "passphrase": PASSPHRASE, "public_key": page.public_key}
        self.assertEqual(self.send("POST", "/signin/account", body).status, 429)
        self.assertEqual(self.held, [])
