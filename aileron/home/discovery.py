"""C{daemon.json}: how clients find the running daemon."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import attrs
from attrs import field, frozen
from attrs.validators import deep_iterable, instance_of, optional

from aileron.model.errors import InvalidRequest

from .lock import running_pid
from .paths import Home
from .private_files import atomic_write, read_private


def _freeze(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(names)


@frozen
class Discovery:
    """The contents of C{daemon.json}.  It helps to find the daemon and proves nothing.

    :ivar url: the agent site's.
    :ivar operator_url: the operator site's.
    :ivar pid: as the daemon wrote it; L{running_pid} knows better.
    :ivar instance: of this life of the daemon.
    :ivar started_at: as L{aileron.base.json.timestamp} writes it.
    :ivar launch_key: opens sessions.
    :ivar local_key: lets commands read, pause and lock without a login; None: the daemon is of an earlier version.
    :ivar features_off: the features that config.yaml has off.
    :ivar connector_packages: the packages in which config.yaml, as it is trusted, has connectors looked for.
    """

    url: str = field(validator=instance_of(str))
    operator_url: str = field(validator=instance_of(str))
    pid: int = field(validator=instance_of(int))
    instance: str = field(validator=instance_of(str))
    version: str = field(validator=instance_of(str))
    started_at: str = field(validator=instance_of(str))
    launch_key: str = field(repr=False, validator=instance_of(str))
    local_key: str | None = field(default=None, repr=False, validator=optional(instance_of(str)))
    features_off: Sequence[str] = field(default=(), converter=_freeze, validator=deep_iterable(instance_of(str)))
    connector_packages: Sequence[str] = field(default=(), converter=_freeze, validator=deep_iterable(instance_of(str)))


def write_discovery(home: Home, discovery: Discovery) -> None:
    """Say where the daemon is."""
    text = json.dumps(attrs.asdict(discovery), indent=2) + "\n"
    atomic_write(home.discovery, text.encode())


def read_discovery(home: Home) -> Discovery | None:
    """Read C{daemon.json}, true or stale, or L{None} if there is none.

    :raises InvalidRequest: it is damaged.
    :raises Forbidden: it is not ours.
    """
    data = read_private(home.discovery)
    if data is None:
        return None
    try:
        return Discovery(**{key: value for key, value in json.loads(data).items() if key in _DISCOVERY_KEYS})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        # Not chained: a validator's message would carry the launch key.
        raise InvalidRequest(f"{home.discovery} is damaged ({type(error).__name__}); restart the daemon.") from None


_DISCOVERY_KEYS = frozenset(attribute.name for attribute in attrs.fields(Discovery))


def live_discovery(home: Home) -> Discovery | None:
    """Return what C{daemon.json} says if the process that wrote it holds the lock now, else L{None}.

    :raises InvalidRequest: it is damaged.
    :raises Forbidden: it is not ours.
    """
    discovery = read_discovery(home)
    if discovery is None or discovery.pid != running_pid(home):
        return None
    return discovery


def withdraw_discovery(home: Home, instance: str) -> None:
    """Remove C{daemon.json} if that life of the daemon wrote it.  Twice is safe."""
    try:
        discovery = read_discovery(home)
    except InvalidRequest:
        return  # Damaged: the next start replaces it.
    if discovery is not None and discovery.instance == instance:
        home.discovery.unlink(missing_ok=True)
