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
    """There is no connection to the upstream, and nothing of a request was sent.

    The message names hosts and ports, never a path, a header or a proxy's password.
    """

    @classmethod
    def because(cls, cause: Cause, message: str) -> UpstreamUnreachable:
        """Make the error; C{details["cause"]} holds the cause."""
        return cls(message, {"cause": cause.value})

    @property
    def cause(self) -> Cause:
        """The cause."""
        return Cause(str(self.details["cause"]))


def connecting_failed(error: Exception, who: str) -> UpstreamUnreachable:
    """Tell what it means that no connection came about.

    :param error: as Twisted's endpoints raise them.
    :param who: what was connected to, with its port.
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
    """Somebody said nothing for too long.

    :param who: what was waited for.
    """
    return UpstreamUnreachable.because(Cause.TIMEOUT, f"{who} did not answer in {seconds:g} seconds.")
