"""The operator's logins over a real vault, and what a person and a browser do with them."""

from __future__ import annotations

import base64

from aileron.model.sessions import HandOverState, OperatorSession
from aileron.testing import SigningBrowser
from aileron.vault import Operators, keys
from aileron.vault.keys import LoginExchange, client_proof, daemon_proof

from .case import VaultCase

ASKED, STATE = ("GET", "/v1/runs?limit=5"), ("GET", "/handover/state")


class OperatorsCase(VaultCase):
    """With an unlocked vault."""

    ADDRESS = "http://localhost:7001"
    NONCE = base64.urlsafe_b64encode(b"n" * 32).rstrip(b"=").decode()

    def setUp(self) -> None:
        super().setUp()
        self.vault = self.unlocked()

    def make_operators(self) -> Operators:
        """No logins."""
        return Operators(self.vault, "instance-1", lambda: (self.ADDRESS,), self.clock)

    def exchange(self, client_nonce: str, daemon_nonce: str) -> LoginExchange:
        """What both sides prove with these nonces."""
        return LoginExchange(client_nonce, daemon_nonce, "instance-1", self.ADDRESS)

    def prove(self, client_nonce: str, daemon_nonce: str) -> str:
        """Make the proof of somebody who knows the passphrase."""
        return client_proof(keys.operator_key(self.key()), self.exchange(client_nonce, daemon_nonce))

    def check_daemon(self, client_nonce: str, daemon_nonce: str, proof: str) -> bool:
        """Tell whether the daemon proved that it knows the key."""
        key = keys.operator_key(self.key())
        return keys.same(daemon_proof(key, self.exchange(client_nonce, daemon_nonce)), proof)

    def log_in(self, operators: Operators) -> tuple[str, OperatorSession]:
        """Go through a whole login."""
        nonce, _proof = operators.challenge(self.NONCE, self.ADDRESS)
        return operators.login(nonce, self.prove(self.NONCE, nonce))

    def opened(self, operators: Operators, token: str) -> tuple[SigningBrowser, str]:
        """Return a browser that has redeemed a code of this login and told its key, and the words that it shows."""
        cookie, page_key, _maker = operators.redeem(operators.hand_over(token))
        browser = self.registered(operators, cookie, page_key)
        return browser, self.words(operators, browser)

    def begun(self) -> tuple[Operators, str, SigningBrowser, str]:
        """Return a table of logins, the token of one, and a browser that waits with the words that it shows."""
        operators = self.make_operators()
        token, _login = self.log_in(operators)
        return operators, token, *self.opened(operators, token)

    def registered(self, operators: Operators, cookie: str, page_key: str) -> SigningBrowser:
        """Return a browser that has told its key."""
        browser = SigningBrowser.generate(cookie, self.clock.seconds)
        return browser.with_instance(operators.register(cookie, page_key, browser.public_key))

    def words(self, operators: Operators, browser: SigningBrowser) -> str:
        """Return what a browser that waits shows."""
        entering = operators.entering(browser.sign_request(*STATE))
        assert entering is not None
        self.assertIs(entering.state, HandOverState.OPENED)
        return entering.words

    def known(self, operators: Operators, browser: SigningBrowser, renew: bool = True) -> OperatorSession | None:
        """Return the session, if there is one, of a browser that asks for something."""
        return operators.by_browser(browser.sign_request(*ASKED), renew)

    def decides(self, operators: Operators, browser: SigningBrowser, renew: bool = True) -> bool:
        """Return whether a browser that asks for something has a session that may decide."""
        session = self.known(operators, browser, renew)
        assert session is not None
        return session.decides
