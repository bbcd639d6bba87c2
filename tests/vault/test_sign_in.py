"""A browser that a passkey lets in: by exactly its code and key, and no longer once somebody else brings the code."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from aileron.model.errors import Conflict, Forbidden, Unauthorized
from aileron.model.sessions import HandOverState, NewPasskeyPage, OperatorSession, SignedRequest, SignIn
from aileron.testing import SigningBrowser, SoftwareAuthenticator

from .test_approvers import RUN, ApproversCase


class SignInTests(ApproversCase):
    """A terminal that hands a login over, and a person with a passkey."""

    def setUp(self) -> None:
        """Hand a login over."""
        super().setUp()
        self.token, self.login = self.operators.log_in()
        self.code = self.operators.hand_over(self.token)
        self.browser = self.operators.waiting_browser(self.code)

    def request(self, browser: SigningBrowser | None = None) -> SignedRequest:
        """What a waiting page signs."""
        return (browser or self.browser).sign_request("POST", "/handover/passkey", b"{}")

    def sign_in(self, browser: SigningBrowser | None = None) -> SignIn:
        """What is to be signed for a browser."""
        return self.operators.signing_in(self.request(browser))

    def answer(self, sign_in: SignIn, **changes: Any) -> tuple[str, Any]:
        """What the person's passkey, changed so, answers for that."""
        nonce, options = self.approvers.ask_sign_in(sign_in)
        return nonce, (evolve(self.person, **changes) if changes else self.person).get(options)

    def let_in(self) -> OperatorSession:
        """The browser, let in by one touch."""
        sign_in = self.sign_in()
        self.assertEqual(self.approvers.check_sign_in(sign_in, *self.answer(sign_in)), self.passkeys.passkeys()[0].id)
        return self.operators.confirm_touched(sign_in)

    def test_whole(self) -> None:
        """One touch, and no words: it decides, its key signs, and the terminal is told."""
        session = self.let_in()
        self.assertEqual((session.browser, session.decides), (True, True))
        self.assertIs(self.operators.handed_over(self.token), HandOverState.CONFIRMED)
        self.assertIsNotNone(self.operators.by_browser(self.browser.sign_request("GET", "/")))
        self.assertIsNotNone(self.operators.key_of(session.id))

    def test_names(self) -> None:
        """What is signed names this code and this page's key: an answer for another one is refused."""
        mine = self.sign_in()
        token, _login = self.operators.log_in()
        other = self.sign_in(self.operators.waiting_browser(self.operators.hand_over(token)))
        self.assertNotEqual((mine.code, mine.public_key), (other.code, other.public_key))
        for changed in (other, evolve(mine, code=other.code), evolve(mine, public_key=other.public_key)):
            self.assertRaises(Forbidden, self.approvers.check_sign_in, mine, *self.answer(changed))
        self.assertRaises(Unauthorized, self.operators.confirm_touched, evolve(mine, public_key=other.public_key))

    def test_stale(self) -> None:
        """An answer is for a minute, once, and to a challenge of the daemon's own; and no decision is one."""
        sign_in = self.sign_in()
        nonce, answer = self.answer(sign_in)
        self.approvers.check_sign_in(sign_in, nonce, answer)
        self.assertRaises(Forbidden, self.approvers.check_sign_in, sign_in, nonce, answer)
        nonce, answer = self.answer(sign_in)
        self.clock.advance(60)
        self.assertRaises(Forbidden, self.approvers.check_sign_in, sign_in, nonce, answer)
        _instance, nonce, _options = self.approvers.offer()
        _nonce, answer = self.answer(sign_in)
        self.assertRaises(Forbidden, self.approvers.check_sign_in, sign_in, nonce, answer)
        decided = self.touched((RUN, self.yes))
        self.refused(evolve(self.yes, assertion=evolve(decided, credential=answer)))

    def test_flood(self) -> None:
        """Answers that are not valid take no place among the used nonces, so that they keep nobody from deciding."""
        sign_in = self.sign_in()
        nonce, answer = self.answer(sign_in)
        self.assertRaises(Forbidden, self.approvers.check_sign_in, sign_in, nonce, {**answer, "id": "other"})
        self.approvers.check_sign_in(sign_in, nonce, answer)

    def test_unsound(self) -> None:
        """At a neighbouring name or port, unverified, embedded, of a copy, or of a passkey that is none: refused."""
        sign_in = self.sign_in()
        for changes in (
            {"origin": "http://localhost:7002"},
            {"origin": "http://x.localhost:7001"},
            {"verifies": False},
            {"more": {"crossOrigin": True}},
            {"synced": True},
            {"id": b"other"},
        ):
            self.assertRaises(Forbidden, self.approvers.check_sign_in, sign_in, *self.answer(sign_in, **changes))

    def test_twice(self) -> None:
        """Whoever brings the code a second time ends what the passkey let in, and is told so."""
        session = self.let_in()
        refused = self.assertRaises(Conflict, self.operators.redeem, self.code)
        self.assertIn("used twice", refused.message)
        self.assertNotIn(session.id, [each.id for each in self.operators.list()])
        self.assertIsNone(self.operators.by_browser(self.browser.sign_request("GET", "/")))
        self.assertIs(self.operators.handed_over(self.token), HandOverState.TWICE)
        self.assertRaises(Unauthorized, self.operators.redeem, self.code)

    def test_twice_before(self) -> None:
        """A code that was brought twice before the touch lets nobody in."""
        sign_in = self.sign_in()
        self.assertRaises(Conflict, self.operators.redeem, self.code)
        self.assertRaises(Unauthorized, self.operators.confirm_touched, sign_in)
        self.assertRaises(Unauthorized, self.sign_in)

    def test_words(self) -> None:
        """The words work as before; what they confirmed is not touched any more."""
        sign_in = self.sign_in()
        self.operators.confirm(self.token, self.operators.words_of(self.browser))
        self.assertRaises(Unauthorized, self.operators.confirm_touched, sign_in)
        self.assertRaises(Unauthorized, self.operators.redeem, self.code)

    def test_late(self) -> None:
        """After two minutes, once the terminal's login has ended, or by a request sent twice, nothing is confirmed."""
        asked, sign_in = self.request(), self.sign_in()
        self.operators.signing_in(asked)
        self.assertRaises(Unauthorized, self.operators.signing_in, asked)
        self.operators.log_out(self.login.id)
        self.assertRaises(Unauthorized, self.sign_in)
        self.assertRaises(Unauthorized, self.operators.confirm_touched, sign_in)
        self.clock.advance(120)
        self.assertRaises(Unauthorized, self.operators.confirm_touched, sign_in)

    def test_raised(self) -> None:
        """A browser whose login only reads decides again by one touch, with its own key."""
        browser, before = self.operators.open_browser()
        token, _login = self.operators.log_in()
        cookie, page_key, _maker = self.operators.redeem(self.operators.hand_over(token))
        self.operators.register_again(cookie, page_key, browser.sign_request("POST", "/handover/key"))
        sign_in = self.sign_in(evolve(browser, cookie=cookie))
        self.approvers.check_sign_in(sign_in, *self.answer(sign_in))
        self.assertEqual(self.operators.confirm_touched(sign_in).id, before.id)


class NewPasskeyTests(ApproversCase):
    """A terminal that adds a passkey, whose page makes it before its words are typed."""

    def setUp(self) -> None:
        """Hand a login over to a page that makes one."""
        super().setUp()
        self.token, self.login = self.operators.log_in()
        self.browser = self.operators.waiting_browser(self.operators.hand_over(self.token, adds_passkey=True))
        self.other = SoftwareAuthenticator(self.person.origin, id=b"credential-2")

    def page(self, browser: SigningBrowser | None = None) -> NewPasskeyPage:
        """What the page that signed a request may do."""
        return self.operators.adding_passkey(
            (browser or self.browser).sign_request("POST", "/handover/new-passkey", b"{}")
        )

    def propose(self) -> str:
        """Make a passkey on the page; its words."""
        words = self.page().words
        self.passkeys.propose("Other", self.other.create(self.passkeys.offer()), words)
        return words

    def test_whole(self) -> None:
        """The two words that the page shows anyway let it in, and then add the passkey. They are typed once."""
        self.assertFalse(self.passkeys.is_proposed())
        words = self.propose()
        self.assertTrue(self.passkeys.is_proposed())
        self.assertEqual((words, self.page().login), (self.operators.words_of(self.browser), self.login.id))
        self.assertTrue(self.operators.confirm(self.token, words).decides)
        self.assertEqual(self.passkeys.confirm(words).name, "Other")
        self.assertFalse(self.passkeys.is_proposed())

    def test_plain(self) -> None:
        """The page of another hand-over makes none."""
        token, _login = self.operators.log_in()
        plain = self.operators.waiting_browser(self.operators.hand_over(token))
        self.assertRaises(Unauthorized, self.page, plain)

    def test_strangers(self) -> None:
        """Who has the cookie without the page's key makes none, and nobody does after the words or their time."""
        thief = SigningBrowser.generate(self.browser.cookie, self.clock.seconds).with_instance(self.browser.instance)
        self.assertRaises(Unauthorized, self.page, thief)
        self.operators.confirm(self.token, self.propose())
        self.assertRaises(Unauthorized, self.page)
        browser = self.operators.waiting_browser(self.operators.hand_over(self.token, adds_passkey=True))
        self.clock.advance(120)
        self.assertRaises(Unauthorized, self.page, browser)

    def test_other_words(self) -> None:
        """Words of another page, or wrong ones, neither add the passkey nor leave it proposed."""
        words = self.propose()
        self.assertRaises(Forbidden, self.operators.confirm, self.token, "other words")
        self.assertRaises(Conflict, self.operators.confirm, self.token, words)
        self.assertRaises(Forbidden, self.passkeys.confirm, "other words")
        self.assertRaises(Conflict, self.passkeys.confirm, words)
        self.assertEqual(len(self.passkeys.passkeys()), 1)

    def test_lapse(self) -> None:
        """A proposal waits for two minutes."""
        self.propose()
        self.clock.advance(120)
        self.assertFalse(self.passkeys.is_proposed())
