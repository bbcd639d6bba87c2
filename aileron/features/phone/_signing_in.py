"""Signing in with a passkey alone. The passkey signs the daemon process's id, a nonce, and the key of the page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol

from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON, canonical
from aileron.model.authority import Passkey
from aileron.model.errors import Forbidden, LimitExceeded, NotFound, Unauthorized
from aileron.vault import Nonces

TAG = "aileron.signin.v1"
"""The first member of the text that is signed. No other signed text begins with it."""

_PURPOSE = "signin"
_KEPT_SECONDS = 120.0
_PER_SECOND, _AT_ONCE = 10.0, 40.0


def signin_challenge(instance: str, nonce: str, public_key: str) -> bytes:
    """Return the challenge for a passkey. Its signature logs in the page that has C{public_key}."""
    return hashlib.sha256(canonical([TAG, instance, nonce, public_key])).digest()


class UsesPasskeys(Protocol):
    """The passkeys that can be used at the phone's pages, as far as signing in needs them."""

    def site(self) -> str | None:
        """Return the WebAuthn rpId of the passkeys, or None if no address of the pages allows passkeys."""

    def is_registered(self, passkey_id: str) -> bool:
        """Return whether there is a passkey with this id."""

    def use(self, challenge: bytes, credential: Mapping[str, JSON]) -> Passkey:
        """Verify a passkey's answer, and return the passkey.

        :raises Forbidden: if the answer is not valid.
        """


class SignIns:
    """The sign-ins at one daemon process.

    It stores only nonces that a passkey has signed, so that strangers use no memory.
    """

    def __init__(self, passkeys: UsesPasskeys, instance: str, clock: IReactorTime) -> None:
        self._passkeys, self._instance, self._clock = passkeys, instance, clock
        self._nonces = Nonces(clock)
        self._used: dict[str, float] = {}

    def offer(self) -> dict[str, JSON]:
        """Return a new sign-in challenge as JSON: C{instance}, C{nonce} and C{site}. It is valid for one minute."""
        return {"instance": self._instance, "nonce": self._nonces.make(_PURPOSE), "site": self._passkeys.site()}

    def verify(self, nonce: str, public_key: str, credential: Mapping[str, JSON]) -> Passkey:
        """Return the passkey that has signed a page's key.

        :raises Unauthorized: if the nonce is not fresh or was used, or the answer is not valid.
        :raises NotFound: if there is no such passkey, so the phone may forget it.
        """
        now = self._clock.seconds()
        self._used = {each: until for each, until in self._used.items() if until > now}
        # guard of the phone: a sign-in counts once -> phone.test_door.SignInTests.test_replayed_without_counter
        if nonce in self._used:
            raise _refuse()
        # guard of the phone: a sign-in is for one minute and of ours -> phone.test_door.SignInTests.test_late
        if not self._nonces.is_fresh(_PURPOSE, nonce):
            raise _refuse()
        if not self._passkeys.is_registered(str(credential.get("id"))):
            raise NotFound("This passkey is not paired here. Run `aileron phone pair` to pair this phone again.")
        try:
            used = self._passkeys.use(signin_challenge(self._instance, nonce, public_key), credential)
        except Forbidden:
            raise _refuse() from None
        self._used[nonce] = now + _KEPT_SECONDS
        return used


def _refuse() -> Unauthorized:
    return Unauthorized("This passkey was not accepted here. Try again.")


class StrangerLimit:
    """The limit on requests without a login, of all senders together: some at once, then some in each second."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock, self._left, self._at = clock, _AT_ONCE, clock.seconds()

    def take(self) -> None:
        """Count one request against the limit.

        :raises LimitExceeded: if none is left now.
        """
        now = self._clock.seconds()
        self._left = min(_AT_ONCE, self._left + max(0.0, now - self._at) * _PER_SECOND)
        self._at = now
        # guard of the phone: strangers are slowed down -> phone.test_door.StrangerTests.test_slowed
        if self._left < 1:
            raise LimitExceeded("Too many sign-ins at once. Try again in a moment.", {"retry_after": 1})
        self._left -= 1
