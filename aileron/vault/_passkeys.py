"""The operator's passkeys: creation, registration, and the verification of their answers (ADR 19, ADR 78)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, cast

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from aileron.base.addresses import PAGES_DOMAIN, read_origin
from aileron.base.json import JSON, utc
from aileron.base.signatures import read_base64url, write_base64url, write_public_key
from aileron.model.authority import Passkey, PasskeyRule
from aileron.model.errors import AileronError, Conflict, Forbidden, InvalidRequest, NotFound
from aileron.model.interfaces.authority import IPasskeyBook
from aileron.model.signing import EnrolledKey, KeyKind, is_embedded

from ._cipher import Randomness
from ._logins import ReplayCache
from ._passphrase import are_same_words, generate_two_words
from ._proofs import NONCE_BYTES

_LOCALHOST = "localhost"

_USER = b"operator"
_ANSWER_SECONDS, _WORDS_SECONDS = 60.0, 120.0
_MAX_KEYS = 16
_OFFERED, _PROPOSED = "offered", "proposed"
_NEEDED = "This needs your passkey: decide it on its page, by `aileron open`."
_NONE_HERE = (
    "This needs your passkey, but none of yours was made for the present address of your pages. Nothing was decided. "
    "Add one: run `aileron passkey add`. Those made for localhost can be used "
    "with `operator_host: localhost` in config.yaml."
)
_NO_NAME = "Passkeys need your pages to be at a name, and `operator_listen` in config.yaml gives none."


class Passkeys:
    """The passkeys of the operator. Proposed ones are in memory, and registered ones in the vault.

    :param addresses: returns the operator URLs that the daemon serves. Passkeys work for those that belong to a site.
    :param elsewhere: returns the daemon's further URLs. Passkeys that were made for them are accepted too.
    :param needs_room: whether an authenticator must store a new passkey, so that it is found without its id.
    """

    def __init__(
        self,
        book: IPasskeyBook,
        addresses: Callable[[], Collection[str]],
        clock: IReactorTime,
        randomness: Randomness = secrets.token_bytes,
        *,
        elsewhere: Callable[[], Collection[str]] = tuple,
        needs_room: bool = False,
    ) -> None:
        self._book = book
        self._elsewhere = elsewhere
        self._needs_room = needs_room
        self._addresses = addresses
        self._clock = clock
        self._randomness = randomness
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
        room = structs.ResidentKeyRequirement
        options = webauthn.generate_registration_options(
            rp_id=self.site(),
            rp_name="Aileron",
            user_name="operator",
            user_id=_USER,
            challenge=challenge,
            authenticator_selection=structs.AuthenticatorSelectionCriteria(
                resident_key=room.REQUIRED if self._needs_room else room.PREFERRED,  # a security key may have no room
                user_verification=structs.UserVerificationRequirement.REQUIRED,
            ),
            supported_pub_key_algs=_algorithms(webauthn),
            exclude_credentials=self._describe(structs, self._usable()),
        )
        return cast(Mapping[str, JSON], json.loads(webauthn.options_to_json(options)))

    def is_proposed(self) -> bool:
        return self._proposed.has(_PROPOSED)

    def propose(self, name: str, credential: Mapping[str, JSON], words: str = "") -> str:
        webauthn, challenge = self._webauthn(), self._offered.take(_OFFERED)
        site = self.site()
        if challenge is None or site is None:
            raise InvalidRequest("No passkey was offered, or it took longer than a minute: begin again.")
        problem = InvalidRequest("This is no passkey that answers what was asked of it.")
        found = self._verify(
            partial(webauthn.verify_registration_response, supported_pub_key_algs=_algorithms(webauthn)),
            credential,
            challenge,
            problem,
            site,
        )
        key_id = write_base64url(found.credential_id)
        if key_id in {each.id for each in self._book.passkeys()}:
            raise Conflict("This passkey counts already.")
        made_at = utc(self._clock.seconds())
        words = words or generate_two_words(self._randomness)
        key = Passkey(key_id, name, found.credential_public_key, made_at, found.sign_count, site, _is_synced(found))
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
            raise Conflict("That would ask for less than now: only `aileron passkey reset` can.")
        self._book.keep_passkeys(keys, rule)

    def remove(self, passkey_id: str) -> Passkey:
        keys = self._book.passkeys()
        gone = next((each for each in keys if each.id == passkey_id), None)
        if gone is None:
            raise NotFound("There is no such passkey.")
        self._book.keep_passkeys(tuple(each for each in keys if each is not gone), self._book.passkey_rule())
        return gone

    def reset(self) -> None:
        self._proposed.clear()
        self._book.keep_passkeys((), PasskeyRule())

    def request(self, challenge: bytes) -> Mapping[str, JSON]:
        """Create the options for C{navigator.credentials.get} with a challenge. They list the passkeys' ids.

        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """
        webauthn, keys = self._webauthn(), self._usable()
        if not keys:
            raise Conflict(_NONE_HERE)
        structs = webauthn.helpers.structs
        options = webauthn.generate_authentication_options(
            rp_id=self.site(),
            challenge=challenge,
            allow_credentials=self._describe(structs, keys),
            user_verification=structs.UserVerificationRequirement.REQUIRED,
        )
        return cast(Mapping[str, JSON], json.loads(webauthn.options_to_json(options)))

    def describe_need(self) -> str:
        """Return the message that a passkey is required and how to use one."""
        if self.site() is None:
            return f"This needs your passkey. {_NO_NAME} Nothing was decided."
        return _NEEDED if self._usable() else _NONE_HERE

    def key_of(self, passkey_id: str) -> EnrolledKey | None:
        """Return the public key of a registered passkey, or None if there is none with this id.

        :raises Conflict: if the extra C{aileron[passkey]} is not installed.
        """
        key = next((each for each in self._book.passkeys() if each.id == passkey_id), None)
        return None if key is None else EnrolledKey(KeyKind.PASSKEY, self._public_key(key))

    def has_usable(self) -> bool:
        if not self._usable():  # the library, which takes long to import, is needed only if there is a passkey
            return False
        try:
            self._webauthn()
        except Conflict:
            return False
        return True

    def is_registered(self, passkey_id: str) -> bool:
        """Return whether there is a passkey with this id. Safe in any thread."""
        return any(each.id == passkey_id for each in self._book.passkeys())

    def use(self, challenge: bytes, credential: Mapping[str, JSON], *, elsewhere: bool = False) -> Passkey:
        """Verify a passkey's answer, store its counter, and return the passkey.

        :param elsewhere: whether a passkey of the daemon's further URLs is accepted too.

        :raises Forbidden: if the answer is not valid, or the passkey is not registered. C{details["passkey"]} is true.
        :raises Conflict: if passkeys are unavailable.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the counter cannot be stored.
        """
        keys, webauthn = self._book.passkeys(), _import_library()
        key = next((each for each in keys if each.id == credential.get("id")), None)
        if key is None:
            raise refusal("This passkey does not count here.")
        verify = partial(
            webauthn.verify_authentication_response,
            credential_public_key=key.public_key,
            credential_current_sign_count=key.count,
        )
        used = self._verify(
            verify, credential, challenge, refusal("Your passkey's answer does not hold."), key.site, elsewhere
        )
        # guard of signing: a passkey that was bound to one device stays so
        #    -> vault.test_approvers.PasskeyTests.test_synced_later, instead if False
        if key.synced not in (None, _is_synced(used)):
            raise refusal(
                "This passkey says otherwise than before whether it is copied to other devices. Add it again."
            )
        changed = evolve(key, count=used.new_sign_count, synced=_is_synced(used))
        kept = (changed if each is key else each for each in keys)
        self._book.keep_passkeys(tuple(kept), self._book.passkey_rule())
        return changed

    def _verify(
        self,
        verify: Callable[..., Any],
        credential: Mapping[str, JSON],
        challenge: bytes,
        problem: AileronError,
        site: str,
        elsewhere: bool = False,
    ) -> Any:
        """Verify a response with the library, and return the library's result.

        :param problem: the error to raise for every fault that the page's input can cause.
        :param site: the site that the passkey was made for. The page must be at one of its addresses.
        :param elsewhere: whether a page at one of the daemon's further URLs is accepted too.
        """
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            # guard of signing: no other site's page uses a passkey in a frame
            #    -> vault.test_passkeys.AddingTests.test_embedded, instead if False
            if _is_embedded(credential):
                raise problem
            return verify(
                credential=dict(credential),
                # guard against attack: what a passkey signed to sign in decides nothing,
                #    instead read_base64url(_read_client(credential)["challenge"])
                expected_challenge=challenge,
                expected_rp_id=site,
                # guard against attack: a passkey decides only at a page of ours
                #    -> test_passkeys.NeighbourTests.test_neighbours, instead _read_client(credential)["origin"]
                # guard against attack: a passkey signs in only at a page of ours
                #    -> test_phone.NeighbourTests.test_another_port, instead _read_client(credential)["origin"]
                expected_origin=self._origins(site, elsewhere),
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

    def _origins(self, site: str, elsewhere: bool) -> list[str]:
        addresses = [*self._addresses(), *(self._elsewhere() if elsewhere else ())]
        return [address for address in addresses if _site_of(address) == site]

    def _public_key(self, key: Passkey) -> str:
        helpers = _import_library().helpers
        decoded = helpers.decode_credential_public_key(key.public_key)
        return write_public_key(helpers.decoded_public_key_to_cryptography(decoded))

    def _webauthn(self) -> Any:
        """Import the library, which is an optional dependency, and return it.

        :raises Conflict: if the library is missing, or the pages have no name that passkeys can be bound to.
        """
        if self.site() is None:
            raise Conflict(_NO_NAME)
        return _import_library()


def _import_library() -> Any:
    """Import the library, which is an optional dependency, and return it.

    :raises Conflict: if the library is missing.
    """
    try:
        import webauthn
    except ImportError:
        raise Conflict("Passkeys need the extra `passkey`: add it as the installation guide says.") from None
    return webauthn


def _algorithms(webauthn: Any) -> list[Any]:
    """Return the algorithms whose signatures can be verified offline too, the preferred one first."""
    known = webauthn.helpers.cose.COSEAlgorithmIdentifier
    return [known.ECDSA_SHA_256, known.EDDSA, known.RSASSA_PKCS1_v1_5_SHA_256]


def _is_synced(answer: Any) -> bool:
    """Return whether a passkey may be copied to other devices (flag BE)."""
    return str(getattr(answer.credential_device_type, "value", "")) == "multi_device"


def _read_client(credential: Mapping[str, Any]) -> Any:
    return json.loads(read_base64url(str(credential["response"]["clientDataJSON"])))


def _is_embedded(credential: Mapping[str, Any]) -> bool:
    client = _read_client(credential)
    return not isinstance(client, dict) or is_embedded(client)


def _site_of(address: str) -> str | None:
    """Return the site (WebAuthn's rpId) of an operator URL, or None if the host cannot be one.

    The host of an https URL is one, and so are C{localhost} and the names of the pages.
    """
    origin = read_origin(address)
    if origin.host.endswith(f".{PAGES_DOMAIN}"):
        return PAGES_DOMAIN
    if origin.scheme == "https":
        return origin.host  # the whole name: a passkey for a part of it would be for other machines too
    return _LOCALHOST if origin.host == _LOCALHOST else None


def refusal(message: str) -> Forbidden:
    """Return the error for a decision that a passkey must sign, or whose passkey was refused."""
    return Forbidden(message, {"passkey": True})
