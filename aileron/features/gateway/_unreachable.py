"""Describes why an upstream could not be reached, for the person who has to fix it."""

from __future__ import annotations

from enum import StrEnum

from twisted.internet.error import (
    ConnectError,
    ConnectionRefusedError,
    DNSLookupError,
    TCPTimedOutError,
    TimeoutError,
    UnknownHostError,
)

from aileron.model.errors import NetworkError


class Cause(StrEnum):
    """The causes of L{UpstreamUnreachable}."""

    DNS = "dns"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    TLS = "tls"
    PROXY = "proxy"
    NETWORK = "network"


class UpstreamUnreachable(NetworkError):
    """The error raised if there is no connection to the upstream. No part of the request was sent.

    The message names hosts and ports, never a path, a header or a proxy's password.
    """

    @classmethod
    def because(cls, cause: Cause, message: str) -> UpstreamUnreachable:
        """Create the error with C{cause} as C{details["cause"]}."""
        return cls(message, {"cause": cause.value})

    @property
    def cause(self) -> Cause:
        """The cause, one of L{Cause}."""
        return Cause(str(self.details["cause"]))


def connecting_failed(error: Exception, who: str) -> UpstreamUnreachable:
    """Return the error that describes a failed connection attempt.

    :param error: the error that a Twisted endpoint raised.
    :param who: the upstream or proxy, with its port.
    """
    match error:
        case DNSLookupError() | UnknownHostError() | ValueError():
            return UpstreamUnreachable.because(Cause.DNS, f"{who} has a name that leads to no address (DNS).")
        case ConnectionRefusedError():
            return UpstreamUnreachable.because(Cause.REFUSED, f"{who} refused the connection: nothing listens there.")
        case TimeoutError() | TCPTimedOutError():
            return UpstreamUnreachable.because(Cause.TIMEOUT, f"{who} did not answer in time.")
        case ConnectError(osError=number) if number is not None:
            return UpstreamUnreachable.because(Cause.NETWORK, f"{who} could not be connected to (error {number}).")
        case _:
            return UpstreamUnreachable.because(Cause.NETWORK, f"{who} could not be connected to.")


def silent(who: str, seconds: float) -> UpstreamUnreachable:
    """Return the error for a peer that did not respond in time.

    :param who: the upstream or proxy.
    """
    return UpstreamUnreachable.because(Cause.TIMEOUT, f"{who} did not answer in {seconds:g} seconds.")
