"""The attempts to sign in with the provider. Each is bound to one browser, counts once, and lasts ten minutes.

The browser has the attempt in a cookie, so strangers who begin attempts use no memory of the daemon.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.signatures import write_base64url
from aileron.model.errors import Unauthorized

COOKIE = "__Host-aileron_signin"
"""The cookie of an attempt. A page of a neighbouring name cannot set one with this beginning of its name."""

ATTEMPT_SECONDS = 600
"""The time within which a person signs in at the provider."""

_SEED_BYTES = 32
_MOST_USED = 16_384
EXPIRED = "This sign-in has expired, was used, or began in another browser. Start again."


@frozen
class ProviderAttempt:
    """One attempt to sign in.

    :ivar state: binds the provider's answer to the attempt.
    :ivar nonce: binds the ID token to the attempt.
    :ivar verifier: proves to the token endpoint that this daemon began the attempt (PKCE).
    """

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class ProviderAttempts:
    """Makes and checks attempts. Everything of an attempt follows from its cookie and a key that no browser has.

    :param key: 32 random bytes, of this process alone.
    """

    def __init__(self, key: bytes, clock: IReactorTime) -> None:
        self._key, self._clock = key, clock
        self._used: dict[str, float] = {}

    def begin(self, seed: bytes) -> tuple[str, ProviderAttempt]:
        """Begin an attempt, and return the value of its cookie and the attempt.

        :param seed: 32 random bytes.
        """
        text = f"{seed.hex()}.{int(self._clock.seconds())}"
        return f"{text}.{self._derive('cookie', text)}", self._make(text)

    def find(self, cookie: str) -> ProviderAttempt:
        """Return the attempt of a cookie.

        :raises Unauthorized: if the cookie is not from this daemon process, or the attempt is too old.
        """
        text, _, mac = cookie.rpartition(".")
        # guard of sign-in: no browser makes an attempt up
        #    -> features.oidc.test_attempts.AttemptTests.test_forged
        if not hmac.compare_digest(mac.encode(), self._derive("cookie", text).encode()):
            raise Unauthorized(EXPIRED)
        attempt, age = self._make(text), self._clock.seconds() - int(text.rpartition(".")[2])
        # guard of sign-in: an attempt lasts ten minutes -> features.oidc.test_attempts.AttemptTests.test_late
        if not -1 <= age < ATTEMPT_SECONDS:
            raise Unauthorized(EXPIRED)
        return attempt

    def use(self, attempt: ProviderAttempt) -> None:
        """Use an attempt up.

        :raises Unauthorized: if it was used, or so many were used lately that this one cannot be remembered.
        """
        now = self._clock.seconds()
        # guard of sign-in: an attempt counts once -> features.oidc.test_attempts.AttemptTests.test_used
        if attempt.state in self._used:
            raise Unauthorized(EXPIRED)
        if len(self._used) >= _MOST_USED:
            self._used = {each: until for each, until in self._used.items() if until > now}
        if len(self._used) >= _MOST_USED:
            raise Unauthorized("Too many people sign in at once. Try again in a few minutes.")
        self._used[attempt.state] = now + 2 * ATTEMPT_SECONDS

    def _make(self, text: str) -> ProviderAttempt:
        return ProviderAttempt(*(self._derive(each, text) for each in ("state", "nonce", "verifier")))

    def _derive(self, purpose: str, text: str) -> str:
        return write_base64url(hmac.digest(self._key, f"{purpose}:{text}".encode("utf-8", "surrogatepass"), sha256))
