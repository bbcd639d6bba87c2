"""The composition root: the only place that builds collaborators and hands them to each other.

Run by C{twistd aileron}, or in the foreground by L{serve}.
"""

from __future__ import annotations

import gc
import os
import random
import secrets
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from attrs import define, field, frozen
from twisted.application.service import IService, Service
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import FileLogObserver, Logger, formatEventAsClassicLogText, globalLogBeginner
from twisted.python import usage
from twisted.python.failure import Failure
from twisted.python.logfile import LogFile
from ulid import ULID
from zope.interface import implementer

from aileron import __version__
from aileron.audit import GENESIS, payload_digest, seal
from aileron.connectors import HttpConnector, Registry, system_transport
from aileron.home import (
    Discovery,
    Home,
    Ports,
    acquire_lock,
    find_home,
    load_ports,
    prepare,
    release_lock,
    save_ports,
    withdraw_discovery,
    write_discovery,
)
from aileron.listening import Bound, bind_agent_site, bind_operator_site, unbind
from aileron.manifests import DirectoryCatalogue
from aileron.runner import Collaborators, Runner, build
from aileron.store import Seals, Store, make_store
from aileron.values import DAEMON, AuditQuery, Event, PendingLimits, timestamp, utc
from aileron.vault import DataKey, Operators, VaultFile, read_key

_log = Logger()
_LOOK_SECONDS = 0.5
_DRAIN_SECONDS = 20.0
_LOG_BYTES, _LOG_FILES = 5_000_000, 5
_SALT_BYTES = 16


class Options(usage.Options):
    """What C{twistd aileron} takes."""

    optParameters: ClassVar = [
        ["home", None, None, "State directory; else $AILERON_HOME, else ~/.aileron."],
        ["listen", None, None, "Endpoint string of the agent site; else a remembered or free port of 127.0.0.1."],
        ["operator-listen", None, None, "Endpoint string of the operator site; else likewise, of localhost."],
        ["key-fd", None, None, "Inherited descriptor from which the vault's key is read.", int],
        ["pending-per-session", None, PendingLimits().per_session, "How many approvals of one session may wait.", int],
        ["pending-per-home", None, PendingLimits().per_home, "How many approvals may wait in all.", int],
    ]

    def opt_version(self) -> None:
        """Print the version and exit."""
        sys.stdout.write(f"aileron {__version__}\n")
        raise SystemExit(0)


@frozen
class Settings:
    """What one life of the daemon is told."""

    home: Home
    key: DataKey | None = field(repr=False)
    listen: str | None = None
    operator_listen: str | None = None
    limits: PendingLimits = field(factory=PendingLimits)

    @classmethod
    def read(cls, options: Options) -> Settings:
        """From options, environment and the inherited pipe.

        :raises AileronError: no home can be told.
        :raises ValueError: the pipe brought no key.
        """
        environ = {**os.environ, "AILERON_HOME": options["home"]} if options["home"] else os.environ
        descriptor = options["key-fd"]
        return cls(
            home=find_home(environ),
            key=None if descriptor is None else read_key(descriptor),
            listen=options["listen"],
            operator_listen=options["operator-listen"],
            limits=PendingLimits(options["pending-per-session"], options["pending-per-home"]),
        )


@define(eq=False)
class _Life:
    """What one life has built, so that its end can take it down in the opposite order."""

    endings: list[Callable[[], Any]] = field(factory=list)

    def at_end(self, ending: Callable[[], Any]) -> None:
        """Call C{ending}, which may answer later, before whatever was registered earlier."""
        self.endings.append(ending)

    async def end(self) -> None:
        """Take everything down; what fails is logged and does not keep the rest."""
        while self.endings:
            ending = self.endings.pop()
            try:
                answer = ending()
                if answer is not None:
                    await answer
            except Exception:  # noqa: BLE001 - the shutdown rim: each part gets its chance
                _log.failure("taking down {what}", what=getattr(ending, "__qualname__", repr(ending)))


@implementer(IService)
class AileronService(Service):
    """One life of the daemon.

    :ivar failed: how it failed to start, if it did.
    """

    name: str | None = "aileron"

    def __init__(self, reactor: Any, settings: Settings) -> None:
        self.failed: Failure | None = None
        self._reactor = reactor
        self._settings = settings
        self._life = _Life()
        self._starting: Deferred[None] | None = None

    def startService(self) -> None:
        """Begin to start; a failure is logged, told by L{failed}, and stops the reactor."""
        super().startService()  # type: ignore[no-untyped-call]
        self._starting = Deferred.fromCoroutine(_start(self._reactor, self._settings, self._life))
        self._starting.addErrback(self._give_up)

    def stopService(self) -> Deferred[None]:
        """Stop taking calls, let effects finish, and leave everything closed.  It fires when that is done."""
        super().stopService()  # type: ignore[no-untyped-call]
        if self._starting is not None:
            self._starting.cancel()
        return Deferred.fromCoroutine(self._life.end())

    def _give_up(self, failure: Failure) -> None:
        self.failed = failure
        _log.failure("aileron cannot start", failure)
        sys.stderr.write(f"aileron: cannot start: {failure.getErrorMessage()}\n")
        if self._reactor.running:
            self._reactor.stop()


async def _start(reactor: Any, settings: Settings, life: _Life) -> None:
    home = settings.home
    prepare(home)
    acquire_lock(home)
    life.at_end(lambda: release_lock(home))
    store = await _open_store(reactor, home, life)
    has_history = bool((await store.audit.list(AuditQuery(limit=1))).items)
    vault = VaultFile(home.secrets, reactor, lambda: has_history, settings.key)
    own_ports: set[int] = set()
    runner, connectors = await _start_runner(reactor, settings, store, vault, own_ports, life)
    sites = _Sites(reactor, settings, store, vault, runner, connectors)
    agent, operator = await sites.open(life)
    own_ports.update((agent.port, operator.port))
    await _record_vault(reactor, store, vault)
    sites.announce(life)
    gc.collect()
    gc.freeze()
    _log.info(
        "aileron {version} serves {agent} and {operator}", version=__version__, agent=agent.url, operator=operator.url
    )


async def _open_store(reactor: Any, home: Home, life: _Life) -> Store:
    seals = Seals(GENESIS, seal, payload_digest, lambda: secrets.token_hex(_SALT_BYTES))
    store = make_store(home.database, reactor, reactor, seals)
    life.at_end(store.close)
    await store.open()
    return store


async def _start_runner(
    reactor: Any, settings: Settings, store: Store, vault: VaultFile, own_ports: set[int], life: _Life
) -> tuple[Runner, Registry]:
    home = settings.home
    transport = system_transport(reactor, lambda: own_ports)
    connectors = Registry(
        home.connectors, lambda spec: HttpConnector(spec, transport, reactor, lambda: utc(reactor.seconds()))
    )
    catalogue = DirectoryCatalogue(str(home.actions), int(reactor.seconds() * 1000), reactor)
    runner = build(
        Collaborators(
            runs=store.runs,
            overlay=store.overlay,
            catalogue=catalogue,
            connectors=connectors,
            vault=vault,
            bindings=vault,
            clock=reactor,
            ids=fresh_ids(reactor),
            chance=random.random,
            limits=settings.limits,
        )
    )
    catalogue.refresh()
    await runner.start()
    life.at_end(lambda: runner.stop(_DRAIN_SECONDS))
    _follow(reactor, runner, life)
    return runner, connectors


def _follow(reactor: Any, runner: Runner, life: _Life) -> None:
    """Notice changed files from now on, whatever one look may fail with."""

    def look() -> None:
        try:
            runner.look()
        except Exception:  # noqa: BLE001 - a timer's rim: a LoopingCall stops for good after one failure
            _log.failure("looking at the files")

    looking = LoopingCall(look)
    looking.clock = reactor
    looking.start(_LOOK_SECONDS, now=False)
    life.at_end(looking.stop)


def fresh_ids(reactor: Any) -> Callable[[], str]:
    """ULIDs.  They must differ and need not be secret, so the system is asked for chance once and not at each."""

    def fresh() -> str:
        moment = int(reactor.seconds() * 1000)
        return str(ULID.from_bytes(moment.to_bytes(6, "big") + random.randbytes(10)))  # noqa: S311 - no secret

    return fresh


async def _record_vault(reactor: Any, store: Store, vault: VaultFile) -> None:
    """Put on record that the vault is open, and later that it was locked."""

    def event(type_: str) -> Event:
        return Event(fresh_ids(reactor)(), type_, utc(reactor.seconds()), DAEMON)

    def locked(_: object) -> None:
        recorded = Deferred.fromCoroutine(store.audit.append(event("vault.locked")))
        recorded.addErrback(lambda failure: _log.failure("recording that the vault is locked", failure))

    if vault.ever_unlocked():
        await store.audit.append(event("vault.unlocked"))
        vault.locked().addCallback(locked)


class _Sites:
    """Both listeners over one set of parts."""

    def __init__(
        self, reactor: Any, settings: Settings, store: Store, vault: VaultFile, runner: Runner, connectors: Registry
    ) -> None:
        from aileron.api import (
            COOKIE,
            LAUNCH_KEY,
            PAGE_KEY,
            GuardedSite,
            Parts,
            SiteRules,
            agent_site,
            mint,
            operator_site,
            token_digest,
        )
        from aileron.web import PageParts, pages

        self._reactor, self._settings = reactor, settings
        self._instance = secrets.token_hex(8)
        self._started_at = utc(reactor.seconds())
        self._launch_key = mint(LAUNCH_KEY, secrets.token_bytes)
        self._bound: tuple[Bound, ...] = ()
        operators = Operators(vault, self._instance, self._addresses, reactor)
        self._parts = Parts(
            runner=runner,
            sessions=store.sessions,
            audit=store.audit,
            vault=vault,
            bindings=vault,
            connectors=connectors,
            operators=operators,
            launch_key_digest=token_digest(self._launch_key),
            clock=reactor,
            ids=fresh_ids(reactor),
            randomness=secrets.token_bytes,
            version=__version__,
            started_at=self._started_at,
            review_url=lambda run_id: f"{self._bound[1].url}/approvals/{run_id}",
        )
        self._agent_site = GuardedSite(agent_site(self._parts), SiteRules(), reactor)
        web = pages(PageParts(runner, store.sessions, operators, COOKIE, PAGE_KEY))
        self._operator_site = GuardedSite(operator_site(self._parts, web=web), SiteRules(), reactor)

    def _addresses(self) -> tuple[str, ...]:
        return (self._bound[1].url,) if self._bound else ()

    async def open(self, life: _Life) -> tuple[Bound, Bound]:
        """Listen, with rules that name the ports that were given.  Until they do, everything is refused."""
        from aileron.api import HANDOVER, SiteRules, peer_uid_lookup

        home, settings = self._settings.home, self._settings
        wanted = load_ports(home)
        agent = await bind_agent_site(self._reactor, self._agent_site, wanted.agent, settings.listen)
        life.at_end(lambda: unbind(agent))
        operator = await bind_operator_site(
            self._reactor, self._operator_site, wanted.operator, settings.operator_listen
        )
        life.at_end(lambda: unbind(operator))
        save_ports(home, Ports(agent.port, operator.port))
        self._bound = (agent, operator)
        lookup, uid = peer_uid_lookup(), os.getuid()
        self._agent_site.rules = SiteRules(agent.hosts, peer_uid=lookup, own_uid=uid)
        self._operator_site.rules = SiteRules(operator.hosts, frozenset({HANDOVER}), lookup, uid)
        return agent, operator

    def announce(self, life: _Life) -> None:
        """Say in the home where the daemon is; its end takes that back first."""
        agent, operator = self._bound
        discovery = Discovery(
            url=agent.url,
            operator_url=operator.url,
            pid=os.getpid(),
            instance=self._instance,
            version=__version__,
            started_at=timestamp(self._started_at),
            launch_key=self._launch_key,
        )
        write_discovery(self._settings.home, discovery)
        life.at_end(lambda: withdraw_discovery(self._settings.home, self._instance))


def makeService(options: Options) -> AileronService:
    """What C{twistd} runs: a life that ends the process with a failure if it cannot start."""
    from twisted.internet import reactor

    service = AileronService(reactor, Settings.read(options))
    reactor.addSystemEventTrigger("after", "shutdown", _exit_if_failed, service)
    return service


def _exit_if_failed(service: AileronService) -> None:
    """C{twistd} knows no other way to end with a status after the reactor has run."""
    if service.failed is not None:
        sys.stderr.flush()
        os._exit(1)


def serve(arguments: Sequence[str]) -> int:
    """Run in the foreground, logging to the home's log directory, until a signal ends it.

    :return: the exit status: 0, or 1 if it could not start.
    """
    from twisted.internet import reactor

    options = Options()  # type: ignore[no-untyped-call]
    options.parseOptions(list(arguments))  # type: ignore[no-untyped-call]
    settings = Settings.read(options)
    prepare(settings.home)
    log_file = LogFile("aileron.log", str(settings.home.log), _LOG_BYTES, maxRotatedFiles=_LOG_FILES, defaultMode=0o600)
    observer = FileLogObserver(log_file, formatEventAsClassicLogText)  # type: ignore[arg-type]
    globalLogBeginner.beginLoggingTo([observer], redirectStandardIO=False)
    service = AileronService(reactor, settings)
    reactor.callWhenRunning(service.startService)
    reactor.addSystemEventTrigger("before", "shutdown", service.stopService)
    reactor.run()
    return 0 if service.failed is None else 1
