"""The destination of requests to a provider, and the heads of the requests sent there."""

from __future__ import annotations

import re
from typing import Self, cast

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.addresses import may_be_loopback, read_base_url
from aileron.base.http1 import RequestHead, end_to_end
from aileron.model.interfaces.services import IConnectingReactor

from ._admission import Keyed
from ._dialler import Forwarding, dialler, forwarding
from ._pool import UpstreamPool
from ._proxies import Proxies
from ._unreachable import UpstreamUnreachable
from .values import Provider

_HOST = re.compile(rb"\r\n[hH][oO][sS][tT]:").search


@frozen
class Destination:
    """A provider with its connection pool and the fixed parts of its request heads.

    :ivar before: the prefix of every request target.
    :ivar host: the value of the Host field, with the space before it.
    :ivar more: the header lines that a proxy requires, each with its line end.
    :ivar loopback_port: the provider's port if it may be on this machine, else None.
    """

    provider: Provider
    pool: UpstreamPool
    before: bytes
    host: bytes
    more: bytes
    loopback_port: int | None

    @classmethod
    def build(cls, provider: Provider, reactor: IConnectingReactor, proxies: Proxies, pem: str) -> Self:
        """Create the destination of C{provider} and its pool, which connects on the first request.

        The error of an unusable proxy is raised by the connection attempt.

        :param pem: certificates of authorities trusted in addition to the system's.
        """
        pool = UpstreamPool(dialler(reactor, provider, proxies, pem), cast("IReactorTime", reactor))
        try:
            return cls.of(provider, pool, forwarding(provider, proxies))
        except UpstreamUnreachable:  # connecting raises the same error, so the client receives it
            return cls.of(provider, pool, Forwarding())

    @classmethod
    def of(cls, provider: Provider, pool: UpstreamPool, forwarding: Forwarding) -> Self:
        """Create the destination of C{provider} for an existing pool."""
        base = read_base_url(provider.base_url)
        before = forwarding.target_prefix + base.path.encode("ascii")
        host = b" " + base.origin.authority.encode("ascii")
        loopback_port = base.origin.port if may_be_loopback(base.origin.host) else None
        return cls(provider, pool, before, host, forwarding.lines, loopback_port)

    def head(self, head: RequestHead, found: Keyed, path: bytes) -> bytes:
        """Return the head to send: with the provider's Host field, without hop-by-hop fields and gateway key.

        :param found: the target and fields of C{head} without the gateway key.
        :param path: the path without the provider's prefix at the gateway.
        """
        lines = self._with_host(end_to_end(found.lines, head.fields.get(b"connection")))
        return b"".join((head.method, b" ", self.before, path, found.query, b" HTTP/1.1", lines, b"\r\n\r\n"))

    def _with_host(self, lines: bytes) -> bytes:
        """Return the lines with the provider's host as the value of the Host field, which is added if it is missing."""
        called = _HOST(lines)
        if called is None:
            return lines + b"\r\nHost:" + self.host
        end = lines.find(b"\r\n", called.end())
        return b"".join((lines[: called.end()], self.host, b"" if end < 0 else lines[end:]))

    def for_proxy(self, head: bytes) -> bytes:
        """Return the head with the fields that a proxy requires."""
        return b"".join((head[:-2], self.more, b"\r\n")) if self.more else head
