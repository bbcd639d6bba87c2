"""Verifies the daemon's TLS certificate, and explains why verification failed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.client import BrowserLikePolicyForHTTPS

from aileron.base.addresses import read_certificates, system_authorities
from aileron.base.outgoing import NotConnected

_OPENSSL_UNVERIFIED = "certificate verify failed"
"""OpenSSL's message for every error in a certificate chain."""

_MAX_FILE_BYTES = 1 << 20


def load_certificates(path: str) -> tuple[Certificate, ...]:
    """Load the authorities from a PEM file.

    :raises ValueError: if the file has no readable certificate. The message repeats none of its content.
    """
    try:
        with Path(path).open("rb") as file:
            return tuple(map(Certificate.loadPEM, read_certificates(file.read(_MAX_FILE_BYTES))))
    except OSError as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None


def make_tls_policy(authorities: tuple[Certificate, ...]) -> Any:
    """Return a TLS policy that verifies chain and host name by these authorities, or by the system's if empty."""
    trusted = authorities or tuple(map(Certificate.loadPEM, system_authorities()))
    return BrowserLikePolicyForHTTPS(trustRootFromCertificates(trusted))


def why_untrusted(error: Exception) -> str | None:
    """Return why the daemon's certificate was not trusted, or None if C{error} is another failure.

    TLS failures other than those of a certificate carry no detail after the handshake.
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
    """Return the package that defines an error's class. For None, return Python's own."""
    return type(error).__module__.partition(".")[0]
