"""Hosts: how one is written, and whether it is this machine.

Whether a host is this machine is asked for two reasons, and each has an answer that errs to the safe side.
L{is_loopback} is for what is allowed because it stays here, L{may_be_loopback} for what is refused because it might
lead here.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address

from ._networks import Network, is_unspecified, network_of, plain_ipv6, read_address

_MOST_CHARACTERS = 253
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PUNYCODE = "xn--"
_LOCAL_NAMES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet")
_LOOPBACK_V6 = IPv6Address("::1")

PAGES_DOMAIN = "aileron.localhost"
"""The domain below which each start of the daemon has a name of its own for the operator's pages (ADR 66)."""


def read_host(text: str) -> str:
    """Read a host as a URL writes it.

    A name is of labels of ASCII letters, digits, hyphens and underscores (RFC 1123, and what many networks use beside).
    A final dot and percent-encoding are refused.  Programs that connect read a host whose last label is a number as an
    IPv4 address (WHATWG URL, section 3.5), so it must be one in its full form: C{127.1} and C{0x7f.0.0.1} are refused.

    :return: in lower case; an IPv6 address in its plain form and without brackets.
    :raises ValueError: what it must be.
    """
    host = text.lower() if text.isascii() else ""
    if host.startswith("[") and host.endswith("]"):
        address = read_address(host[1:-1])
        if not isinstance(address, IPv6Address):
            raise ValueError("must have a proper address: an IPv6 address without a zone in its brackets")
        return plain_ipv6(address)
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        address = read_address(host)
        if not isinstance(address, IPv4Address):
            raise ValueError("must have a proper address: four decimal numbers, or a name that ends in no number")
        return str(address)
    if len(host) > _MOST_CHARACTERS or not _NAME.fullmatch(host) or not all(map(_decodes, host.split("."))):
        raise ValueError("must have a proper host: of a-z, 0-9, '-' and '.', without a dot at its end")
    return host


def bracketed(host: str) -> str:
    """Write a host as a URL does, an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return whether a host is certainly this machine: C{localhost}, C{127.0.0.0/8} or C{::1}.

    Names below C{localhost} do not count, since a resolver may answer anything for them; nor does an IPv4 address
    inside an IPv6 address, since it may travel over a network before it is taken out.

    :param host: as L{read_host} returns it, or an address that a name resolved to.
    """
    if host == "localhost":
        return True
    address = read_address(host)
    return address == _LOOPBACK_V6 or (isinstance(address, IPv4Address) and address.is_loopback)


def connectable(host: str) -> str:
    """Return the host to connect to for a site of the daemon: for one at C{localhost} it is 127.0.0.1.

    So it is for the names below L{PAGES_DOMAIN}.  No resolver is asked for any of them (RFC 6761, section 6.3): a
    minimal system may know none.

    :param host: as L{read_host} returns it.
    """
    return "127.0.0.1" if host == "localhost" or host.endswith(f".{PAGES_DOMAIN}") else host


def may_be_loopback(host: str) -> bool:
    """Return whether a host may be this machine: C{localhost}, C{*.localhost}, a loopback address or C{0.0.0.0}.

    A final dot, and an IPv4 address inside an IPv6 address, are recognized too.
    """
    bare = _bare(host)
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    return network_of(bare) is Network.LOOPBACK or is_unspecified(bare)


def may_be_private(host: str) -> bool:
    """Return whether a host may be this machine or in a private network, going by its spelling alone.

    Text that is not a valid host counts as private.
    """
    bare = _bare(host).partition("%")[0]
    if read_address(bare) is not None:
        return network_of(bare) is not Network.PUBLIC
    try:
        name = read_host(bare)
    except ValueError:
        return True
    return may_be_loopback(name) or name.endswith(_LOCAL_NAMES)


def _bare(host: str) -> str:
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    return inner.lower().removesuffix(".")


def _decodes(label: str) -> bool:
    """Return whether a label has no Punycode (RFC 3492), or valid Punycode for a name that is not ASCII."""
    if not label.startswith(_PUNYCODE):
        return True
    encoded = label.removeprefix(_PUNYCODE)
    try:
        decoded = encoded.encode("ascii").decode("punycode")
        return not decoded.isascii() and decoded.encode("punycode").decode("ascii") == encoded
    except UnicodeError:
        return False
