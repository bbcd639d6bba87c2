"""A lapsed login that a passkey lets decide again, and every touch that is for something else."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from aileron.model.errors import Conflict, Forbidden, VaultLocked
from aileron.model.sessions import LapsedLogin
from aileron.model.signing import write_raise, write_sign_in, write_statement
from aileron.testing import SigningBrowser, SoftwareAuthenticator

from .test_approvers import LIFE, RUN, ApproversCase

_HALF_HOUR = 30 * 60.0


class RaiseTests(ApproversCase):
    """A browser that may only watch, and a person with a passkey."""

    def setUp(self) -> None:
        """Let a login lapse."""
        super().setUp()
        self.browser, self.login = self.operators.open_browser()
        self.clock.advance(_HALF_HOUR)
        self.lapsed = self.operators.find_lapsed(self.login.id)

    def answer(self, lapsed: LapsedLogin | None = None, **changes: Any) -> tuple[str, Any]:
        """What the person's passkey, changed so, answers for a login."""
        nonce, options = self.approvers.ask_raise(lapsed or self.lapsed)
        return nonce, (evolve(self.person, **changes) if changes else self.person).get(options)

    def check_refused(self, nonce: str, answer: Any, lapsed: LapsedLogin | None = None) -> None:
        """An answer raises nothing."""
        self.assertRaises(Forbidden, self.approvers.check_raise, lapsed or self.lapsed, nonce, answer)
        self.assertFalse(self.decides(self.browser))

    def decides(self, browser: SigningBrowser) -> bool:
        """Whether a browser that asks for something may decide."""
        session = self.operators.by_browser(browser.sign_request("GET", "/v1/runs"), renew=False)
        assert session is not None
        return session.decides

    def test_whole(self) -> None:
        """One touch lets the same login decide as long as a new one, with its own key, and no code or words."""
        self.assertEqual(self.approvers.check_raise(self.lapsed, *self.answer()), self.passkeys.passkeys()[0].id)
        raised = self.operators.raise_touched(self.lapsed)
        self.assertEqual((raised.id, raised.decides, raised.proved_at), (self.login.id, True, self.login.proved_at))
        self.assertEqual((raised.ends_at - raised.used_at).total_seconds(), 12 * 60 * 60)
        self.assertEqual((raised.expires_at - raised.used_at).total_seconds(), _HALF_HOUR)
        self.assertTrue(self.decides(self.browser))
        self.assertIsNotNone(self.operators.key_of(self.login.id))

    def test_lapses_again(self) -> None:
        """It lapses as any login does, is reported each time, and can be raised again."""
        reported: list[str] = []
        self.operators.report_lapses(lambda session: reported.append(session.id))
        for _ in range(2):
            self.approvers.check_raise(self.lapsed, *self.answer())
            self.operators.raise_touched(self.lapsed)
            self.clock.advance(_HALF_HOUR)
            self.assertFalse(self.decides(self.browser))
        self.assertEqual(reported, [self.login.id] * 2)

    def test_signed(self) -> None:
        """What is signed names the daemon's life, the nonce, the login and its key, under a tag of its own."""
        text = write_raise(LIFE, "n", "ops_1", "key")
        self.assertEqual(text, f'["aileron.raise.v1","{LIFE}","n",{{"key":"key","login":"ops_1"}}]')
        others = (write_sign_in(LIFE, "n", "ops_1", "key"), write_statement(LIFE, "n", [{"key": "key"}]))
        self.assertNotIn(text, others)

    def test_other_page(self) -> None:
        """An answer that was made for another login, or for another key, is refused."""
        _browser, other = self.operators.open_browser()
        self.clock.advance(_HALF_HOUR)
        stranger = self.operators.find_lapsed(other.id)
        for made_for in (
            stranger,
            evolve(self.lapsed, login=other.id),
            evolve(self.lapsed, public_key=stranger.public_key),
        ):
            self.check_refused(*self.answer(made_for))

    def test_other_key(self) -> None:
        """Of a login with another key than the touch was for, nothing is raised."""
        _browser, other = self.operators.open_browser()
        self.clock.advance(_HALF_HOUR)
        key = self.operators.find_lapsed(other.id).public_key
        self.assertRaises(Conflict, self.operators.raise_touched, evolve(self.lapsed, public_key=key))
        self.assertFalse(self.decides(self.browser))

    def test_stale(self) -> None:
        """An answer is for a minute, and to a nonce that this daemon made for that."""
        late = self.answer()
        self.clock.advance(60)
        self.check_refused(*late)
        (own, _), (another, _) = self.approvers.ask_sign_in(self.sign_in()), self.answer()
        for nonce in (own, self.approvers.make_nonce(), another[:-4] + "AAAA", ""):
            text = write_raise(LIFE, nonce, self.lapsed.login, self.lapsed.public_key)
            credential = self.answered(text, self.approvers.offer()[2]).credential
            self.check_refused(nonce, credential)

    def sign_in(self) -> Any:
        """What a page that waits for its words is let in by."""
        token, _login = self.operators.log_in()
        browser = self.operators.waiting_browser(self.operators.hand_over(token))
        return self.operators.signing_in(browser.sign_request("POST", "/handover/passkey", b"{}"))

    def test_replayed(self) -> None:
        """An answer counts once, also of a passkey that does not count its uses."""
        person = SoftwareAuthenticator(self.person.origin, id=b"credential-2")
        self.passkeys.confirm(self.passkeys.propose("Phone", person.create(self.passkeys.offer())))
        person.count = -1  # the next use tells 0, as of an authenticator that does not count
        nonce, options = self.approvers.ask_raise(self.lapsed)
        answer = person.get(options)
        self.approvers.check_raise(self.lapsed, nonce, answer)
        self.check_refused(nonce, answer)

    def test_unsound(self) -> None:
        """At a neighbouring name or port, unverified, embedded, of a copy, or of a passkey that is none: refused."""
        for changes in (
            {"origin": "http://localhost:7002"},
            {"origin": "http://x.localhost:7001"},
            {"verifies": False},
            {"more": {"crossOrigin": True}},
            {"synced": True},
            {"id": b"other"},
        ):
            self.check_refused(*self.answer(**changes))
        self.approvers.check_raise(self.lapsed, *self.answer())

    def test_removed(self) -> None:
        """A passkey that was removed raises nothing, also if it was asked before."""
        nonce, answer = self.answer()
        self.passkeys.remove(self.passkeys.passkeys()[0].id)
        self.check_refused(nonce, answer)
        self.assertRaises(Conflict, self.approvers.ask_raise, self.lapsed)

    def test_other_texts(self) -> None:
        """A signed sign-in or decision raises nothing, and a signed raise decides nothing."""
        nonce, options = self.approvers.ask_raise(self.lapsed)
        for text in (
            write_sign_in(LIFE, nonce, self.lapsed.login, self.lapsed.public_key),
            self.approvers.write(nonce, [{"key": self.lapsed.public_key, "login": self.lapsed.login}]),
        ):
            self.check_refused(nonce, self.answered(text, options).credential)
        decided = self.touched((RUN, self.yes))
        self.refused(evolve(self.yes, assertion=evolve(decided, credential=self.answer()[1])))

    def test_locked(self) -> None:
        """While the vault is locked nothing is raised, whatever was asked or answered before."""
        nonce, answer = self.answer()
        self.vault.lock()
        self.assertRaises(VaultLocked, self.operators.find_lapsed, self.login.id)
        self.assertRaises(VaultLocked, self.approvers.check_raise, self.lapsed, nonce, answer)
        self.assertRaises(VaultLocked, self.operators.raise_touched, self.lapsed)
        self.assertFalse(self.decides(self.browser))

    def test_ended(self) -> None:
        """A login that was revoked is raised by nothing."""
        self.approvers.check_raise(self.lapsed, *self.answer())
        self.operators.log_out(self.login.id)
        self.assertRaises(Conflict, self.operators.raise_touched, self.lapsed)
        self.assertRaises(Conflict, self.operators.find_lapsed, self.login.id)
        self.assertIsNone(self.operators.by_browser(self.browser.sign_request("GET", "/")))

    def test_not_lapsed(self) -> None:
        """Neither a login that decides nor a terminal's is raised, and none twice by one touch."""
        _browser, deciding = self.operators.open_browser()
        for session in (deciding.id, self.session, "ops_0"):
            self.assertRaises(Conflict, self.operators.find_lapsed, session)
        self.operators.raise_touched(self.lapsed)
        self.assertRaises(Conflict, self.operators.raise_touched, self.lapsed)

    def test_of_a_phone(self) -> None:
        """The login that a phone's passkey opened is raised there only."""
        page = SigningBrowser.generate("", self.clock.seconds)
        _cookie, session = self.operators.admit_passkey(page.public_key, "phone-1")
        self.clock.advance(_HALF_HOUR * 24)
        self.assertFalse(next(each for each in self.operators.list() if each.id == session.id).decides)
        self.assertRaises(Conflict, self.operators.find_lapsed, session.id)

    def test_restricted(self) -> None:
        """A login is restricted to reading at once, and reported so once. Others stay."""
        reported: list[str] = []
        self.operators.report_lapses(lambda session: reported.append(session.id))
        self.operators.raise_touched(self.lapsed)
        other, _session = self.operators.open_browser()
        for _ in range(2):
            self.operators.restrict(self.login.id)
        self.operators.restrict(self.session)
        self.operators.restrict("ops_0")
        self.assertEqual((self.decides(self.browser), self.decides(other), reported), (False, True, [self.login.id]))
