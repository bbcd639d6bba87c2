"""Makes certificates: of an authority that can vouch for some hosts alone, and of each of these hosts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from attrs import frozen
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from aileron.base.addresses import WILDCARD, read_address_block

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_MOST_NAME = 64
_ADDRESSES = [x509.IPAddress(each) for each in map(read_address_block, ("0.0.0.0/0", "::/0")) if each is not None]


@frozen
class Validity:
    """The time in which a certificate is valid: two aware times in UTC."""

    begins: datetime
    ends: datetime


def make_key() -> ec.EllipticCurvePrivateKey:
    """Return a new private key on the curve P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def make_authority(name: str, hosts: Iterable[str], key: PrivateKey, valid: Validity) -> x509.Certificate:
    """Return the certificate of an authority, signed by its own key.

    It has critical name constraints (RFC 5280, section 4.2.1.10), so a program that trusts it believes it for these
    hosts and their subdomains alone, and for no IP address. It cannot vouch for another authority.

    :param hosts: names of hosts, without ports. One that begins with C{*.} stands for all subdomains.
    :param name: the name that programs show. Only its first 64 characters are used.
    """
    names = _name(name)
    constraints = x509.NameConstraints(
        [x509.DNSName(host) for host in sorted({each.removeprefix(WILDCARD) for each in hosts})], _ADDRESSES
    )
    builder = (
        _begin(names, names, key, key, valid)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    # guard of own tools: programs believe our authorities for their hosts alone
    #    -> features.own_tools.test_authority.AuthorityTests.test_constrained
    builder = builder.add_extension(constraints, critical=True)
    return builder.sign(key, SHA256())


def make_leaf(
    host: str, key: PrivateKey, authority: x509.Certificate, authority_key: PrivateKey, valid: Validity
) -> x509.Certificate:
    """Return the certificate of a host's TLS server, signed by an authority."""
    return (
        _begin(_name(host), authority.subject, key, authority_key, valid)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(authority_key, SHA256())
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_MOST_NAME])])


def _begin(
    subject: x509.Name, issuer: x509.Name, key: PrivateKey, signer: PrivateKey, valid: Validity
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid.begins)
        .not_valid_after(valid.ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
