"""The certificate authority of one session, which signs for the hosts that are opened for the session alone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from twisted.internet.ssl import CertificateOptions, PrivateCertificate, TLSVersion

from aileron.base.addresses import covers_host
from aileron.base.certificates import Validity, make_authority, make_key, make_leaf

MOST_LEAVES = 64
"""The most hosts of one session whose certificates are kept. They are made again when needed."""

_EARLIER = timedelta(hours=1)
_VALID = timedelta(days=2)
_PROTOCOL = b"http/1.1"


class SessionAuthority:
    """A certificate authority whose private key is only in this process, and is deleted when the session ends.

    Its certificate has critical name constraints (RFC 5280, section 4.2.1.10), so a program that trusts it believes it
    for these hosts and their subdomains alone.

    :ivar pem: the certificate.
    :param hosts: the names of the hosts, without ports. One may begin with C{*.}.
    :param now: an aware time. Certificates are valid from one hour before until two days after it.
    """

    def __init__(self, hosts: Iterable[str], now: datetime) -> None:
        self._hosts = frozenset(hosts)
        present = now.astimezone(UTC)
        self._valid = Validity(present - _EARLIER, present + _VALID)
        self._key, self._leaf_key = make_key(), make_key()
        self._certificate = make_authority("Aileron, for one session", self._hosts, self._key, self._valid)
        self._options: dict[str, CertificateOptions] = {}
        self.pem = self._certificate.public_bytes(Encoding.PEM).decode("ascii")

    def make_options(self, host: str) -> CertificateOptions:
        """Return the TLS server's settings for a host: its certificate, TLS 1.2 or later, and HTTP/1.1 alone by ALPN.

        :raises ValueError: if the authority is not for this host.
        """
        # guard of own tools: no certificate for another host
        #    -> features.own_tools.test_authority.AuthorityTests.test_other_host
        if not any(covers_host(each, host) for each in self._hosts):
            raise ValueError(f"This session's authority does not cover {host}.")
        if host not in self._options:
            # guard of own tools: the names that a wildcard stands for do not fill the memory
            #    -> features.own_tools.test_authority.AuthorityTests.test_many_hosts
            if len(self._options) >= MOST_LEAVES:
                del self._options[next(iter(self._options))]
            self._options[host] = self._build_options(host)
        return self._options[host]

    def _build_options(self, host: str) -> CertificateOptions:
        leaf = make_leaf(host, self._leaf_key, self._certificate, self._key, self._valid)
        key = self._leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        own = PrivateCertificate.loadPEM(leaf.public_bytes(Encoding.PEM) + key)
        return CertificateOptions(
            privateKey=own.privateKey.original,
            certificate=own.original,
            raiseMinimumTo=TLSVersion.TLSv1_2,
            acceptableProtocols=[_PROTOCOL],
        )
