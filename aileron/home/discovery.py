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
    """The contents of C{daemon.json}.  The file helps clients find the daemon and proves nothing.

    :ivar url: the URL of the agent site.
    :ivar operator_url: the URL of the operator site.
    :ivar pid: the process id that the daemon wrote. L{running_pid} is more reliable.
    :ivar instance: the id of this run of the daemon process.
    :ivar started_at: the start time, in the format of L{aileron.base.json.timestamp}.
    :ivar launch_key: the key that opens sessions.
    :ivar local_key: the key with which commands read, pause and lock without a login, or None if an earlier version of
        the daemon wrote the file.
    :ivar features_off: the features that config.yaml turns off.
    :ivar connector_packages: the packages that the trusted config.yaml lists as sources of connectors.
    :ivar stop_seconds: the most seconds that a stop takes if other daemons share the database, else None.
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
    stop_seconds: float | None = field(default=None, validator=optional(instance_of((int, float))))


def write_discovery(home: Home, discovery: Discovery) -> None:
    """Write C{daemon.json}, replacing an existing one.

    :raises OSError: if it cannot be written.
    """
    text = json.dumps(attrs.asdict(discovery), indent=2) + "\n"
    atomic_write(home.discovery, text.encode())


def read_discovery(home: Home) -> Discovery | None:
    """Return the contents of C{daemon.json}, current or stale, or None if there is no such file.

    :raises InvalidRequest: if the file is damaged.
    :raises Forbidden: if the file belongs to another user, or is a link or no regular file.
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
    """Return the contents of C{daemon.json}, or None if the process that wrote it does not hold the lock now.

    :raises InvalidRequest: if the file is damaged.
    :raises Forbidden: if the file belongs to another user, or is a link or no regular file.
    """
    discovery = read_discovery(home)
    if discovery is None or discovery.pid != running_pid(home):
        return None
    return discovery


def withdraw_discovery(home: Home, instance: str) -> None:
    """Remove C{daemon.json} if the daemon with the id C{instance} wrote it. Idempotent. A damaged file stays.

    :raises Forbidden: if the file belongs to another user, or is a link or no regular file.
    """
    try:
        discovery = read_discovery(home)
    except InvalidRequest:
        return  # Damaged: the next start replaces it.
    if discovery is not None and discovery.instance == instance:
        home.discovery.unlink(missing_ok=True)
