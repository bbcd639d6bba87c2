"""Requests and verifies passkey signatures (ADR 19)."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, cast

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from aileron.base.addresses import PAGES_DOMAIN, read_origin
from aileron.base.json import JSON, canonical, utc
from aileron.model.authority import Passkey, PasskeyRule
from aileron.model.errors import AileronError, Conflict, Forbidden, InvalidRequest
from aileron.model.interfaces.authority import IPasskeyBook
from aileron.model.runs import Assertion

from ._cipher import Randomness
from ._logins import ReplayCache
from ._passphrase import are_same_words, generate_two_words
from ._proofs import NONCE_BYTES, base64url, read_base64url

_LOCALHOST = "localhost"

_LABEL = "aileron.passkey.v1"
_USER = b"operator"
_ANSWER_SECONDS, _WORDS_SECONDS = 60.0, 120.0
_MAX_ASKED, _MAX_KEYS = 256, 16
_OFFERED, _PROPOSED = "offered", "proposed"
_NEEDED = "This needs your passkey: decide it on its page, by `aileron open`."
_NONE_HERE = (
    "This needs your passkey, but none of yours was made for the present address of your pages. Nothing was decided. "
    "Add one: run `aileron open passkeys`, then `aileron operator passkey add`. Those made for localhost can be used "
    "with `operator_host: localhost` in config.yaml."
)
_NO_NAME = "Passkeys need your pages to be at a name, and `operator_listen` in config.yaml gives none."


class Passkeys:
    """The passkeys of one run of the daemon.  Challenges are in memory, and registered passkeys in the book.

    :param addresses: returns the operator URLs that the daemon serves. Passkeys work for those that belong to a site.
    """

    def __init__(
        self,
        book: IPasskeyBook,
        addresses: Callable[[], Collection[str]],
        clock: IReactorTime,
        randomness: Randomness = secrets.token_bytes,
    ) -> None:
        self._book = book
        self._addresses = addresses
        self._clock = clock
        self._randomness = randomness
        self._asked: ReplayCache[bytes] = ReplayCache(clock, _ANSWER_SECONDS, _MAX_ASKED)
        self._offered: ReplayCache[bytes] = ReplayCache(clock, _ANSWER_SECONDS, 1)
        self._proposed: ReplayCache[tuple[Passkey, str]] = ReplayCache(clock, _WORDS_SECONDS, 1)

    def passkeys(self) -> tuple[Passkey, ...]:
        return self._book.passkeys()

    def passkey_rule(self) -> PasskeyRule:
        return self._book.passkey_rule()

    def site(self) -> str | None:
        return next((site for site in map(_site_of, self._addresses()) if site is not None), None)

    def offer(self) -> Mapping[str, JSON]:
        webauthn = self._webauthn()
        challenge = self._randomness(NONCE_BYTES)
        self._offered.put(_OFFERED, challenge)
        structs = webauthn.helpers.structs
        options = webauthn.generate_registration_options(
            rp_id=self.site(),
            rp_name="Aileron",
            user_name="operator",
            user_id=_USER,
            challenge=challenge,
            authenticator_selection=structs.AuthenticatorSelectionCriteria(
                user_verification=structs.UserVerificationRequirement.REQUIRED
            ),
            exclude_credentials=self._describe(structs, self._usable()),
        )
        return cast(Mapping[str, JSON], json.loads(webauthn.options_to_json(options)))

    def propose(self, name: str, credential: Mapping[str, JSON]) -> str:
        webauthn, challenge = self._webauthn(), self._offered.take(_OFFERED)
        site = self.site()
        if challenge is None or site is None:
            raise InvalidRequest("No passkey was offered, or it took longer than a minute: begin again.")
        problem = InvalidRequest("This is no passkey that answers what was asked of it.")
        found = self._verify(webauthn.verify_registration_response, credential, challenge, problem)
        key_id = base64url(found.credential_id)
        if key_id in {each.id for each in self._book.passkeys()}:
            raise Conflict("This passkey counts already.")
        made_at = utc(self._clock.seconds())
        words = generate_two_words(self._randomness)
        key = Passkey(key_id, name, found.credential_public_key, made_at, found.sign_count, site)
        self._proposed.put(_PROPOSED, (key, words))
        return words

    def confirm(self, words: str) -> Passkey:
        proposal = self._proposed.take(_PROPOSED)
        if proposal is None:
            raise Conflict("No passkey waits: add one on the page first.")
        key, shown = proposal
        if not are_same_words(shown, words):
            raise Forbidden("These are not the words that the page shows, so nothing was added. Begin again there.")
        keys = self._book.passkeys()
        if len(keys) >= _MAX_KEYS:
            raise Conflict("There are as many passkeys as there can be.")
        self._book.keep_passkeys((*keys, key), self._book.passkey_rule())
        return key

    def require(self, rule: PasskeyRule) -> None:
        keys = self._book.passkeys()
        if not self._usable():
            raise Conflict("There is no passkey yet for this address of your pages: add one on the page first.")
        if not rule.keeps(self._book.passkey_rule()):
            raise Conflict("That would ask for less than now: only `aileron operator passkey reset` can.")
        self._book.keep_passkeys(keys, rule)

    def reset(self) -> None:
        self._proposed.clear()
        self._book.keep_passkeys((), PasskeyRule())

    def ask(self, about: Mapping[str, JSON]) -> tuple[str, Mapping[str, JSON]]:
        webauthn, keys = self._webauthn(), self._usable()
        if not keys:
            raise Conflict(_NONE_HERE)
        nonce = base64url(self._randomness(NONCE_BYTES))
        self._asked.put(nonce, _challenge(nonce, about))
        structs = webauthn.helpers.structs
        options = webauthn.generate_authentication_options(
            rp_id=self.site(),
            challenge=_challenge(nonce, about),
            allow_credentials=self._describe(structs, keys),
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        )
        return nonce, cast(Mapping[str, JSON], json.loads(webauthn.options_to_json(options)))

    def check(self, action: str, about: Mapping[str, JSON], assertion: Assertion | None) -> None:
        """If C{aileron[passkey]} is not installed, nothing that requires a passkey passes."""
        if assertion is None:
            if self._book.passkey_rule().needs(action):
                raise _refusal(self._tell_need())
            return
        challenge = self._asked.take(assertion.nonce)
        if challenge is None or challenge != _challenge(assertion.nonce, about):
            raise _refusal("Your passkey was not asked for this, or longer than a minute ago: try again.")
        self._use(challenge, assertion.credential)

    def _tell_need(self) -> str:
        """Return the message that a passkey is required and how to use one."""
        if self.site() is None:
            return f"This needs your passkey. {_NO_NAME} Nothing was decided."
        return _NEEDED if self._usable() else _NONE_HERE

    def _use(self, challenge: bytes, credential: Mapping[str, JSON]) -> None:
        keys, webauthn = self._book.passkeys(), self._webauthn()
        key = next((each for each in keys if each.id == credential.get("id")), None)
        if key is None:
            raise _refusal("This passkey does not count here.")
        verify = partial(
            webauthn.verify_authentication_response,
            credential_public_key=key.public_key,
            credential_current_sign_count=key.count,
        )
        used = self._verify(verify, credential, challenge, _refusal("Your passkey's answer does not hold."))
        kept = (evolve(each, count=used.new_sign_count) if each is key else each for each in keys)
        self._book.keep_passkeys(tuple(kept), self._book.passkey_rule())

    def _verify(
        self, verify: Callable[..., Any], credential: Mapping[str, JSON], challenge: bytes, problem: AileronError
    ) -> Any:
        """Verify a response with the library.  Raise C{problem} for every error that the page's input can cause."""
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            return verify(
                credential=dict(credential),
                expected_challenge=challenge,
                expected_rp_id=self.site(),
                expected_origin=self._origins(),
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, TypeError, KeyError, AttributeError) as error:
            raise problem from error

    def _describe(self, structs: Any, keys: Iterable[Passkey]) -> list[Any]:
        return [structs.PublicKeyCredentialDescriptor(id=read_base64url(each.id)) for each in keys]

    def _usable(self) -> tuple[Passkey, ...]:
        """Return the passkeys that were created for the current site."""
        site = self.site()
        return tuple(each for each in self._book.passkeys() if each.site == site)

    def _origins(self) -> list[str]:
        return [address for address in self._addresses() if _site_of(address) is not None]

    def _webauthn(self) -> Any:
        """Import the library, which is an optional dependency.

        :raises Conflict: the library is missing, or the pages have no name that passkeys can be bound to.
        """
        if self.site() is None:
            raise Conflict(_NO_NAME)
        try:
            import webauthn
        except ImportError:
            raise Conflict("Passkeys need the extra `passkey`: add it as the installation guide says.") from None
        return webauthn


def _challenge(nonce: str, about: Mapping[str, JSON]) -> bytes:
    return hashlib.sha256(canonical([_LABEL, nonce, about])).digest()


def _site_of(address: str) -> str | None:
    """Return the site (WebAuthn's rpId) of an operator URL, or None if the host cannot be one, such as a number."""
    host = read_origin(address).host
    if host.endswith(f".{PAGES_DOMAIN}"):
        return PAGES_DOMAIN
    return _LOCALHOST if host == _LOCALHOST else None


def _refusal(message: str) -> Forbidden:
    return Forbidden(message, {"passkey": True})
