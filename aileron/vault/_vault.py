"""The daemon's vault: its state, and the bindings that lie in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.errors import BindingFailed, Conflict, NotFound, VaultLocked
from aileron.interfaces import IBindings, ICredential, IVault
from aileron.values import JSON, Binding, NewBinding, Scope, VaultState, utc
from aileron.waiting import Waiting

from ._cipher import DataKey
from ._disk import Disk
from ._document import Document, belongs, seal_entry, unseal_entry
from ._errors import NoVault, VaultDamaged
from ._names import binding_of, check_binding, check_scope
from ._proofs import operator_key

_HINTS = {
    VaultState.LOCKED: "The vault is locked: run `aileron vault unlock` in your own terminal.",
    VaultState.MISSING: "There is no vault yet: run `aileron vault init` in your own terminal.",
    VaultState.LOST: "There is history but no vault file: put secrets.json back from a copy.",
}


@implementer(IVault, IBindings)
class VaultFile:
    """The vault at C{path}, unlocked for as long as it holds the key that it was given.

    No method takes a passphrase: the key comes once, from the parent process, and C{lock} is for the rest of this life.
    What the file says is read anew whenever it changed, and a secret opens only if everything that its entry says is
    what was sealed.  Reading and writing are synchronous, see L{_disk}.

    :param has_history: whether the database remembers a vault; asked only where there is no file.
    :param key: of this vault; L{None}: it starts locked.
    :raises NoVault: there is a key but no file.
    :raises VaultDamaged: the file is damaged, or the key is not its own.
    """

    def __init__(
        self,
        path: Path,
        clock: IReactorTime,
        has_history: Callable[[], bool],
        key: DataKey | None = None,
    ) -> None:
        self._disk = Disk(path)
        self._clock = clock
        self._has_history = has_history
        self._key = key
        self._ever_unlocked = key is not None
        self._waiting = Waiting()
        document = self._disk.read()
        if key is not None:
            _check_key(document, key)

    def __repr__(self) -> str:
        return f"<VaultFile {self.state().value}>"

    def state(self) -> VaultState:
        """See L{IVault}.  A file that vanished while unlocked is lost."""
        if not self._disk.exists():
            return VaultState.LOST if self._ever_unlocked or self._has_history() else VaultState.MISSING
        return VaultState.LOCKED if self._key is None else VaultState.UNLOCKED

    def ever_unlocked(self) -> bool:
        """See L{IVault}."""
        return self._ever_unlocked

    def lock(self) -> None:
        """See L{IVault}.  Operator sessions end because their owner waits for L{locked}."""
        if self._key is not None:
            self._key.wipe()
            self._key = None
            self._waiting.fire()

    def locked(self) -> Deferred[None]:
        """See L{IVault}.  Where there is no key already, it has fired."""
        return self._waiting.wait(over=self._key is None)

    def operator_key(self) -> bytes:
        """The key of the operator's logins.

        :raises VaultLocked: the vault is not unlocked.
        """
        return operator_key(self._unlocked())

    def list(self) -> tuple[Binding, ...]:
        """See L{IBindings}."""
        document = self._disk.read()
        return tuple(entry.binding for entry in document.entries) if document else ()

    def get(self, name: str) -> Binding | None:
        """See L{IBindings}."""
        return next((binding for binding in self.list() if binding.name == name), None)

    def for_connector(self, fqn: str) -> tuple[Binding, ...]:
        """See L{IBindings}."""
        return tuple(binding for binding in self.list() if binding.connector == fqn)

    async def set_up(self, new: NewBinding) -> Binding:
        """See L{IBindings}."""
        key, document = self._unlocked(), self._document()
        binding = binding_of(new, utc(self._clock.seconds()), document.revisions + 1)
        if document.find(binding.name):
            raise Conflict(f"There is a binding {binding.name} already.", {"binding": binding.name})
        entry = seal_entry(document, key, binding, new.secret)
        self._disk.write(document.with_entry(entry))
        return binding

    async def revoke(self, name: str) -> Binding:
        """See L{IBindings}."""
        self._unlocked()
        document = self._document()
        entry = document.find(name)
        if entry is None:
            raise NotFound("There is no such binding.")
        self._disk.write(document.without(name))
        return entry.binding

    async def rebind(self, name: str, scope: Scope, base_url: str | None = None) -> Binding:
        """See L{IBindings}."""
        key, document = self._unlocked(), self._document()
        entry = document.find(name)
        if entry is None:
            raise NotFound("There is no such binding.")
        binding = evolve(entry.binding, scope=scope, base_url=base_url, revision=document.revisions + 1)
        check_binding(binding)
        sealed = seal_entry(document, key, binding, unseal_entry(document, key, entry))
        self._disk.write(document.without(name).with_entry(sealed))
        return binding

    def credential(self, binding: Binding, scope: Scope) -> ICredential:
        """See L{IBindings}."""
        return _Credential(self, binding, scope)

    def open_entry(self, binding: Binding, scope: Scope) -> bytes:
        """The secret of exactly this binding, for its credential.

        :raises VaultLocked: the vault is not unlocked.
        :raises BindingFailed: the entry is gone, changed, sealed for another scope, or does not open.
        """
        key, document = self._unlocked(), self._document()
        about: dict[str, JSON] = {"binding": binding.name, "connector": binding.connector}
        entry = document.find(binding.name)
        if entry is None or entry.binding != binding:
            raise BindingFailed(f"The binding {binding.name} is gone or was changed.", about)
        check_scope(binding, scope)
        try:
            return unseal_entry(document, key, entry)
        except VaultDamaged as error:
            raise BindingFailed(f"The binding {binding.name} does not open: its entry was altered.", about) from error

    def _document(self) -> Document:
        document = self._disk.read()
        if document is None:
            raise self._not_open()
        return document

    def _unlocked(self) -> DataKey:
        if self._key is None or not self._disk.exists():
            raise self._not_open()
        return self._key

    def _not_open(self) -> VaultLocked:
        state = self.state()
        return VaultLocked(_HINTS.get(state, "The vault is not open."), {"state": state.value})


def _check_key(document: Document | None, key: DataKey) -> None:
    if document is None:
        raise NoVault("There is a key, but no vault that it could open.", {"state": VaultState.MISSING.value})
    if not belongs(document, key):
        raise VaultDamaged("The key that was handed over is not this vault's.")


@implementer(ICredential)
class _Credential:
    """One binding's credential; it holds no secret, only the way to it."""

    def __init__(self, vault: VaultFile, binding: Binding, scope: Scope) -> None:
        self._vault = vault
        self._binding = binding
        self._scope = scope

    def __repr__(self) -> str:
        return f"<credential {self._binding.name}>"

    def reveal(self) -> bytes:
        """See L{ICredential}."""
        return self._vault.open_entry(self._binding, self._scope)
