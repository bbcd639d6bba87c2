"""The bindings that lie in the vault's file."""

from __future__ import annotations

from collections import defaultdict

from attrs import evolve
from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.credentials import KINDS
from aileron.errors import BindingFailed, Conflict, NotFound
from aileron.interfaces import IBindings, ICredential
from aileron.values import Binding, NewBinding, Scope, utc

from ._cipher import DataKey
from ._document import VaultDocument, VaultEntry
from ._errors import VaultDamaged
from ._names import binding_of, check_address, check_binding, check_scope, check_secret
from ._sealing import seal_entry, unseal_entry
from ._vault_file import OpenVault


@implementer(IBindings)
class FileBindings:
    """The bindings of a vault that this is a part of.

    A secret opens only if everything that its entry says is what was sealed.
    """

    _file: OpenVault
    _clock: IReactorTime
    _turns: defaultdict[str, DeferredLock]

    def list(self) -> tuple[Binding, ...]:
        document = self._file.look()
        return tuple(entry.binding for entry in document.entries) if document else ()

    def get(self, name: str) -> Binding | None:
        return next((binding for binding in self.list() if binding.name == name), None)

    def for_connector(self, fqn: str) -> tuple[Binding, ...]:
        return tuple(binding for binding in self.list() if binding.connector == fqn)

    async def set_up(self, new: NewBinding) -> Binding:
        key, document = self._file.opened()
        binding = binding_of(new, utc(self._clock.seconds()), document.entry_revisions + 1)
        if document.find(binding.name):
            raise Conflict(f"There is a binding {binding.name} already.", {"binding": binding.name})
        self._file.write(document.with_entry(seal_entry(document, key, binding, new.secret)))
        return binding

    async def revoke(self, name: str) -> Binding:
        document = self._file.current()
        entry = _find(document, name)
        self._file.write(document.without(name))
        return entry.binding

    async def rebind(self, name: str, scope: Scope, base_url: str | None = None) -> Binding:
        key, document = self._file.opened()
        entry = _find(document, name)
        binding = evolve(entry.binding, scope=scope, base_url=base_url, revision=document.entry_revisions + 1)
        check_binding(binding)
        sealed = seal_entry(document, key, binding, unseal_entry(document, key, entry))
        self._file.write(document.without(name).with_entry(sealed))
        return binding

    def credential(self, binding: Binding, scope: Scope) -> ICredential:
        return _Credential(self._file, binding, scope, self._turns[binding.name])


def _find(document: VaultDocument, name: str) -> VaultEntry:
    entry = document.find(name)
    if entry is None:
        raise NotFound("There is no such binding.")
    return entry


@implementer(ICredential)
class _Credential:
    """One binding's credential; it holds no secret, only the way to it.

    :param turn: its holder opens the binding; others wait, so that what runs out is renewed once.
    """

    def __init__(self, file: OpenVault, binding: Binding, scope: Scope, turn: DeferredLock) -> None:
        self._file = file
        self._binding = binding
        self._scope = scope
        self._turn = turn

    def __repr__(self) -> str:
        return f"<credential {self._binding.name}>"

    async def reveal(self) -> bytes:
        await self._turn.acquire()
        try:
            return await KINDS[self._binding.kind].present(self._find_kept(), self._keep)
        finally:
            self._turn.release()

    def _find_kept(self) -> bytes:
        key, document, entry = self._entry()
        check_address(self._binding)
        check_scope(self._binding, self._scope)
        try:
            return unseal_entry(document, key, entry)
        except VaultDamaged as error:
            raise self._failure("does not open: its entry was altered.") from error

    def _keep(self, renewed: bytes) -> None:
        """Seal C{renewed} in the place of what is kept.  It is the same binding, so what was approved with it holds."""
        key, document, entry = self._entry()
        check_secret(self._binding.kind, renewed)
        sealed = seal_entry(document, key, entry.binding, renewed)
        self._file.write(document.without(entry.binding.name).with_entry(sealed))

    def _entry(self) -> tuple[DataKey, VaultDocument, VaultEntry]:
        key, document = self._file.opened()
        entry = document.find(self._binding.name)
        if entry is None or entry.binding != self._binding:
            raise self._failure("is gone or was changed.")
        return key, document, entry

    def _failure(self, how: str) -> BindingFailed:
        name, connector = self._binding.name, self._binding.connector
        return BindingFailed(f"The binding {name} {how}", {"binding": name, "connector": connector})
