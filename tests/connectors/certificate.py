"""Certificates that vouch for themselves, for tests."""

from __future__ import annotations

from functools import cache

from attrs import frozen
from twisted.internet import ssl
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IProtocolFactory, IReactorTime
from twisted.protocols.tls import TLSMemoryBIOFactory

from tests.features.gateway.certificates import self_signed


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
        return _verifying(self.pem, host)

    def serving(self, factory: IProtocolFactory, clock: IReactorTime) -> TLSMemoryBIOFactory:
        """A server's side that shows it."""
        return TLSMemoryBIOFactory(_options(self.pem), False, factory, clock=clock)


# Read once in a process: tests connect thousands of times.
@cache
def _verifying(pem: bytes, host: str) -> IOpenSSLClientConnectionCreator:
    made: IOpenSSLClientConnectionCreator = ssl.optionsForClientTLS(host, trustRoot=ssl.Certificate.loadPEM(pem))
    return made


@cache
def _options(pem: bytes) -> ssl.CertificateOptions:
    made: ssl.CertificateOptions = ssl.PrivateCertificate.loadPEM(pem).options()
    return made
