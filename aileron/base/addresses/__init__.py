"""URLs, hosts, ports, IP addresses and the system's certificate authorities, parsed in one way everywhere.

Text that two parsers could read differently is refused with a L{ValueError}, whose message states the rule and repeats
nothing of the text. This package imports nothing else of Aileron.
"""

from ._certificates import SYSTEM_BUNDLES, find_certificates, read_certificates, system_authorities
from ._hosts import (
    PAGES_DOMAIN,
    WILDCARD,
    bracketed,
    connectable,
    covers_host,
    is_loopback,
    may_be_loopback,
    may_be_private,
    read_host,
)
from ._networks import Address, AddressBlock, Network, may_be_connected, network_of, read_address, read_address_block
from ._overrides import (
    OVERRIDING_HEADERS,
    PARTIAL_HEADERS,
    is_overriding_header,
    is_overriding_parameter,
    is_partial_header,
    overriding_in_body,
    overriding_parameters,
)
from ._urls import (
    BaseUrl,
    Origin,
    Url,
    base_url_problem,
    host_shown,
    is_lasting,
    read_base_url,
    read_host_and_port,
    read_origin,
    read_url,
)

__all__ = [
    "OVERRIDING_HEADERS",
    "PAGES_DOMAIN",
    "PARTIAL_HEADERS",
    "SYSTEM_BUNDLES",
    "WILDCARD",
    "Address",
    "AddressBlock",
    "BaseUrl",
    "Network",
    "Origin",
    "Url",
    "base_url_problem",
    "bracketed",
    "connectable",
    "covers_host",
    "find_certificates",
    "host_shown",
    "is_lasting",
    "is_loopback",
    "is_overriding_header",
    "is_overriding_parameter",
    "is_partial_header",
    "may_be_connected",
    "may_be_loopback",
    "may_be_private",
    "network_of",
    "overriding_in_body",
    "overriding_parameters",
    "read_address",
    "read_address_block",
    "read_base_url",
    "read_certificates",
    "read_host",
    "read_host_and_port",
    "read_origin",
    "read_url",
    "system_authorities",
]
