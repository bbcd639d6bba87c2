"""Hosts: their spelling, and checks whether a host is this machine.

Each of the two checks errs on the safe side.  L{is_loopback} permits what is allowed only on this machine, and
L{may_be_loopback} refuses what is forbidden on this machine.
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

WILDCARD = "*."
"""The beginning of a declared host that stands for all hosts with one label more."""

PAGES_DOMAIN = "aileron.localhost"
"""The domain in which each start of the daemon has its own name for the operator's pages (ADR 66)."""


def read_host(text: str) -> str:
    """Parse a host as a URL writes it.

    A name consists of labels of ASCII letters, digits, hyphens and underscores (RFC 1123, and common practice). A final
    dot and percent-encoding are refused.  Programs that connect read a host whose last label is a number as an IPv4
    address (WHATWG URL, section 3.5), so such a host must be a complete address: C{127.1} and C{0x7f.0.0.1} are
    refused.

    :return: the host in lower case. An IPv6 address is in its plain form, without brackets.
    :raises ValueError: if the host is invalid. The message states the rule.
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


def covers_host(declared: str, host: str) -> bool:
    """Return True if a host is the declared one, or has exactly one label in place of the C{*} of a declared one.

    :param declared: a host such as C{example.org} or C{*.example.org}, with its port if C{host} has one.
    :param host: a result of L{read_host}, with or without a port.
    """
    if not declared.startswith(WILDCARD):
        return declared == host
    label, dot, rest = host.partition(".")
    # guard of own tools: a wildcard stands for one label
    #    -> base.addresses.test_hosts.CoveredHostTests.test_wildcard, instead return host.endswith(declared[1:])
    return bool(label and dot) and WILDCARD + rest == declared


def bracketed(host: str) -> str:
    """Return the host as a URL writes it, with an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return True if a host is certainly this machine: C{localhost}, C{127.0.0.0/8} or C{::1}.

    Names below C{localhost} do not count, because a resolver may return any address for them. An IPv4 address inside an
    IPv6 address does not count, because it may cross a network before it is extracted.

    :param host: a result of L{read_host}, or an address that a name resolved to.
    """
    if host == "localhost":
        return True
    address = read_address(host)
    return address == _LOOPBACK_V6 or (isinstance(address, IPv4Address) and address.is_loopback)


def connectable(host: str) -> str:
    """Return the host to connect to, to reach a site of the daemon.

    For C{localhost} and names below L{PAGES_DOMAIN}, return 127.0.0.1, because a minimal system may not resolve these
    names (RFC 6761, section 6.3). Return other hosts unchanged.

    :param host: a result of L{read_host}.
    """
    return "127.0.0.1" if host == "localhost" or host.endswith(f".{PAGES_DOMAIN}") else host


def may_be_loopback(host: str) -> bool:
    """Return True if a host may be this machine: C{localhost}, C{*.localhost}, a loopback address or C{0.0.0.0}.

    A final dot, and an IPv4 address inside an IPv6 address, are recognized too.
    """
    bare = _bare(host)
    if bare == "localhost" or bare.endswith(".localhost"):
        return True
    return network_of(bare) is Network.LOOPBACK or is_unspecified(bare)


def may_be_private(host: str) -> bool:
    """Return True if a host may be this machine or in a private network, judged by its spelling alone.

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
    """Return True if a label has no Punycode (RFC 3492), or valid Punycode of a name that is not ASCII."""
    if not label.startswith(_PUNYCODE):
        return True
    encoded = label.removeprefix(_PUNYCODE)
    try:
        decoded = encoded.encode("ascii").decode("punycode")
        return not decoded.isascii() and decoded.encode("punycode").decode("ascii") == encoded
    except UnicodeError:
        return False
