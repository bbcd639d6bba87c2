"""The operator's logins over a real vault, and the proofs they rest on."""

from __future__ import annotations

from datetime import timedelta

import attrs
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.model.errors import Forbidden, InvalidRequest, Unauthorized, VaultLocked
from aileron.model.sessions import OperatorSession, SignedRequest
from aileron.vault import Operators, keys
from aileron.vault.keys import LoginExchange, client_proof, daemon_proof

from .operators import OperatorsCase

EXCHANGE = LoginExchange("A" * 43, "B" * 43, "instance-1", "http://localhost:7001")


class OperatorsTests(OperatorsCase):
    """Who is logged in, by what proof, and for how long."""

    def test_daemon_proves_first(self) -> None:
        """The daemon's proof holds, and is new each time."""
        operators = self.make_operators()
        one, other = (operators.challenge(self.NONCE, self.ADDRESS) for _ in range(2))
        self.assertTrue(self.check_daemon(self.NONCE, *one))
        self.assertNotEqual(one, other)

    def test_login(self) -> None:
        """Who proves it gets a token that is known from then on, and listed without being shown."""
        operators = self.make_operators()
        token, session = self.log_in(operators)
        self.assertRegex(token, r"^ail_o_[A-Za-z0-9_-]{43}$")
        self.assertEqual(operators.by_token(token), session)
        self.assertEqual(operators.list(), (session,))
        self.assertNotIn(token[6:], repr((session, operators)))

    def test_wrong_proof(self) -> None:
        """The daemon's own proof, sent back, or any other proof is refused and spends the nonce."""
        operators = self.make_operators()
        nonce, echo = operators.challenge(self.NONCE, self.ADDRESS)
        self.assertRaises(Unauthorized, operators.login, nonce, echo)
        self.assertRaises(Unauthorized, operators.login, nonce, self.prove(self.NONCE, nonce))
        self.assertEqual(operators.list(), ())

    def test_nonce_once(self) -> None:
        """A proof works once."""
        operators = self.make_operators()
        nonce, _proof = operators.challenge(self.NONCE, self.ADDRESS)
        proof = self.prove(self.NONCE, nonce)
        operators.login(nonce, proof)
        self.assertRaises(Unauthorized, operators.login, nonce, proof)

    def test_nonce_late(self) -> None:
        """A nonce lives less than 60 seconds."""
        operators = self.make_operators()
        nonce, _proof = operators.challenge(self.NONCE, self.ADDRESS)
        self.clock.advance(60)
        self.assertRaises(Unauthorized, operators.login, nonce, self.prove(self.NONCE, nonce))

    def test_malformed_nonce(self) -> None:
        """A nonce is 16 to 64 bytes, written in one way."""
        operators = self.make_operators()
        for nonce in (
            "",
            "A" * 21,
            "A" * 20,
            "A" * 87,
            "=" * 43,
            "A" * 42 + "B",
            "+" * 43,
            "A" * 43 + "=",
            "\ud800" * 43,
        ):
            self.assertRaises(InvalidRequest, operators.challenge, nonce, self.ADDRESS)

    def test_foreign_address(self) -> None:
        """A client that believes to speak to another address gets no proof."""
        self.assertRaises(Forbidden, self.make_operators().challenge, self.NONCE, "http://localhost:7002")

    def test_unknown(self) -> None:
        """What nobody gave out opens nothing."""
        operators = self.make_operators()
        for wild in ("", "ail_o_", "ail_o_" + "A" * 43, "ä\ud800"):
            self.assertIsNone(operators.by_token(wild))
            asked = SignedRequest(wild, wild, "GET", "/", bytes(32))
            self.assertIsNone(operators.by_browser(asked))
            self.assertRaises(Unauthorized, operators.hand_over, wild)
            self.assertRaises(Unauthorized, operators.redeem, wild)
            self.assertIsNone(operators.entering(asked))
            self.assertRaises(Unauthorized, operators.register, wild, wild, wild)
            self.assertIsNone(operators.handed_over(wild))
            self.assertRaises(Unauthorized, operators.confirm, wild, wild)
            self.assertRaises(Unauthorized, operators.login, wild, wild)

    def test_idle(self) -> None:
        """A login ends 30 minutes after its last use, and says so."""
        operators = self.make_operators()
        token, session = self.log_in(operators)
        self.clock.advance(29 * 60)
        used = operators.by_token(token)
        assert used is not None
        self.assertEqual(used.expires_at - session.expires_at, timedelta(minutes=29))
        self.clock.advance(30 * 60)
        self.assertEqual(operators.list(), ())
        self.assertIsNone(operators.by_token(token))

    def test_absolute(self) -> None:
        """A login ends after 12 hours whatever its use."""
        operators = self.make_operators()
        token, _session = self.log_in(operators)
        for _ in range(12 * 3 - 1):
            self.clock.advance(20 * 60)
            self.assertIsNotNone(operators.by_token(token))
        self.clock.advance(20 * 60)
        self.assertIsNone(operators.by_token(token))

    def test_log_out(self) -> None:
        """Logging out ends that session alone, and twice is safe."""
        operators = self.make_operators()
        (token, session), (other, _) = self.log_in(operators), self.log_in(operators)
        operators.log_out(session.id)
        operators.log_out(session.id)
        self.assertIsNone(operators.by_token(token))
        self.assertIsNotNone(operators.by_token(other))

    def test_newest_first(self) -> None:
        """The list begins with the newest."""
        operators = self.make_operators()
        ids = []
        for _ in range(3):
            ids.append(self.log_in(operators)[1].id)
            self.clock.advance(1)
        self.assertEqual([each.id for each in operators.list()], ids[::-1])

    def test_locked(self) -> None:
        """Locking ends every terminal's session, challenge and code, and no new one begins."""
        operators = self.make_operators()
        token, _session = self.log_in(operators)
        other, _session = self.log_in(operators)
        browser, _words = self.opened(operators, other)
        code = operators.hand_over(token)
        nonce, _proof = operators.challenge(self.NONCE, self.ADDRESS)
        proof = self.prove(self.NONCE, nonce)
        self.vault.lock()
        self.assertIsNone(operators.entering(browser.sign_request("GET", "/handover/state")))
        self.assertIsNone(operators.by_token(token))
        self.assertEqual(operators.list(), ())
        self.assertRaises(Unauthorized, operators.redeem, code)
        self.assertRaises(Unauthorized, operators.login, nonce, proof)
        self.assertRaises(VaultLocked, operators.challenge, self.NONCE, self.ADDRESS)

    def test_locked_browser(self) -> None:
        """Locking lets a browser only read, for good: neither its use nor its time brings deciding back."""
        operators, token, browser, words = self.begun()
        session = operators.confirm(token, words)
        signed = browser.sign_request("GET", "/v1/runs")
        self.assertIsNotNone(operators.by_browser(signed))
        self.vault.lock()
        self.assertIsNone(operators.by_browser(signed), "what was signed before holds once")
        for _ in range(3):
            self.assertFalse(self.decides(operators, browser))
            self.clock.advance(5)
        (left,) = operators.list()
        self.assertEqual((left.id, left.decides), (session.id, False))
        self.assertLessEqual(left.ends_at, utc(self.clock.seconds()))

    def test_flood(self) -> None:
        """However many challenges are asked for, the newest works, and not all are kept."""
        operators = self.make_operators()
        first, _proof = operators.challenge(self.NONCE, self.ADDRESS)
        for _ in range(9000):
            last, _proof = operators.challenge(self.NONCE, self.ADDRESS)
        self.assertRaises(Unauthorized, operators.login, first, self.prove(self.NONCE, first))
        operators.login(last, self.prove(self.NONCE, last))

    def test_failures_slow(self) -> None:
        """The first failures cost nothing, the next ones more and more, never over 5 s, and a minute heals it."""
        operators = self.make_operators()
        waits = []
        for _ in range(40):
            waits.append(operators.delay_seconds())
            self.assertRaises(Unauthorized, operators.login, "", "")
        self.assertEqual(waits[:9], [0, 0, 0, 0.25, 0.5, 1, 2, 4, 5])
        self.assertEqual(set(waits[9:]), {5})
        self.clock.advance(60)
        self.assertEqual(operators.delay_seconds(), 0)

    def test_success_heals(self) -> None:
        """A correct proof logs in after any number of failures, and the next login need not wait."""
        operators = self.make_operators()
        for _ in range(40):
            self.assertRaises(Unauthorized, operators.login, "", "")
        self.log_in(operators)
        self.assertEqual(operators.delay_seconds(), 0)

    def test_started_locked(self) -> None:
        """A daemon that was started locked proves nothing to anyone."""
        operators = Operators(self.locked(), "instance-1", lambda: (self.ADDRESS,), self.clock)
        self.assertRaises(VaultLocked, operators.challenge, self.NONCE, self.ADDRESS)

    def test_flood_while_a_login_waits(self) -> None:
        """Challenges that come while a login is made to wait for others' failures do not push its own out."""
        operators = self.make_operators()
        nonce, _proof = operators.challenge(self.NONCE, self.ADDRESS)
        for _ in range(5000):  # more than the daemon answers in the five seconds that a login waits at most
            operators.challenge(self.NONCE, self.ADDRESS)
        exchange = LoginExchange(self.NONCE, nonce, "instance-1", self.ADDRESS)
        token, _session = operators.login(nonce, client_proof(self.vault.operator_key(), exchange))
        self.assertIsNotNone(operators.by_token(token))

    def test_stored_hashed(self) -> None:
        """No token, code, cookie or page key lies in the table, and words show in no repr."""
        operators = self.make_operators()
        token, _session = self.log_in(operators)
        code = operators.hand_over(token)
        cookie, page_key, _maker = operators.redeem(code)
        words = self.words(operators, self.registered(operators, cookie, page_key))
        kept = repr([vars(table) for table in (operators._logins, operators._hand_overs, operators._challenges)])
        for secret in (token, code, cookie, page_key, words):
            self.assertNotIn(secret, kept)


class ReadingTests(OperatorsCase):
    """A browser's login that may decide no more still reads."""

    def setUp(self) -> None:
        """Let a browser in, and hear of each lapse."""
        super().setUp()
        self.operators, self.token, self.browser, words = self.begun()
        self.lapses: list[OperatorSession] = []
        self.operators.report_lapses(self.lapses.append)
        self.session = self.operators.confirm(self.token, words)

    def test_use(self) -> None:
        """It reads as long as the daemon runs, and its use never lets it decide again."""
        self.clock.advance(30 * 60)
        for _ in range(100):
            self.assertFalse(self.decides(self.operators, self.browser))
            self.clock.advance(3600)
        self.operators.log_out(self.session.id)
        self.assertIsNone(self.known(self.operators, self.browser))

    def test_told(self) -> None:
        """A lapse is told when it comes, once: put off by each use, not by twelve hours of it."""
        for _ in range(12 * 3 - 1):
            self.clock.advance(20 * 60)
            self.assertTrue(self.decides(self.operators, self.browser))
        self.assertEqual(self.lapses, [])
        self.clock.advance(20 * 60)
        self.assertEqual([(each.id, each.decides) for each in self.lapses], [(self.session.id, False)])
        self.known(self.operators, self.browser)
        self.clock.advance(24 * 3600)
        self.assertEqual(len(self.lapses), 1)

    def test_told_idle(self) -> None:
        """Without use it lapses after half an hour, whether or not anything asks."""
        self.clock.advance(30 * 60 - 1)
        self.assertEqual(self.lapses, [])
        self.clock.advance(1)
        self.assertEqual(len(self.lapses), 1)

    def test_told_locked(self) -> None:
        """Locking tells it at once, and once."""
        self.vault.lock()
        self.assertEqual([each.id for each in self.lapses], [self.session.id])
        self.clock.advance(24 * 3600)
        self.assertEqual(len(self.lapses), 1)

    def test_clock_set_back(self) -> None:
        """What has lapsed decides no more, and not by its use either, where the clock is set back."""
        self.clock.advance(30 * 60)
        self.set_back()
        operators, token, browser, words = self.begun()
        operators.confirm(token, words)
        self.vault.lock()
        self.operators, self.browser = operators, browser
        self.set_back()

    def set_back(self) -> None:
        """Set the clock back to before the lapse, and use the login."""
        self.clock.rightNow -= 20 * 60
        for _ in range(2):
            self.assertFalse(self.decides(self.operators, self.browser))

    def test_not_told(self) -> None:
        """A terminal's login, and a browser's that was ended, lapse without a word."""
        self.log_in(self.operators)
        self.operators.log_out(self.session.id)
        self.clock.advance(24 * 3600)
        self.assertEqual(self.lapses, [])


class ProofTests(SynchronousTestCase):
    def test_distinct(self) -> None:
        """Each side, key and field of an exchange makes another proof; so does a character in the next field."""
        key = b"k" * 32
        proofs = {daemon_proof(key, EXCHANGE), client_proof(key, EXCHANGE), client_proof(b"l" * 32, EXCHANGE)}
        shifted = attrs.evolve(EXCHANGE, client_nonce="A" * 42, daemon_nonce="A" + "B" * 43)
        others = (attrs.evolve(EXCHANGE, **{field.name: "C" * 43}) for field in attrs.fields(LoginExchange))
        proofs.update(client_proof(key, other) for other in (shifted, *others))
        self.assertEqual(len(proofs), 9)

    def test_stable(self) -> None:
        """The proof of a known exchange is a known one: clients of another release agree with it."""
        self.assertEqual(daemon_proof(bytes(32), EXCHANGE), "lzh5GIhCvKF7J3SxK1LuDdiy9fHKk_4vN-MBleQ8h3M")
        self.assertEqual(client_proof(bytes(32), EXCHANGE), "iONmCqk5g_mKpbRqp9mey8mXmpoqwmNfYTCJ7Zblqbg")

    def test_same(self) -> None:
        """Proofs are compared whatever they are made of."""
        self.assertTrue(keys.same("a", "a"))
        for other in ("", "b", "ä", "\ud800"):
            self.assertFalse(keys.same("a", other))

    def test_nonce(self) -> None:
        """A fresh nonce is 32 random bytes."""
        self.assertEqual(keys.new_nonce(lambda count: b"\0" * count), "A" * 43)
        self.assertNotEqual(keys.new_nonce(), keys.new_nonce())
