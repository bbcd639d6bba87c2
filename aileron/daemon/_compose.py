"""Builds the parts of the daemon and connects them."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from attrs import field, frozen
from twisted.logger import Logger

from aileron import __version__
from aileron.actions import DirectoryCatalogue
from aileron.audit import CommitObserver, KeyFile
from aileron.base.life import Life
from aileron.connectors import HttpExchange, HttpTransport, Registry, system_transport
from aileron.features import Core, DaemonProcess, FeatureSet
from aileron.home.lock import acquire_lock, release_lock
from aileron.home.paths import prepare
from aileron.runner import Collaborators, OtherDaemons, build, remember_older
from aileron.store import SharedStore, Store
from aileron.vault import Approvers, Operators, Passkeys, Renewals, SshKeys, Vault

from ._approver_rules import TrustedRules
from ._config_file import ConfigFile
from ._connectors import ConnectorMaker
from ._drain import Drain
from ._log import DaemonLog
from ._process import fresh_ids, in_thread, settle_heap
from ._record import report_strays, start_recording, take_over
from ._settings import DaemonSettings
from ._several import Company
from ._sites import LoginServices, Services, Sites
from ._store import StoreNews, find_place, open_store, tuning_of

_log = Logger()
_LOOK_SECONDS = 0.5
_DRAIN_SECONDS = 20.0
_INSTANCE_BYTES = 8

Around: TypeAlias = Callable[[Collaborators], Collaborators]


@frozen
class _Own:
    """The daemon's own addresses, and the transport of connectors, which refuses to connect to them.

    :ivar transport: sends HTTP requests to any address but the daemon's own.
    :ivar ports: the ports of both sites, to which no connector may connect.
    :ivar urls: the URLs of the operator site.
    :ivar public_urls: further URLs of the pages, at host names that stay the same. Passkeys are made and used there.
    :ivar instance: the id of this process, which every login and signature names.
    """

    transport: HttpTransport
    ports: set[int]
    urls: set[str] = field(factory=set)
    public_urls: set[str] = field(factory=set)
    instance: str = field(factory=partial(secrets.token_hex, _INSTANCE_BYTES))


async def start(
    reactor: Any,
    settings: DaemonSettings,
    life: Life,
    around: Around | None = None,
    known: FeatureSet | None = None,
    log: DaemonLog | None = None,
) -> None:
    """Build every part and serve; register with C{life} how each part is stopped.

    :param around: a function that wraps the collaborators of the runner, for crash tests.
    :param known: the features that may be on, or None for those that ship with Aileron.
    :param log: the daemon's own log, or None if this process has another one.
    :raises Exception: if a part fails to start. C{life} stops the parts built before it.
    """
    from aileron.api import CHECK_SECONDS

    home = settings.home
    prepare(home)
    acquire_lock(home)
    life.at_end(lambda: release_lock(home))
    observer = CommitObserver(KeyFile(home.audit_key))
    news = StoreNews(reactor)
    ports: set[int] = set()
    own = _Own(system_transport(reactor, lambda: ports), ports)
    renewals = Renewals(HttpExchange(own.transport, reactor), news.report)
    vault = Vault(home.secrets, reactor, lambda: news.has_history, settings.key, renewals)
    config_file = ConfigFile(home, vault, known or FeatureSet(), settings.confirmed_with(vault))
    settings = settings.over(config_file.config)
    tuning = tuning_of(settings.config.store)
    if log is not None:
        log.begin(config_file.log_format, tuning.process.id if tuning.several else own.instance)
    store = await open_store(reactor, find_place(home, settings.config.store), tuning, observer, news, life)
    company = None
    if store.shared is not None:
        company = Company(reactor, store, store.shared, vault)
        await company.join(life)
        config_file.require_trusted()
    life.at_end(vault.at_rest)
    await remember_older(vault, store.watermarks, vault.refresh)
    signer = await take_over(reactor, settings.config.audit, store, vault, observer, life)
    services = await _start_services(reactor, settings, store, vault, config_file, own, life, around)
    await config_file.trust_confirmed(services.runner.trust)
    signer.vouch()
    if company is not None:
        company.listen(services.runner, life)
    sites = Sites(reactor, settings, store, vault, services, signer)
    agent, operator = await sites.open(life)
    own.ports.update((agent.port, operator.port))
    own.urls.add(operator.url)
    await sites.serve()
    await start_recording(reactor, settings.config.audit, store, vault, signer, life)
    await sites.end_orphaned_sessions()
    life.repeat(reactor, CHECK_SECONDS, sites.end_orphaned_sessions, to_its_end=True)
    if company is not None:
        drain = Drain(reactor, settings.config.store, sites, company, services.runner)
        life.at_end(drain.run)
    sites.announce(life)
    settle_heap()
    _log.info(
        "aileron {version} serves {agent} and {operator}", version=__version__, agent=agent.url, operator=operator.url
    )
    _watch_turns(sites, life)


async def _start_services(
    reactor: Any,
    settings: DaemonSettings,
    store: Store,
    vault: Vault,
    config_file: ConfigFile,
    own: _Own,
    life: Life,
    around: Around | None,
) -> Services:
    files = config_file.features.trusted_files(settings.home, vault)
    root, strays = str(settings.home.root), report_strays(reactor, store)
    maker = ConnectorMaker(reactor, own.transport, root, strays, features=config_file.features)
    _stop_with(maker, vault, life)
    connectors = Registry(settings.home.connectors, maker.workshop, settings.config.connector_packages)
    logins = _make_logins(reactor, vault, own)
    catalogue = DirectoryCatalogue(str(settings.home.actions), int(reactor.seconds() * 1000))
    collaborators = Collaborators(
        runs=store.runs,
        audit=store.audit,
        contents=store.contents,
        watermarks=store.watermarks,
        catalogue=catalogue,
        connectors=connectors,
        vault=vault,
        bindings=vault,
        trust=vault,
        grants=vault.grants,
        control=vault,
        settings=(config_file, *files),
        clock=reactor,
        ids=fresh_ids(reactor),
        chance=random.random,
        limits=settings.config.pending,
        monotonic=time.monotonic,
        operator_limits=vault,
        approvers=logins.approvers,
        may_send=store.may_send,
        is_removed=vault.is_removed,
        accounts=vault.people,
        approver_rules=TrustedRules(vault, config_file, store.contents.get).load,
        others=None if store.shared is None else _find_others(store.shared, vault),
    )
    runner = build(around(collaborators) if around else collaborators)
    catalogue.refresh()
    life.at_end(lambda: runner.stop(_DRAIN_SECONDS))
    await runner.start()
    life.repeat(reactor, _LOOK_SECONDS, runner.check_changes)
    core = Core(
        home=settings.home,
        runner=runner,
        store=store,
        vault=vault,
        connectors=connectors,
        files={type(each): each for each in files},
        settings=config_file.config.of_features,
        notices=config_file.features.notices(),
        process=_this_process(reactor, settings, life, own),
    )
    return Services(runner, connectors, logins, await config_file.features.start(core))


def _find_others(shared: SharedStore, vault: Vault) -> OtherDaemons:
    return OtherDaemons(refresh_vault=vault.refresh, rate_limits=shared.rate_limits, call_counts=shared.call_counts)


def _stop_with(maker: ConnectorMaker, vault: Vault, life: Life) -> None:
    """Stop local servers of connectors with the daemon. They forget credentials when the vault is locked."""
    life.at_end(maker.loop.stop)
    life.at_end(maker.servers.stop)
    vault.locked().addCallback(lambda _: maker.servers.forget_credentials())


def _make_logins(reactor: Any, vault: Vault, own: _Own) -> LoginServices:
    """Make the services for the operator's logins and keys."""
    passkeys = Passkeys(vault, lambda: own.urls, reactor, elsewhere=lambda: own.public_urls)
    operators = Operators(vault, own.instance, lambda: own.urls, reactor)
    ssh_keys = SshKeys(vault, reactor)
    approvers = Approvers(passkeys, own.instance, operators.require_key, reactor, ssh_keys=ssh_keys)
    return LoginServices(own.instance, operators, passkeys, approvers)


def _this_process(reactor: Any, settings: DaemonSettings, life: Life, own: _Own) -> DaemonProcess:
    """Return the object by which features use the daemon process: its reactor, threads, ids and addresses."""
    return DaemonProcess(
        reactor=reactor,
        life=life,
        ids=fresh_ids(reactor),
        in_thread=partial(in_thread, reactor),
        environ=settings.environ,
        own_ports=own.ports,
        operator_url=lambda: next(iter(own.urls)),
        public_urls=own.public_urls,
    )


def _watch_turns(sites: Sites, life: Life) -> None:
    """Count and log iterations of the reactor that take too long, from now until the daemon stops."""
    if sites.watchdog is None:
        _log.info("this reactor does not measure its turns: long ones are not noticed")
        return
    life.at_end(sites.watchdog.stop)
    sites.watchdog.start()
