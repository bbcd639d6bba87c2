"""Certificate authorities: those that this system trusts, and those in a file that the operator names.

OpenSSL itself also reads C{SSL_CERT_FILE} and C{SSL_CERT_DIR}, which every process that starts another can set.  This
module ignores both, and reads only bundles that an administrator can write.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS, Alpine, BSD
)
"""Bundles that only an administrator can write.  The first that holds certificates is used."""

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def system_authorities(bundles: Iterable[str] = SYSTEM_BUNDLES) -> tuple[bytes, ...]:
    """Return the certificates in PEM of the authorities that this system trusts, empty if there is no bundle.

    Invalid certificates in a bundle are skipped.
    """
    for bundle in bundles:
        try:
            found = find_certificates(Path(bundle).read_bytes())
        except OSError:  # not at this path
            continue
        if found:
            return found
    return ()


def find_certificates(pem: bytes) -> tuple[bytes, ...]:
    """Return the valid certificates in C{pem}. Everything else is ignored."""
    return tuple(filter(_is_certificate, _BLOCK.findall(pem)))


def read_certificates(pem: bytes) -> tuple[bytes, ...]:
    """Return the certificates in C{pem}.  Text between them is ignored.

    :raises ValueError: if there is no certificate, or an invalid one. The message repeats nothing of the file.
    """
    blocks = _BLOCK.findall(pem)
    if not blocks:
        raise ValueError("it has no certificate in PEM")
    if not all(map(_is_certificate, blocks)):
        raise ValueError("it has a certificate that is none")
    return tuple(blocks)


def _is_certificate(block: bytes) -> bool:
    from cryptography.x509 import load_pem_x509_certificate  # heavy, and most processes verify no certificates

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the system's certificates may be unusual but valid
        try:
            load_pem_x509_certificate(block)
        except ValueError:
            return False
    return True
