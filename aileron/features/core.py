"""The doors of the daemon's core through which a feature acts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

if TYPE_CHECKING:
    from aileron.base.life import Life
    from aileron.connectors import Registry
    from aileron.home.paths import Home
    from aileron.model.features import NoticeRule
    from aileron.model.interfaces.connectors import IConfigFile
    from aileron.model.interfaces.services import IAgentRoutes
    from aileron.runner import Runner
    from aileron.store import Store
    from aileron.vault import Vault


@frozen(kw_only=True)
class DaemonProcess:
    """The daemon's process.

    :ivar reactor: the clock, timers and connections.
    :ivar life: calls what ends a part when the daemon ends.
    :ivar ids: returns a fresh ULID at each call.
    :ivar in_thread: makes a function that calls another in the reactor's thread pool: C{in_thread(at_once=N)}.
    :ivar environ: the environment that the daemon was started with; may hold passwords of proxies.
    :ivar own_ports: the ports that the daemon's sites listen on, once they do.
    :ivar operator_url: returns the URL of the operator site, once it listens.
    """

    reactor: Any
    life: Life
    ids: Callable[[], str]
    in_thread: Callable[..., Any]
    environ: Mapping[str, str] = field(repr=False)
    own_ports: set[int]
    operator_url: Callable[[], str]


@frozen(kw_only=True)
class Core:
    """The daemon's core, as features reach it.

    :ivar files: the features' trusted files, by their class.
    :ivar settings: what config.yaml says below the features' keys, by key.
    :ivar notices: how the operator is notified of the features' audit events, by type.
    :ivar find: returns the part of a class that a feature started before this one, or None.
    """

    home: Home
    runner: Runner
    store: Store
    vault: Vault = field(repr=False)
    connectors: Registry
    files: Mapping[type, IConfigFile]
    settings: Mapping[str, Any]
    notices: Mapping[str, NoticeRule]
    process: DaemonProcess
    find: Callable[[type[Any]], Any] = lambda _: None


@frozen
class ListeningSites:
    """Both sites, once they listen.

    :ivar routes: the agent site's routes, asked in this process.
    :ivar ports: of the agent site and of the operator site.
    """

    routes: IAgentRoutes
    ports: tuple[int, int]
