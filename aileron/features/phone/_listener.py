"""The listener of the phone's pages: TLS with a key from the vault, and the checks of each request's head."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from attrs import frozen
from twisted.internet import ssl
from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.internet.protocol import Factory, connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.web.resource import IResource

from aileron.api import Channel, GuardedSite, SiteRules
from aileron.api.channels.checks import RequestRefused
from aileron.base.http1 import CHUNKED, RequestHead

from ._certificates import Certificate

MOST_CONNECTIONS = 64
MOST_BODY_BYTES = 320 * 1024
"""The longest body: a signed list of decisions has at most 256 KiB."""

_REQUEST_SECONDS, _IDLE_SECONDS = 15.0, 30.0
_SAFE = frozenset((b"GET", b"HEAD"))
_WRITES = frozenset((b"POST", b"DELETE"))
_STRICT = {b"Strict-Transport-Security": b"max-age=31536000"}


@frozen
class PublicRules(SiteRules):
    """The rules by which the phone's pages accept requests. They trust no header that a proxy could add.

    :ivar scheme: the scheme of the pages' origin.
    """

    scheme: bytes = b"https"
    # guard against attack: a worker that was left at the public name is removed -> test_phone.PlantedTests.test_worker,
    #    instead removes_workers: bool = False
    removes_workers: bool = True

    def check_browser(self, head: RequestHead) -> None:
        """Refuse requests that a page of another origin could send, unknown service workers, and long bodies.

        :raises RequestRefused: if the request is refused, with 403, 405, 411, 413 or 415.
        :raises StaticAnswer: if the request is a navigation from another site, or for the script of a worker.
        """
        if head.method not in _SAFE | _WRITES:
            raise RequestRefused(405, "Only GET, POST and DELETE are accepted here.")
        # guard of the phone: a write names its page -> phone.test_listener.RulesTests.test_origin
        if head.method in _WRITES and b"origin" not in head.fields:
            raise RequestRefused(403, "Pages of another origin may not speak to this daemon.")
        if head.length == CHUNKED:
            raise RequestRefused(411, "The body needs a Content-Length.")
        if head.length > MOST_BODY_BYTES:
            raise RequestRefused(413, f"The body is longer than {MOST_BODY_BYTES} bytes.")
        super().check_browser(head)


class PublicChannel(Channel):
    """A connection of a browser to the phone's pages."""

    site: PublicSite
    carried: ClassVar[Mapping[bytes, bytes]] = _STRICT

    def connectionMade(self) -> None:
        """Add the connection to the site's open ones, which are closed when the vault is locked."""
        self.site.enter(self)
        super().connectionMade()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Remove the connection from the site's open ones."""
        self.site.leave(self)
        super().connectionLost(reason)


class PublicSite(GuardedSite):
    """The site that serves the phone's pages.

    :ivar channels: the open connections.
    """

    protocol = PublicChannel

    def __init__(self, resource: IResource, rules: SiteRules, reactor: IReactorTime) -> None:
        super().__init__(
            resource,
            rules,
            reactor,
            idle_seconds=_IDLE_SECONDS,
            request_seconds=_REQUEST_SECONDS,
            most_connections=MOST_CONNECTIONS,
        )
        self.channels: set[PublicChannel] = set()

    def enter(self, channel: PublicChannel) -> None:
        """Add a connection to the open ones, all of which L{end_all} closes."""
        self.channels.add(channel)

    def leave(self, channel: PublicChannel) -> None:
        """Remove a connection from the open ones. Idempotent."""
        self.channels.discard(channel)

    def end_all(self) -> None:
        """Close every connection at once."""
        for each in tuple(self.channels):
            each.drop()


def options_of(certificate: Certificate) -> ssl.CertificateOptions:
    """Return the TLS options with which a certificate is presented: TLS 1.2 at least."""
    own = ssl.PrivateCertificate.loadPEM(certificate.key_pem())
    return ssl.CertificateOptions(
        privateKey=own.privateKey.original,
        certificate=own.original,
        extraCertChain=[ssl.Certificate.loadPEM(each.encode()).original for each in certificate.sent_pem()],
        raiseMinimumTo=ssl.TLSVersion.TLSv1_2,
    )


def over_tls(site: PublicSite, options: ssl.CertificateOptions, reactor: IReactorTime) -> TLSMemoryBIOFactory:
    """Return a factory that serves the site over TLS."""
    return TLSMemoryBIOFactory(options, False, site, reactor)


class ClosedFactory(Factory):
    """A factory that closes each new connection before a byte is read, while there is no certificate to serve with.

    :param site: the site, which starts and stops with this factory.
    :param find_inner: returns the factory of a new connection, or None to close it.
    """

    def __init__(self, site: Any, find_inner: Callable[[], Any]) -> None:
        self._site, self._find_inner = site, find_inner

    def doStart(self) -> None:
        """Start the site, when the first port begins to listen."""
        self._site.doStart()

    def doStop(self) -> None:
        """Stop the site, when the last port has stopped."""
        self._site.doStop()

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Return the protocol of a connection, or None to close it."""
        inner = self._find_inner()
        return None if inner is None else inner.buildProtocol(addr)
