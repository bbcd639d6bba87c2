"""The operator's passkeys: creation, registration, and the verification of their answers (ADR 19, ADR 78)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON, utc
from aileron.model.authority import Passkey, PasskeyRule
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, NotFound
from aileron.model.interfaces.authority import IPasskeyBook
from aileron.model.signing import EnrolledKey, KeyKind

from ._cipher import Randomness
from ._logins import ReplayCache
from ._passphrase import are_same_words, generate_two_words
from ._proofs import NONCE_BYTES
from ._webauthn import PasskeyUser, RelyingParty, decode_public_key, find_relying_party, find_site, import_library

_USER = PasskeyUser(b"operator", "operator")
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
        return next((site for site in map(find_site, self._addresses()) if site is not None), None)

    def offer(self) -> Mapping[str, JSON]:
        party, challenge = self._party(), self._randomness(NONCE_BYTES)
        self._offered.put(_OFFERED, challenge)
        known = [each.id for each in self._usable()]
        return party.write_creation(_USER, challenge, known, needs_room=self._needs_room)

    def is_proposed(self) -> bool:
        return self._proposed.has(_PROPOSED)

    def propose(self, name: str, credential: Mapping[str, JSON], words: str = "") -> str:
        party, challenge = self._party(), self._offered.take(_OFFERED)
        if challenge is None:
            raise InvalidRequest("No passkey was offered, or it took longer than a minute: begin again.")
        problem = InvalidRequest("This is no passkey that answers what was asked of it.")
        found = party.verify_creation(credential, challenge, problem)
        if found.id in {each.id for each in self._book.passkeys()}:
            raise Conflict("This passkey counts already.")
        made_at = utc(self._clock.seconds())
        words = words or generate_two_words(self._randomness)
        key = Passkey(found.id, name, found.public_key, made_at, found.count, party.site, found.synced)
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
        party, keys = self._party(), self._usable()
        if not keys:
            raise Conflict(_NONE_HERE)
        return party.write_request(challenge, [each.id for each in keys])

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
        return None if key is None else EnrolledKey(KeyKind.PASSKEY, decode_public_key(key.public_key))

    def has_usable(self) -> bool:
        if not self._usable():  # the library, which takes long to import, is needed only if there is a passkey
            return False
        try:
            self._party()
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
        keys = self._book.passkeys()
        key = next((each for each in keys if each.id == credential.get("id")), None)
        if key is None:
            raise refusal("This passkey does not count here.")
        party = find_relying_party(key.site, [*self._addresses(), *(self._elsewhere() if elsewhere else ())])
        problem = refusal("Your passkey's answer does not hold.")
        used = party.verify_use(credential, challenge, key.public_key, key.count, problem)
        # guard of signing: a passkey that was bound to one device stays so
        #    -> vault.test_approvers.PasskeyTests.test_synced_later, instead if False
        if key.synced not in (None, used.synced):
            raise refusal(
                "This passkey says otherwise than before whether it is copied to other devices. Add it again."
            )
        changed = evolve(key, count=used.count, synced=used.synced)
        kept = (changed if each is key else each for each in keys)
        self._book.keep_passkeys(tuple(kept), self._book.passkey_rule())
        return changed

    def _usable(self) -> tuple[Passkey, ...]:
        """Return the passkeys that were created for the current site."""
        site = self.site()
        return tuple(each for each in self._book.passkeys() if each.site == site)

    def _party(self) -> RelyingParty:
        """Return our side of WebAuthn at the present address.

        :raises Conflict: if the library is missing, or the pages have no name that passkeys can be bound to.
        """
        site = self.site()
        if site is None:
            raise Conflict(_NO_NAME)
        import_library()
        return find_relying_party(site, self._addresses())


def refusal(message: str) -> Forbidden:
    """Return the error for a decision that a passkey must sign, or whose passkey was refused."""
    return Forbidden(message, {"passkey": True})
