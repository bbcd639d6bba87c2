"""The objects of the daemon that a feature can use."""

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
    :ivar life: registers functions that are called when the daemon ends.
    :ivar ids: returns a fresh ULID at each call.
    :ivar in_thread: C{in_thread(at_once=N)} returns a function that runs its argument in the reactor's thread pool, at
        most N calls at once.
    :ivar environ: the environment that the daemon was started with; may hold passwords of proxies.
    :ivar own_ports: the ports of the daemon's sites; empty until the sites listen.
    :ivar operator_url: returns the URL of the operator site. Call it only once the site listens.
    :ivar public_urls: further URLs of the pages, at names that stay. Passkeys are made and used there.
    """

    reactor: Any
    life: Life
    ids: Callable[[], str]
    in_thread: Callable[..., Any]
    environ: Mapping[str, str] = field(repr=False)
    own_ports: set[int]
    operator_url: Callable[[], str]
    public_urls: set[str] = field(factory=set)


@frozen(kw_only=True)
class Core:
    """The services of the daemon that a feature can use.

    :ivar files: the features' trusted files, by their class.
    :ivar settings: the values of the features' keys in config.yaml, by key.
    :ivar notices: the rules by which the operator is notified of the features' audit events, by event type.
    :ivar find: returns the object of the given class that an earlier feature started, or None if there is none.
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
    """The daemon's two sites, which listen.

    :ivar routes: the agent site's routes, for calls within this process.
    :ivar ports: the port of the agent site, then the port of the operator site.
    :ivar parts: the dependencies of the operator site's routes.
    """

    routes: IAgentRoutes
    ports: tuple[int, int]
    parts: Any = None
