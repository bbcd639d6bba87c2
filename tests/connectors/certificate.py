"""Certificates that vouch for themselves, for tests."""

from __future__ import annotations

from functools import cache

from attrs import frozen
from twisted.internet import ssl
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IProtocolFactory, IReactorTime
from twisted.protocols.tls import TLSMemoryBIOFactory

from tests.gateway.certificates import self_signed


@frozen
class Certificate:
    """A key and its certificate."""

    pem: bytes

    @classmethod
    @cache
    def made(cls, name: str) -> Certificate:
        """One for the host C{name}, valid now."""
        return cls(self_signed(name))

    def verifying(self, host: str) -> IOpenSSLClientConnectionCreator:
        """A client's side that trusts this certificate alone."""
        made: IOpenSSLClientConnectionCreator = ssl.optionsForClientTLS(
            host, trustRoot=ssl.Certificate.loadPEM(self.pem)
        )
        return made

    def serving(self, factory: IProtocolFactory, clock: IReactorTime) -> TLSMemoryBIOFactory:
        """A server's side that shows it."""
        return TLSMemoryBIOFactory(ssl.PrivateCertificate.loadPEM(self.pem).options(), False, factory, clock=clock)
