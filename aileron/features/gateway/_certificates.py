"""The certificate authorities for upstreams, and the errors for certificates that fail verification."""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Mapping
from functools import cache

from attrs import define, field

from aileron.base.addresses import SYSTEM_BUNDLES, system_authorities

from ._unreachable import Cause, UpstreamUnreachable

_UNKNOWN = "nobody that this machine trusts vouches for it (gateway.ca_certificates of config.yaml adds authorities)"

_FAULTS: Mapping[int, str] = {
    2: _UNKNOWN,
    9: "it is not valid yet (is this machine's clock right?)",
    10: "it has expired (is this machine's clock right?)",
    18: "it is self-signed (gateway.ca_certificates of config.yaml can make it trusted)",
    19: _UNKNOWN,
    20: _UNKNOWN,
    21: _UNKNOWN,
    23: "it has been revoked",
    62: "it belongs to another host",
    64: "it belongs to another address",
}
"""The descriptions of verification failures, by OpenSSL's number (X509_V_ERR_…)."""


@define(eq=False)
class Identity:
    """The identity that a peer must prove, and the TLS session that the next handshake may resume.

    :ivar context: the TLS context that verifies the peer.
    :ivar host: the host that the peer's certificate must name: a name, or an address without brackets.
    :ivar who: the peer's name in errors.
    """

    context: ssl.SSLContext
    host: str
    who: str
    _session: ssl.SSLSession | None = field(default=None, repr=False)

    def secure(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """Create the client side of a TLS connection whose handshake has not started."""
        return self.context.wrap_bio(incoming, outgoing, server_hostname=self.host, session=self._session)

    def remember(self, session: ssl.SSLSession | None) -> None:
        """Store the TLS session for the next handshake."""
        self._session = session


@cache
def verifying(pem: str, bundles: tuple[str, ...] = SYSTEM_BUNDLES) -> ssl.SSLContext:
    """Create the TLS context that verifies upstreams: TLS 1.2 at least, HTTP/1.1 only.

    Upstreams with equal authorities share one context, because root certificates need much memory.

    :param pem: certificates of authorities in addition to the system's, or an empty text.
    :raises UpstreamUnreachable: if C{pem} cannot be parsed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.options |= ssl.OP_NO_RENEGOTIATION  # then a write never waits for a read
    context.set_alpn_protocols(["http/1.1"])
    _trust_system(context, bundles)
    _trust(context, pem)
    return context


def handshake_failed(error: ssl.SSLError, who: str) -> UpstreamUnreachable:
    """Return the error that describes a failed TLS handshake.

    :param who: the upstream, with its port.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        fault = _FAULTS.get(error.verify_code, f"it does not verify ({error.verify_message})")
        return UpstreamUnreachable.because(Cause.TLS, f"The certificate of {who} is refused: {fault}.")
    if error.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"}:
        return UpstreamUnreachable.because(Cause.TLS, f"{who} does not speak TLS.")
    return UpstreamUnreachable.because(
        Cause.TLS, f"The TLS handshake with {who} failed ({error.reason or 'no reason given'})."
    )


def _trust_system(context: ssl.SSLContext, bundles: Iterable[str]) -> None:
    if found := system_authorities(bundles):
        context.load_verify_locations(cadata=b"\n".join(found).decode("ascii"))


def _trust(context: ssl.SSLContext, pem: str) -> None:
    if not pem.strip():
        return
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        message = "gateway.ca_certificates of config.yaml holds no certificates that can be read."
        raise UpstreamUnreachable.because(Cause.TLS, message) from None
