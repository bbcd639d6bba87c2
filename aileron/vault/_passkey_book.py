"""The operator's passkeys, as they lie in the vault's file."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from zope.interface import implementer

from aileron.interfaces import IPasskeyBook
from aileron.values import Passkey, PasskeyRule

from ._open_file import OpenFile


@implementer(IPasskeyBook)
class FilePasskeys:
    """Passkeys and their rule.  It answers from what was verified, whatever lies in the file since."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    def passkeys(self) -> tuple[Passkey, ...]:
        """See L{IPasskeyBook}."""
        return self._file.known.passkeys if self._file.known is not None else ()

    def passkey_rule(self) -> PasskeyRule:
        """See L{IPasskeyBook}."""
        return self._file.known.passkey_rule if self._file.known is not None else PasskeyRule()

    def keep_passkeys(self, keys: Sequence[Passkey], rule: PasskeyRule) -> None:
        """See L{IPasskeyBook}."""
        _key, document = self._file.opened()
        changed = evolve(document, passkeys=tuple(keys), passkey_rule=rule)
        if changed != document:
            self._file.write(changed)
