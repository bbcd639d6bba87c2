"""IP addresses, and the kind of network that they belong to."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
AddressBlock = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_SHARED = IPv4Network("100.64.0.0/10")
_SPECIAL_IPV4 = (
    IPv4Network("168.63.129.16/32"),  # Azure's host, which serves its agent
    IPv4Network("100.100.100.200/32"),  # Alibaba Cloud's metadata
    IPv4Network("192.0.0.0/24"),  # protocol assignments (RFC 6890); 192.0.0.192 is Oracle's metadata
    IPv4Network("192.88.99.0/24"),  # relays of 6to4, deprecated (RFC 7526)
)
_SPECIAL_IPV6 = (
    IPv6Network("fd00:ec2::/32"),  # Amazon's metadata, credentials, time and names
    IPv6Network("fd20:ce::254/128"),  # Google Cloud's
    IPv6Network("fd00:c1::a9fe:a9fe/128"),  # Oracle's
    IPv6Network("fd00:42::42/128"),  # Scaleway's
    IPv6Network("fd00:a9fe:a9fe::1/128"),  # Akamai's
    IPv6Network("3fff::/20"),  # documentation (RFC 9637), public to Python before 3.13
)


class Network(Enum):
    """A kind of network.

    C{PUBLIC}: the internet.  C{PRIVATE}: a private or shared network.  C{LOOPBACK}: this machine.  C{NOWHERE}:
    unspecified, multicast, link-local, cloud metadata, special protocols, unassigned, or not an address.
    """

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"
    NOWHERE = "nowhere"


def read_address(text: str) -> Address | None:
    """Parse a complete IP address without brackets.

    :return: the address, or None if the text is not an address or has a zone, which is meaningful on one machine only.
    """
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def read_address_block(text: str) -> AddressBlock | None:
    """Parse a block of addresses such as C{10.0.0.0/8}, or a single address, without brackets.

    :return: the block, or None if the text is neither or has a zone.
    """
    try:
        return None if "%" in text else ip_network(text, strict=False)
    except ValueError:
        return None


def plain_ipv6(address: IPv6Address) -> str:
    """Return an address in the form of RFC 5952 and the WHATWG, in hexadecimal throughout.

    Python 3.13 and later write an address with a mapped IPv4 address with dots.
    """
    text = str(address)
    if "." not in text:
        return text
    low = int(address) & 0xFFFFFFFF
    return f"{text.rpartition(':')[0]}:{low >> 16:x}:{low & 0xFFFF:x}"


def network_of(text: str) -> Network:
    """Return the network that an address belongs to.  An IPv4 address inside an IPv6 address is judged as IPv4."""
    address = read_address(text)
    if address is None:
        return Network.NOWHERE
    address = _effective(address)
    if address.is_unspecified or address.is_multicast or address.is_link_local or _is_special(address):
        return Network.NOWHERE
    if address.is_loopback:
        return Network.LOOPBACK
    if isinstance(address, IPv4Address):
        return _network_of_ipv4(address)
    if address in _PUBLIC_IPV6 and address.is_global:
        return Network.PUBLIC
    return Network.PRIVATE if address.is_private else Network.NOWHERE


def _is_special(address: Address) -> bool:
    """Return True if an address is reserved for a cloud's own services or a protocol, even if registered as public."""
    if isinstance(address, IPv4Address):
        return any(address in block for block in _SPECIAL_IPV4)
    return any(address in block for block in _SPECIAL_IPV6)


def _network_of_ipv4(address: IPv4Address) -> Network:
    if address.is_global:
        return Network.PUBLIC
    return Network.PRIVATE if address.is_private or address in _SHARED else Network.NOWHERE


def may_be_connected(address: str, port: int, own_ports: Collection[int], *, private_network: bool) -> bool:
    """Return True if the daemon may connect to an address on behalf of a client.

    Connections to the daemon itself are refused.

    :param own_ports: the ports that the daemon listens on.
    :param private_network: whether loopback and private addresses are allowed too.
    """
    network = network_of(address)
    if port in own_ports and (network is Network.LOOPBACK or is_unspecified(address)):
        return False
    return network is Network.PUBLIC or (private_network and network in (Network.PRIVATE, Network.LOOPBACK))


def is_unspecified(text: str) -> bool:
    """Return True if an address is unspecified, such as C{0.0.0.0}: Linux connects to this machine for it."""
    address = read_address(text)
    return address is not None and _effective(address).is_unspecified


def _effective(address: Address) -> Address:
    return address if isinstance(address, IPv4Address) else _find_embedded(address) or address


def _find_embedded(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address in a mapped, 6to4, NAT64 or (deprecated) compatible address, or None if there is none."""
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    compatible = int(address)
    return IPv4Address(compatible) if 0xFFFF < compatible <= 0xFFFFFFFF else None
