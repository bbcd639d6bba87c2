"""Letting a browser in: one code, one key, two words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from aileron.model.errors import Conflict, Forbidden, InvalidRequest, Unauthorized
from aileron.model.sessions import HandOverState
from aileron.testing import SigningBrowser

from .operators import ASKED, STATE, OperatorsCase


class HandOverTests(OperatorsCase):
    """What a login hands over, to whom, and for how long."""

    def test_browser(self) -> None:
        """A code, a key and two words make one browser session; only the cookie with the key's signature is known."""
        operators = self.make_operators()
        token, login = self.log_in(operators)
        self.assertIsNone(operators.handed_over(token))
        code = operators.hand_over(token)
        self.assertIs(operators.handed_over(token), HandOverState.MADE)
        cookie, page_key, maker = operators.redeem(code)
        self.assertEqual(maker.id, login.id)
        self.assertIs(operators.handed_over(token), HandOverState.OPENED)
        browser = self.registered(operators, cookie, page_key)
        session = operators.confirm(token, self.words(operators, browser))
        self.assertTrue(session.browser)
        self.assertIs(operators.handed_over(token), HandOverState.CONFIRMED)
        self.assertEqual(self.known(operators, browser), session)
        for proof in ("", cookie, page_key, browser.sign_request(*STATE).proof):
            self.assertIsNone(operators.by_browser(evolve(browser.sign_request(*ASKED), proof=proof)))
        for other in ("", page_key, token):
            self.assertIsNone(self.known(operators, evolve(browser, cookie=other)))
        self.assertIsNone(operators.by_token(cookie))

    def test_key_once(self) -> None:
        """A page tells one key, once; nobody else's cookie or page key tells one, and what is no key is refused."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        cookie, page_key, _maker = operators.redeem(operators.hand_over(token))
        key = SigningBrowser.generate(cookie, self.clock.seconds).public_key
        for pair in ((cookie, ""), ("", page_key), (page_key, cookie), (cookie, token), ("", "")):
            self.assertRaises(Unauthorized, operators.register, *pair, key)
        for wrong in ("", key[:-1], key + "A", "C" + key[1:], "A" * 87, "\u00e9" * 87):
            self.assertRaises(InvalidRequest, operators.register, cookie, page_key, wrong)
        self.assertTrue(operators.register(cookie, page_key, key))
        self.assertRaises(Unauthorized, operators.register, cookie, page_key, key)

    def test_no_words_without_a_key(self) -> None:
        """A page that has told no key is shown no words, and none confirm it; nothing is spent by trying."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        cookie, page_key, _maker = operators.redeem(operators.hand_over(token))
        self.assertIsNone(operators.entering(SigningBrowser.generate(cookie, self.clock.seconds).sign_request(*STATE)))
        self.assertRaises(Conflict, operators.confirm, token, "any words")
        browser = self.registered(operators, cookie, page_key)
        operators.confirm(token, self.words(operators, browser))
        self.assertIsNotNone(self.known(operators, browser))

    def test_signed_once(self) -> None:
        """What was signed holds once, for what it was signed for, by that session's key, for half a minute."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        (browser, words), (other, _) = (
            self.opened(operators, token),
            (SigningBrowser.generate("x", self.clock.seconds), 0),
        )
        operators.confirm(token, words)
        once = browser.sign_request("POST", "/v1/pause", b"{}")
        self.assertIsNotNone(operators.by_browser(once))
        self.assertIsNone(operators.by_browser(once))
        signed = browser.sign_request("POST", "/v1/pause", b"{}")
        changes: tuple[dict[str, Any], ...] = (
            {"method": "DELETE"},
            {"target": "/v1/pause?all=1"},
            {"target": "/v1/resume"},
            {"body_digest": bytes(32)},
        )
        for changed in changes:
            self.assertIsNone(operators.by_browser(evolve(signed, **changed)), changed)
        for wrong in (browser.with_instance("another life"), evolve(browser, key=other.key)):
            self.assertIsNone(self.known(operators, wrong))
        self.clock.advance(31)
        self.assertIsNone(operators.by_browser(signed))
        self.assertIsNotNone(self.known(operators, browser))

    def test_nobody_before_the_words(self) -> None:
        """Until the words are there a browser is nobody: no session is listed, and its key tells only its words."""
        operators, token, browser, words = self.begun()
        self.assertIsNone(self.known(operators, browser))
        self.assertEqual([each.browser for each in operators.list()], [False])
        for cookie in ("", token, "x" * 43):
            self.assertIsNone(operators.entering(evolve(browser, cookie=cookie).sign_request(*STATE)))
        self.assertIsNone(operators.entering(evolve(browser.sign_request(*STATE), target="/")))
        self.assertNotIn(words, repr(operators.entering(browser.sign_request(*STATE))))

    def test_words(self) -> None:
        """Two words, others each time."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        seen = {self.opened(operators, token)[1] for _ in range(20)}
        self.assertGreater(len(seen), 18)
        for words in seen:
            self.assertRegex(words, r"^[a-z]+ [a-z]+$")

    def test_words_as_typed(self) -> None:
        """Neither case nor spacing of what is typed matters."""
        operators, token, browser, words = self.begun()
        operators.confirm(token, "  " + words.upper().replace(" ", " \t "))
        self.assertIsNotNone(self.known(operators, browser))

    def test_wrong_words(self) -> None:
        """Wrong words end it at once: the right ones come too late."""
        for wrong in ("", " ", "not these", "\ud800", "ä"):
            operators = self.make_operators()
            token, _login = self.log_in(operators)
            browser, words = self.opened(operators, token)
            self.assertRaises(Forbidden, operators.confirm, token, wrong)
            self.assertIs(operators.handed_over(token), HandOverState.WRONG)
            self.assertRaises(Conflict, operators.confirm, token, words)
            self.assertIsNone(self.known(operators, browser))
            entering = operators.entering(browser.sign_request(*STATE))
            assert entering is not None
            self.assertEqual((entering.state, entering.words), (HandOverState.WRONG, ""))

    def test_half_of_the_words(self) -> None:
        """One of the words, or more than both, is wrong."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        for change in (lambda words: words.split()[0], lambda words: f"{words} {words}", lambda words: words[:-1]):
            words = self.opened(operators, token)[1]
            self.assertRaises(Forbidden, operators.confirm, token, change(words))

    def test_words_of_another(self) -> None:
        """The words of one login's browser confirm nothing of another's."""
        operators = self.make_operators()
        (token, _), (other, _) = self.log_in(operators), self.log_in(operators)
        browser, words = self.opened(operators, token)
        self.assertRaises(Conflict, operators.confirm, other, words)
        self.assertRaises(Unauthorized, operators.confirm, "ail_o_", words)
        self.assertIsNone(self.known(operators, browser))

    def test_opened_twice(self) -> None:
        """A code that is used twice lets nobody in, not even the first user; a third use is like any unknown code."""
        operators = self.make_operators()
        token, login = self.log_in(operators)
        code = operators.hand_over(token)
        cookie, page_key, _maker = operators.redeem(code)
        browser = self.registered(operators, cookie, page_key)
        words = self.words(operators, browser)
        refusal = self.assertRaises(Conflict, operators.redeem, code)
        self.assertEqual(refusal.details["login"], login.id)
        self.assertIs(operators.handed_over(token), HandOverState.TWICE)
        self.assertRaises(Conflict, operators.confirm, token, words)
        self.assertIsNone(self.known(operators, browser))
        self.assertRaises(Unauthorized, operators.redeem, code)

    def test_used_after_the_words(self) -> None:
        """A code that somebody tries after all is done is spent, and the browser stays."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        code = operators.hand_over(token)
        cookie, page_key, _maker = operators.redeem(code)
        browser = self.registered(operators, cookie, page_key)
        words = self.words(operators, browser)
        operators.confirm(token, words)
        self.assertRaises(Unauthorized, operators.redeem, code)
        self.assertRaises(Conflict, operators.confirm, token, words)
        self.assertIsNotNone(self.known(operators, browser))

    def test_one_at_a_time(self) -> None:
        """A login that hands over anew has no other browser wait."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        unused = operators.hand_over(token)
        browser, words = self.opened(operators, token)
        self.assertRaises(Unauthorized, operators.redeem, unused)
        operators.hand_over(token)
        self.assertIsNone(operators.entering(browser.sign_request(*STATE)))
        self.assertRaises(Conflict, operators.confirm, token, words)

    def test_code_late(self) -> None:
        """A code lives less than 60 seconds."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        code = operators.hand_over(token)
        self.clock.advance(60)
        self.assertIs(operators.handed_over(token), HandOverState.LATE)
        self.assertRaises(Unauthorized, operators.redeem, code)

    def test_typed_code(self) -> None:
        """A code to type is five groups of four letters, others each time, and lives less than 120 seconds."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        seen = {operators.hand_over(token, True) for _ in range(20)}
        self.assertEqual(len(seen), 20)
        for code in seen:
            self.assertRegex(code, "^[BCDFGHJKLMNPQRSTVWXZ]{4}(-[BCDFGHJKLMNPQRSTVWXZ]{4}){4}$")
        self.assertGreater(len(set("".join(seen))), 18)
        for seconds, state in ((119, HandOverState.MADE), (120, HandOverState.LATE)):
            code = operators.hand_over(token, True)
            self.clock.advance(seconds)
            self.assertIs(operators.handed_over(token), state)
        self.assertRaises(Unauthorized, operators.redeem, code)

    def test_typed_code_as_typed(self) -> None:
        """Neither case nor what separates the groups matters, and in whatever form, it is one code: used once."""
        changes: tuple[Callable[[str], str], ...] = (
            str,
            str.lower,
            lambda code: code.replace("-", ""),
            lambda code: f" {code.replace('-', '  ')}\n",
            lambda code: code.replace("-", "\u2013"),
        )
        for first in changes:
            operators = self.make_operators()
            token, _login = self.log_in(operators)
            code = operators.hand_over(token, True)
            cookie, page_key, _maker = operators.redeem(first(code))
            browser = self.registered(operators, cookie, page_key)
            words = self.words(operators, browser)
            self.assertRaises(Conflict, operators.redeem, changes[-1](code))
            self.assertIs(operators.handed_over(token), HandOverState.TWICE)
            self.assertRaises(Conflict, operators.confirm, token, words)

    def test_other_codes(self) -> None:
        """Whoever tries other codes, however many, ends nothing: neither the code nor the browser that waits."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        code = operators.hand_over(token, True)
        others = ("", code[:-1], f"{code}B", code[::-1], code.replace("-", "!"), "BCDF-" * 4 + "GHJK", "\ud800")
        for other in others * 20:
            self.assertRaises(Unauthorized, operators.redeem, other)
        cookie, page_key, _maker = operators.redeem(code)
        browser = self.registered(operators, cookie, page_key)
        for other in others:
            self.assertRaises(Unauthorized, operators.redeem, other)
        operators.confirm(token, self.words(operators, browser))
        self.assertIsNotNone(self.known(operators, browser))

    def test_words_late(self) -> None:
        """The words may take less than 120 seconds."""
        operators, token, browser, words = self.begun()
        self.clock.advance(120)
        self.assertIs(operators.handed_over(token), HandOverState.LATE)
        self.assertRaises(Conflict, operators.confirm, token, words)
        self.assertIsNone(self.known(operators, browser))

    def test_code_of_the_logged_out(self) -> None:
        """Code and words are worth nothing once the login that began it has ended."""
        operators = self.make_operators()
        token, session = self.log_in(operators)
        code = operators.hand_over(token)
        other, other_session = self.log_in(operators)
        _browser, words = self.opened(operators, other)
        operators.log_out(session.id)
        operators.log_out(other_session.id)
        self.assertRaises(Unauthorized, operators.redeem, code)
        self.assertRaises(Unauthorized, operators.confirm, other, words)

    def test_browser_outlives_no_passphrase(self) -> None:
        """A browser decides no longer than the twelve hours of the login that it came from, and its session says so."""
        operators = self.make_operators()
        token, login = self.log_in(operators)
        for _ in range(35):
            self.clock.advance(20 * 60)
            operators.by_token(token)
        browser, words = self.opened(operators, token)
        self.assertEqual(operators.confirm(token, words).ends_at, login.ends_at)
        self.clock.advance(20 * 60 - 1)
        self.assertIsNotNone(self.known(operators, browser))
        self.clock.advance(1)
        self.assertFalse(self.decides(operators, browser))

    def test_looking_is_no_use(self) -> None:
        """What a page does by itself does not keep its session deciding: it only reads after 30 minutes."""
        operators, token, browser, words = self.begun()
        session = operators.confirm(token, words)
        for _ in range(29):
            self.clock.advance(60)
            self.assertEqual(self.known(operators, browser, renew=False), session)
        self.clock.advance(60)
        self.assertFalse(self.decides(operators, browser, renew=False))
        self.assertFalse(self.decides(operators, browser))


class AgainTests(OperatorsCase):
    """A browser whose login may only read has it decide again."""

    def setUp(self) -> None:
        """Let a browser in, and have half an hour go by."""
        super().setUp()
        self.operators, token, self.browser, words = self.begun()
        self.session = self.operators.confirm(token, words)
        self.clock.advance(30 * 60)
        self.assertFalse(self.decides(self.operators, self.browser))
        self.token, self.login = self.log_in(self.operators)

    def come(self) -> tuple[str, str]:
        """Return the cookie and page key of the page that a new code opens."""
        cookie, page_key, _maker = self.operators.redeem(self.operators.hand_over(self.token))
        return cookie, page_key

    def test_raised(self) -> None:
        """With its own key and the words of the new page, the same session decides, and its cookie stays."""
        cookie, page_key = self.come()
        self.operators.register_again(cookie, page_key, self.browser.sign_request("POST", "/handover/key"))
        page = evolve(self.browser, cookie=cookie)
        words = self.words(self.operators, page)
        self.assertFalse(self.decides(self.operators, self.browser), "before the words are typed")
        self.clock.advance(60)
        raised = self.operators.confirm(self.token, words)
        self.assertEqual((raised.id, raised.decides), (self.session.id, True))
        self.assertEqual((raised.ends_at, raised.started_at), (self.login.ends_at, self.session.started_at))
        self.assertGreater(raised.proved_at, self.session.proved_at)
        self.assertTrue(self.decides(self.operators, self.browser))
        entering = self.operators.entering(page.sign_request(*STATE))
        assert entering is not None
        self.assertEqual((entering.state, entering.cookie), (HandOverState.CONFIRMED, ""))
        self.assertIsNone(self.known(self.operators, page), "the page's own cookie opens nothing")
        self.assertEqual([each.id for each in self.operators.list() if each.browser], [self.session.id])

    def test_key(self) -> None:
        """The cookie of a login without its key, a key without its cookie, or a used signature, raise nothing."""
        cookie, page_key = self.come()
        used = self.browser.sign_request("POST", "/handover/key")
        self.operators.by_browser(used)
        stranger = SigningBrowser.generate(self.browser.cookie, self.clock.seconds).with_instance("instance-1")
        ask = ("POST", "/handover/key")
        for asked in (used, stranger.sign_request(*ask), evolve(self.browser, cookie=cookie).sign_request(*ask)):
            self.assertRaises(Unauthorized, self.operators.register_again, cookie, page_key, asked)
        for pair in ((cookie, ""), ("", page_key), (self.browser.cookie, page_key)):
            self.assertRaises(Unauthorized, self.operators.register_again, *pair, self.browser.sign_request(*ask))
        self.operators.register_again(cookie, page_key, self.browser.sign_request(*ask))
        self.assertRaises(
            Unauthorized, self.operators.register_again, cookie, page_key, self.browser.sign_request(*ask)
        )

    def test_wrong_words(self) -> None:
        """Wrong words raise nothing, and the login goes on reading."""
        cookie, page_key = self.come()
        self.operators.register_again(cookie, page_key, self.browser.sign_request("POST", "/handover/key"))
        self.assertRaises(Forbidden, self.operators.confirm, self.token, "not these")
        self.assertFalse(self.decides(self.operators, self.browser))

    def test_code_twice(self) -> None:
        """A code that is used again while the words are awaited raises nothing, and its words let nobody in."""
        code = self.operators.hand_over(self.token)
        cookie, page_key, _maker = self.operators.redeem(code)
        self.operators.register_again(cookie, page_key, self.browser.sign_request("POST", "/handover/key"))
        words = self.words(self.operators, evolve(self.browser, cookie=cookie))
        self.assertRaises(Conflict, self.operators.redeem, code)
        self.assertRaises(Conflict, self.operators.confirm, self.token, words)
        self.assertRaises(Unauthorized, self.operators.redeem, code)
        self.assertFalse(self.decides(self.operators, self.browser))

    def test_ended_meanwhile(self) -> None:
        """If the login was ended before the words were typed, the page begins a new one."""
        cookie, page_key = self.come()
        self.operators.register_again(cookie, page_key, self.browser.sign_request("POST", "/handover/key"))
        page = evolve(self.browser, cookie=cookie)
        words = self.words(self.operators, page)
        self.operators.log_out(self.session.id)
        self.assertNotEqual(self.operators.confirm(self.token, words).id, self.session.id)
        entering = self.operators.entering(page.sign_request(*STATE))
        assert entering is not None
        self.assertEqual(entering.cookie, cookie)
        self.assertIsNone(self.known(self.operators, self.browser))
        self.assertTrue(self.decides(self.operators, page))
