"""The ports that the daemon had last."""

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
    """The ports to try first, so that agents survive a restart; L{None}: let the system choose."""

    agent: int | None = _port
    operator: int | None = _port


def save_ports(home: Home, ports: Ports) -> None:
    """Remember them."""
    atomic_write(home.ports, json.dumps(attrs.asdict(ports)).encode() + b"\n")


def load_ports(home: Home) -> Ports:
    """Return the ports that were remembered; none where nothing useful was.  A wish only: a damaged file is no fault.

    :raises Forbidden: the file is not ours.
    """
    data = read_private(home.ports)
    try:
        found = json.loads(data or b"{}")
        return Ports(agent=found.get("agent"), operator=found.get("operator"))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return Ports()
