"""Whom we take for the daemon where it is reached by HTTPS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.client import BrowserLikePolicyForHTTPS

from aileron.addresses import read_certificates, system_authorities

from ._line import NotSecured

_UNVERIFIED = "certificate verify failed"
"""What OpenSSL calls all that is wrong with a chain."""

_MOST_BYTES = 1 << 20


def certificates_in(path: str) -> tuple[Certificate, ...]:
    """The authorities in a file in PEM.

    :raises ValueError: there is none that can be read; the message repeats nothing of the file.
    """
    try:
        with Path(path).open("rb") as file:
            return tuple(map(Certificate.loadPEM, read_certificates(file.read(_MOST_BYTES))))
    except OSError as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None


def policy_of(authorities: tuple[Certificate, ...]) -> Any:
    """What makes connections that verify chain and name, by these alone, or by the system's where there are none."""
    trusted = authorities or tuple(map(Certificate.loadPEM, system_authorities()))
    return BrowserLikePolicyForHTTPS(trustRootFromCertificates(trusted))


def why_untrusted(error: Exception) -> str | None:
    """Why nobody was let in whom we could take for the daemon; L{None}: that is not what C{error} says."""
    if isinstance(error, NotSecured):
        return _unproven(error.reason) or ("it does not speak TLS as it must" if _of_openssl(error.reason) else None)
    reasons = (reason.value for reason in getattr(error, "reasons", ()))
    return next(filter(None, map(_unproven, (error, *reasons))), None)


def _unproven(error: BaseException | None) -> str | None:
    """What was wrong with a certificate; what else breaks TLS may do so long after the handshake."""
    if _room_of(error) == "service_identity":
        return "its certificate is for another name"
    if _of_openssl(error) and _UNVERIFIED in str(error):
        return "its certificate is of an authority that is not trusted here, or not valid now"
    return None


def _of_openssl(error: BaseException | None) -> bool:
    return _room_of(error) == "OpenSSL"


def _room_of(error: BaseException | None) -> str:
    return type(error).__module__.partition(".")[0]
