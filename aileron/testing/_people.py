"""The digests of accounts in memory."""

from __future__ import annotations

from collections.abc import Mapping

from zope.interface import implementer

from aileron.model.interfaces.authority import IPeopleBook

from ._vault import MemoryVault


@implementer(IPeopleBook)
class MemoryPeopleBook:
    """An L{IPeopleBook} in memory.

    :param vault: the vault whose state applies, by default an unlocked one.
    """

    def __init__(self, vault: MemoryVault | None = None) -> None:
        self._vault = MemoryVault() if vault is None else vault
        self._people: Mapping[str, str] = {}

    def people(self) -> Mapping[str, str]:
        return self._people

    def keep_people(self, people: Mapping[str, str]) -> None:
        self._vault.check()
        self._people = dict(people)
