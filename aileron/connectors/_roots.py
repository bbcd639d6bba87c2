"""The certificate authorities that this system trusts, whatever the environment says.

OpenSSL's own way to them obeys C{SSL_CERT_FILE} and C{SSL_CERT_DIR}, and reads the file anew for each connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from cryptography.x509 import load_pem_x509_certificate
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import Certificate, optionsForClientTLS, trustRootFromCertificates

from aileron.values import AUTHORITIES

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def verifying(places: Iterable[str] = AUTHORITIES) -> Callable[[str], IOpenSSLClientConnectionCreator]:
    """From a host name to what verifies it by the system's authorities, which are read once, when first needed.

    Where there are none, no certificate is good.
    """

    @cache
    def roots() -> Any:
        return trustRootFromCertificates(next(filter(None, map(_certificates, places)), []))

    def verify(host: str) -> IOpenSSLClientConnectionCreator:
        made: IOpenSSLClientConnectionCreator = optionsForClientTLS(host, trustRoot=roots())
        return made

    return verify


def _certificates(place: str) -> list[Certificate]:
    try:
        bundle = Path(place).read_bytes()
    except OSError:  # it is at another place
        return []
    return list(_sound(_BLOCK.findall(bundle)))


def _sound(blocks: Iterable[bytes]) -> Iterator[Certificate]:
    for block in blocks:
        try:
            load_pem_x509_certificate(block)
        except ValueError:  # what cannot be read vouches for nobody
            continue
        yield Certificate.loadPEM(block)
