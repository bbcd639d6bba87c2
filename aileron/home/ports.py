"""Stores the ports that the daemon used last, so that the next start can use them again."""

from __future__ import annotations

import json

import attrs
from attrs import field, frozen
from attrs.validators import ge, instance_of, le

from .paths import Home
from .private_files import atomic_write, read_private

_port = field(default=None, validator=attrs.validators.optional([instance_of(int), ge(1), le(65535)]))


@frozen
class Ports:
    """The ports that the daemon tries first when it starts, so that running agents keep reaching it.

    None means that the system chooses the port.
    """

    agent: int | None = _port
    operator: int | None = _port


def save_ports(home: Home, ports: Ports) -> None:
    """Store the ports of both sites for the next start."""
    atomic_write(home.ports, json.dumps(attrs.asdict(ports)).encode() + b"\n")


def load_ports(home: Home) -> Ports:
    """Return the stored ports.  If the file is missing or damaged, return C{Ports()}.

    :raises Forbidden: if the file belongs to another user, or is a link or no regular file.
    """
    data = read_private(home.ports)
    try:
        found = json.loads(data or b"{}")
        return Ports(agent=found.get("agent"), operator=found.get("operator"))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return Ports()
