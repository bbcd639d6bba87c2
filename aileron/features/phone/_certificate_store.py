"""Stores the TLS certificate of the phone's pages, and its key, in the vault."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import utc
from aileron.credentials import DEFAULT_KIND
from aileron.model.errors import Conflict
from aileron.model.interfaces.vault import IBindings
from aileron.model.vault import Binding, NewBinding

from ._certificates import Certificate, is_due, make_certificate, read_given, renew
from .values import IDENTITY, SERVICE, TARGET, PhoneSettings


@frozen(eq=False)
class CertificateStore:
    """The TLS certificate of the phone's pages, which is stored in the vault."""

    _settings: PhoneSettings
    _bindings: IBindings
    _clock: IReactorTime

    def find(self) -> Binding | None:
        """Return the binding under which the certificate's key is stored in the vault, or None if there is none."""
        return next(iter(self._bindings.for_connector(TARGET)), None)

    async def load(self) -> Certificate | None:
        """Return the certificate, or None if there is none. If it expires soon, renew and store it first.

        :raises VaultLocked, BindingFailed: if it cannot be decrypted.
        :raises Conflict: if the binding does not contain a certificate.
        :raises StoreUnavailable: if it cannot be stored.
        """
        found = self.find()
        if found is None:
            return None
        secret = await self._bindings.credential(found, self._settings.scope()).reveal()
        try:
            certificate = Certificate.read(secret)
        except ValueError:
            raise Conflict("What is bound to phone://tls is not a certificate. Revoke it, and make one.") from None
        if is_due(certificate, self._settings.host, self._now()):
            certificate = self._renew(certificate)
            await self._bindings.replace(found.name, certificate.write())
        return certificate

    async def make(self) -> Certificate:
        """Return the certificate. If there is none, make it first.

        :raises VaultLocked, BindingFailed: if it cannot be decrypted or stored.
        :raises Conflict: if the binding does not contain a certificate.
        :raises StoreUnavailable: if it cannot be stored.
        """
        found = await self.load()
        return found or await self._keep(make_certificate(self._settings.host, self._now()))

    async def put(self, chain: str, key: str) -> Certificate:
        """Store a certificate that the user brings, in place of the one before.

        :raises InvalidRequest: if it cannot be used. Nothing is stored.
        """
        return await self._keep(read_given(chain, key, self._settings.host, self._now()))

    def _renew(self, certificate: Certificate) -> Certificate:
        """Return C{certificate} with a new key, signed by its own certificate authority. Nothing is stored.

        If the authority was made for another host name than the configured one, return a new authority and certificate.
        """
        renewed = renew(certificate, self._settings.host, self._now())
        told = certificate.chain[-1].subject.rfc4514_string()
        return (
            renewed
            if told.endswith(f" of {self._settings.host}"[:50])
            else make_certificate(self._settings.host, self._now())
        )

    async def _keep(self, certificate: Certificate) -> Certificate:
        found = self.find()
        if found is not None:
            await self._bindings.revoke(found.name)
        new = NewBinding(DEFAULT_KIND, SERVICE, IDENTITY, TARGET, certificate.write(), scope=self._settings.scope())
        await self._bindings.set_up(new)
        return certificate

    def _now(self) -> datetime:
        return utc(self._clock.seconds())
