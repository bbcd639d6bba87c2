"""The operator's trust records, pauses, caps, passkeys and passkey rule, as kept in the vault's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve
from zope.interface import implementer

from aileron.interfaces import IBrakes, IPasskeyBook, ITrust
from aileron.values import OwnCap, Passkey, PasskeyRule, Pause, Trusted, TrustKind

from ._document import VaultDocument, trust_key
from ._vault_file import OpenVault


@implementer(ITrust)
class FileTrust:
    """Trust.  It answers from what was verified, so neither locking nor an altered file changes an answer."""

    def __init__(self, file: OpenVault) -> None:
        self._file = file
        self._records: tuple[Trusted, ...] = ()
        self._by_name: Mapping[tuple[TrustKind, str], Trusted] = {}
        self._generation = 0

    def generation(self) -> int:
        """Return a number that grows whenever the verified trust records change."""
        self._refresh()
        return self._generation

    def find(self, kind: TrustKind, name: str) -> Trusted | None:
        """Return the verified trust record of one file, or L{None}."""
        self._refresh()
        return self._by_name.get((kind, name))

    def trusted(self) -> tuple[Trusted, ...]:
        """Return all verified trust records."""
        self._refresh()
        return self._records

    def put(self, words: Sequence[Trusted]) -> None:
        """Write trust records into the vault's file, in one write."""
        _key, document = self._file.opened()
        self._become(document, document.trusting(words))

    def remove(self, kind: TrustKind, name: str) -> None:
        """Remove one trust record from the vault's file."""
        _key, document = self._file.opened()
        self._become(document, document.distrusting(kind, name))

    def void(self) -> None:
        """Remove all trust records from the vault's file."""
        _key, document = self._file.opened()
        self._become(document, evolve(document, trust=()))

    def _become(self, document: VaultDocument, changed: VaultDocument) -> None:
        if changed.trust != document.trust:
            self._file.write(changed)

    def _refresh(self) -> None:
        records = self._file.known.trust if self._file.known is not None else ()
        if records is self._records:
            return
        if records != self._records:
            self._generation += 1
            self._by_name = {trust_key(record): record for record in records}
        self._records = records


@implementer(IBrakes)
class FileBrakes:
    """Pauses and caps.  It answers from what was verified, so neither locking nor an altered file changes an answer."""

    def __init__(self, file: OpenVault) -> None:
        self._file = file

    def pauses(self) -> tuple[Pause, ...]:
        """Return the verified pauses; none if the vault was never unlocked since the daemon started."""
        return self._file.known.pauses if self._file.known is not None else ()

    def keep_pauses(self, pauses: Sequence[Pause]) -> None:
        """Replace the pauses in the vault's file."""
        _key, document = self._file.opened()
        self._replace(document, evolve(document, pauses=tuple(pauses)))

    def caps(self) -> tuple[OwnCap, ...]:
        """Return the verified caps; none if the vault was never unlocked since the daemon started."""
        return self._file.known.caps if self._file.known is not None else ()

    def keep_caps(self, caps: Sequence[OwnCap]) -> None:
        """Replace the caps in the vault's file, sorted by name."""
        _key, document = self._file.opened()
        self._replace(document, evolve(document, caps=tuple(sorted(caps, key=lambda each: each.name))))

    def _replace(self, document: VaultDocument, changed: VaultDocument) -> None:
        if changed != document:
            self._file.write(changed)


@implementer(IPasskeyBook)
class FilePasskeys:
    """Passkeys and their rule.  It answers from what was verified, whatever lies in the file since."""

    def __init__(self, file: OpenVault) -> None:
        self._file = file

    def passkeys(self) -> tuple[Passkey, ...]:
        """Return the verified passkeys; none if the vault was never unlocked since the daemon started."""
        return self._file.known.passkeys if self._file.known is not None else ()

    def passkey_rule(self) -> PasskeyRule:
        """Return the verified rule; the default one if the vault was never unlocked since the daemon started."""
        return self._file.known.passkey_rule if self._file.known is not None else PasskeyRule()

    def keep_passkeys(self, keys: Sequence[Passkey], rule: PasskeyRule) -> None:
        """Replace the passkeys and their rule in the vault's file, in one write."""
        _key, document = self._file.opened()
        changed = evolve(document, passkeys=tuple(keys), passkey_rule=rule)
        if changed != document:
            self._file.write(changed)
