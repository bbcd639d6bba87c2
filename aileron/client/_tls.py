"""Decides by TLS whom we take for the daemon, and says why somebody was not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.client import BrowserLikePolicyForHTTPS

from aileron.base.addresses import read_certificates, system_authorities
from aileron.base.outgoing import NotConnected

_OPENSSL_UNVERIFIED = "certificate verify failed"
"""OpenSSL's words for all that is wrong with a chain."""

_MAX_FILE_BYTES = 1 << 20


def load_certificates(path: str) -> tuple[Certificate, ...]:
    """Load the authorities in a file in PEM.

    :raises ValueError: there is none that can be read; the message repeats nothing of the file.
    """
    try:
        with Path(path).open("rb") as file:
            return tuple(map(Certificate.loadPEM, read_certificates(file.read(_MAX_FILE_BYTES))))
    except OSError as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None


def make_tls_policy(authorities: tuple[Certificate, ...]) -> Any:
    """Make a TLS policy that verifies chain and name, by these authorities, or by the system's where none are given."""
    trusted = authorities or tuple(map(Certificate.loadPEM, system_authorities()))
    return BrowserLikePolicyForHTTPS(trustRootFromCertificates(trusted))


def why_untrusted(error: Exception) -> str | None:
    """Return why nobody was let in whom we could take for the daemon; L{None}: that is not what C{error} says.

    Other failures of TLS than a certificate's say nothing once the handshake is over.
    """
    if isinstance(error, NotConnected):
        spoke_no_tls = "it does not use TLS correctly" if _package_of(error.reason) == "OpenSSL" else None
        return _describe_certificate_fault(error.reason) or spoke_no_tls
    reasons = (reason.value for reason in getattr(error, "reasons", ()))
    return next(filter(None, map(_describe_certificate_fault, (error, *reasons))), None)


def _describe_certificate_fault(error: BaseException | None) -> str | None:
    if _package_of(error) == "service_identity":
        return "its certificate is for another name"
    if _package_of(error) == "OpenSSL" and _OPENSSL_UNVERIFIED in str(error):
        return "its certificate is expired, not yet valid, or not from a trusted authority"
    return None


def _package_of(error: BaseException | None) -> str:
    """Return the package whose class an error is of; of L{None} Python's own."""
    return type(error).__module__.partition(".")[0]
