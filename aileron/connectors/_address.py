"""Which network addresses a connector may be connected to, whatever its host name resolves to."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_NAT64 = IPv6Network("64:ff9b::/96")
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_SHARED = tuple(map(ip_address, ("100.64.0.0", "100.127.255.255")))


def effective(text: str) -> Address | None:
    """The address that packets to C{text} end at, an embedded IPv4 address taken out.

    :return: L{None} if it is no address, or one with a zone.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    return None if address.scope_id else _embedded(address) or address


def permitted(text: str, *, private: bool, plain: bool) -> bool:
    """Whether a connection to C{text} may be made.

    :param private: whether the connector declares C{private_network}: then loopback and private networks are allowed.
    :param plain: whether it is without TLS, which is for loopback only.
    """
    address = effective(text)
    if address is None or never(address):
        return False
    if plain:
        return private and address.is_loopback
    return is_public(address) or (private and is_private(address))


def never(address: Address) -> bool:
    """Whether nobody may connect there: unspecified, multicast, link-local (cloud metadata among them)."""
    return address.is_unspecified or address.is_multicast or address.is_link_local


def is_public(address: Address) -> bool:
    """Whether it is an address of the public internet."""
    if isinstance(address, IPv6Address):
        return address in _PUBLIC_IPV6 and address.is_global
    return address.is_global


def is_private(address: Address) -> bool:
    """Whether it is loopback, or belongs to a private or shared network."""
    return address.is_loopback or address.is_private or _is_shared(address)


def is_loopback(text: str) -> bool:
    """Whether C{text} is an address of this machine's loopback."""
    address = effective(text)
    return address is not None and address.is_loopback


def _is_shared(address: Address) -> bool:
    first, last = _SHARED
    return isinstance(address, IPv4Address) and int(first) <= int(address) <= int(last)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address in a mapped, 6to4, NAT64 or (long deprecated) compatible address."""
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    compatible = int(address)
    return IPv4Address(compatible) if 0xFFFF < compatible <= 0xFFFFFFFF else None
