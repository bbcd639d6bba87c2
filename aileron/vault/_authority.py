"""The operator's trust records, pauses, caps, passkeys and passkey rule, as kept in the vault's file."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import implementer

from aileron.interfaces import IBrakes, IPasskeyBook, ITrust
from aileron.values import OwnCap, Passkey, PasskeyRule, Pause, Trusted, TrustKind

from ._document import trust_key
from ._vault_file import OpenVault


@implementer(ITrust, IBrakes, IPasskeyBook)
class FileAuthority:
    """The operator's word in the file of a vault that this is a part of.

    It answers from what was verified, so neither locking nor an altered file changes an answer; nothing is known if the
    vault was never unlocked since the daemon started.
    """

    _file: OpenVault
    _trust: tuple[Trusted, ...] = ()
    _generation = 0

    def generation(self) -> int:
        records = self._file.verified.trust
        if records is not self._trust:
            self._generation += records != self._trust
            self._trust = records
        return self._generation

    def find(self, kind: TrustKind, name: str) -> Trusted | None:
        return next((record for record in self.trusted() if trust_key(record) == (kind, name)), None)

    def trusted(self) -> tuple[Trusted, ...]:
        return self._file.verified.trust

    def put(self, words: Sequence[Trusted]) -> None:
        by_key = {trust_key(record): record for record in (*self._file.current().trust, *words)}
        self._file.change(trust=tuple(by_key[key] for key in sorted(by_key)))

    def remove(self, kind: TrustKind, name: str) -> None:
        kept = (record for record in self._file.current().trust if trust_key(record) != (kind, name))
        self._file.change(trust=tuple(kept))

    def void(self) -> None:
        self._file.change(trust=())

    def pauses(self) -> tuple[Pause, ...]:
        return self._file.verified.pauses

    def keep_pauses(self, pauses: Sequence[Pause]) -> None:
        self._file.change(pauses=tuple(pauses))

    def caps(self) -> tuple[OwnCap, ...]:
        return self._file.verified.caps

    def keep_caps(self, caps: Sequence[OwnCap]) -> None:
        self._file.change(caps=tuple(sorted(caps, key=lambda each: each.name)))

    def passkeys(self) -> tuple[Passkey, ...]:
        return self._file.verified.passkeys

    def passkey_rule(self) -> PasskeyRule:
        return self._file.verified.passkey_rule

    def keep_passkeys(self, keys: Sequence[Passkey], rule: PasskeyRule) -> None:
        self._file.change(passkeys=tuple(keys), passkey_rule=rule)
