"""What lies in the vault for one channel: its address, or the key that signs what it is sent."""

from __future__ import annotations

from attrs import frozen

from aileron.errors import BindingFailed, VaultLocked
from aileron.interfaces import IBindings
from aileron.values import ChannelSettings

from ._undelivered import Undelivered


@frozen
class Secret:
    """Opened for each message and not kept: with the vault it is locked."""

    _bindings: IBindings
    _channel: ChannelSettings

    def open(self) -> bytes:
        """The secret.

        :raises Undelivered: there is none, or it does not open; not now at least.
        """
        scope, name = self._channel.scope(), self._channel.name
        bound = self._bindings.for_connector(self._channel.fqn)
        if scope is None or not bound:
            raise Undelivered(f"Nothing is bound to it: aileron notification add {name}", again=False)
        if len(bound) > 1:
            raise Undelivered("More than one secret is bound to it: aileron binding revoke", again=False)
        try:
            return self._bindings.credential(bound[0], scope).reveal()
        except VaultLocked:
            raise Undelivered("The vault is locked, and what it needs lies there.", again=False) from None
        except BindingFailed:
            why = f"What is bound to it is for another address: aileron notification remove {name}, then add"
            raise Undelivered(why, again=False) from None
