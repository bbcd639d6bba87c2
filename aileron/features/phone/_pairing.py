"""Pairing a phone: a code for one page, a passkey made there, and two words that the person types in the terminal."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON
from aileron.base.signatures import write_base64url
from aileron.model.authority import Passkey
from aileron.model.errors import Conflict, Forbidden, Unauthorized
from aileron.model.sessions import HandOverState

_CODE_BYTES, _PAGE_BYTES = 16, 32
_SECONDS = 120.0
_AGAIN = "Run `aileron phone pair` again."
_ENDED = {
    HandOverState.MADE: "No phone has used the code yet.",
    HandOverState.CONFIRMED: "The phone is paired already.",
    HandOverState.TWICE: f"The code was used twice, so no phone was paired. {_AGAIN}",
    HandOverState.WRONG: f"Other words were typed before, so no phone was paired. {_AGAIN}",
    HandOverState.LATE: f"It took longer than two minutes, so no phone was paired. {_AGAIN}",
}


class MakesPasskeys(Protocol):
    """The passkeys that can be used at the phone's pages, as far as pairing needs them."""

    def offer(self) -> Mapping[str, JSON]:
        """Return the options for C{navigator.credentials.create}."""

    def propose(self, name: str, credential: Mapping[str, JSON]) -> str:
        """Store the page's answer as a proposal, and return its two words."""

    def confirm(self, words: str) -> Passkey:
        """Register the proposed passkey, and return it.

        :raises Conflict: if no passkey was proposed, or there are too many.
        :raises Forbidden: if the words are wrong. The proposal is discarded.
        """


@frozen
class Pairing:
    """The pairing of one phone: the registration of a passkey made there. Codes are stored as SHA-256 only.

    :ivar maker: the id of the login that began the pairing.
    :ivar name: the name of the passkey.
    :ivar page: SHA-256 of the secret of the page that used the code, or empty before.
    :ivar proposed: True once the page has made a passkey, and shows its words.
    """

    maker: str
    name: str
    code: str = field(repr=False)
    until: float
    state: HandOverState = HandOverState.MADE
    page: str = field(default="", repr=False)
    proposed: bool = False


class Pairings:
    """The only pairing of a phone that can be under way. A new pairing ends the one before."""

    def __init__(
        self, passkeys: MakesPasskeys, clock: IReactorTime, randomness: Callable[[int], bytes] = secrets.token_bytes
    ) -> None:
        self._passkeys, self._clock, self._randomness = passkeys, clock, randomness
        self._pairing: Pairing | None = None

    def begin(self, maker: str, name: str) -> str:
        """Begin the pairing of a phone, and return its code, which one page can use within two minutes.

        :param maker: the id of a terminal's login.
        :param name: the name of the passkey.
        """
        code = write_base64url(self._randomness(_CODE_BYTES))
        self._pairing = Pairing(maker, name, _hash(code), self._clock.seconds() + _SECONDS)
        return code

    def state(self, maker: str) -> tuple[HandOverState, bool] | None:
        """Return the state of the pairing that this login began, and whether the phone's page shows its two words.

        Return None if the login began none.
        """
        found = self._now()
        return None if found is None or found.maker != maker else (found.state, found.proposed)

    def redeem(self, code: str) -> tuple[str, Mapping[str, JSON]]:
        """Use the code for one page.

        :return: the page's secret, and the options with which it makes a passkey.
        :raises Unauthorized: if the code is unknown, or its pairing has ended.
        :raises Conflict: if the code was used before. The pairing ends, for both.
        """
        found = self._now()
        if found is None or not hmac.compare_digest(found.code, _hash(code)) or found.state not in _OPEN:
            raise Unauthorized(f"This code is unknown, used or too old. {_AGAIN}")
        if found.state is HandOverState.OPENED:
            # guard of the phone: a code that is used twice pairs nobody -> phone.test_pairing.PairingTests.test_twice,
            #    instead pass
            self._pairing = evolve(found, state=HandOverState.TWICE)
            raise Conflict(_ENDED[HandOverState.TWICE])
        page = write_base64url(self._randomness(_PAGE_BYTES))
        self._pairing = evolve(found, state=HandOverState.OPENED, page=_hash(page))
        return page, self._passkeys.offer()

    def propose(self, page: str, credential: Mapping[str, JSON]) -> str:
        """Accept the passkey that the page made, once, and return the two words to show.

        :raises Unauthorized: if this page has no pairing, or has made a passkey already.
        :raises InvalidRequest, Conflict: if the passkey is refused. The pairing goes on.
        """
        found = self._of(page)
        if found.state is not HandOverState.OPENED or found.proposed:
            raise Unauthorized(f"This page does not wait for a passkey. {_AGAIN}")
        words = self._passkeys.propose(found.name, credential)
        self._pairing = evolve(found, proposed=True, until=self._clock.seconds() + _SECONDS)
        return words

    def progress(self, page: str) -> HandOverState:
        """Return the state of the pairing to which a page belongs.

        :raises Unauthorized: if the page belongs to none.
        """
        return self._of(page).state

    def confirm(self, maker: str, words: str) -> Passkey:
        """Register the passkey whose page shows these words. Wrong words end the pairing.

        :param maker: the id of the login that began it.
        :raises Conflict: if this login has no pairing under way, or no page shows words.
        :raises Forbidden: if the words are wrong.
        """
        found = self._now()
        if found is None or found.maker != maker:
            raise Conflict(f"No pairing is under way. {_AGAIN}")
        if found.state is not HandOverState.OPENED or not found.proposed:
            raise Conflict(_ENDED.get(found.state, "The phone shows no words yet."), {"state": found.state.value})
        self._pairing = evolve(found, state=HandOverState.WRONG)
        try:
            passkey = self._passkeys.confirm(words)
        except Forbidden:
            raise Forbidden(f"These are not the words that the phone shows, so it was not paired. {_AGAIN}") from None
        self._pairing = evolve(found, state=HandOverState.CONFIRMED)
        return passkey

    def _of(self, page: str) -> Pairing:
        found = self._now()
        if found is None or not found.page or not hmac.compare_digest(found.page, _hash(page)):
            raise Unauthorized(f"This page is not pairing a phone. {_AGAIN}")
        return found

    def _now(self) -> Pairing | None:
        found = self._pairing
        if found is None or found.state not in _OPEN or self._clock.seconds() < found.until:
            return found
        return evolve(found, state=HandOverState.LATE)


_OPEN = (HandOverState.MADE, HandOverState.OPENED)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
