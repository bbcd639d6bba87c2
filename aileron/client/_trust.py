"""Whom we take for the daemon where it is reached by HTTPS."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from OpenSSL.crypto import Error as CertificateUnread
from OpenSSL.SSL import Error as TLSError
from service_identity import CertificateError, VerificationError
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.client import BrowserLikePolicyForHTTPS

_MOST_BYTES = 1 << 20
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def certificates_in(path: str) -> tuple[Certificate, ...]:
    """The authorities in a file in PEM.

    :raises ValueError: there is none that can be read; the message repeats nothing of the file.
    """
    try:
        with Path(path).open("rb") as file:
            blocks = _BLOCK.findall(file.read(_MOST_BYTES))
        found = tuple(Certificate.loadPEM(block) for block in blocks)
    except OSError as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None
    except (CertificateUnread, ValueError):
        raise ValueError("it has a certificate that is none") from None
    if not found:
        raise ValueError("it has no certificate in PEM")
    return found


def policy_of(authorities: tuple[Certificate, ...]) -> Any:
    """What makes connections that verify chain and name, by these alone, or by the system's where there are none."""
    if not authorities:
        return BrowserLikePolicyForHTTPS()
    return BrowserLikePolicyForHTTPS(trustRootFromCertificates(authorities))


def is_untrusted(error: Exception) -> bool:
    """Whether C{error} says that nobody was let in whom we could take for the daemon."""
    reasons = [reason.value for reason in getattr(error, "reasons", ())]
    return any(isinstance(each, (TLSError, VerificationError, CertificateError)) for each in (error, *reasons))
