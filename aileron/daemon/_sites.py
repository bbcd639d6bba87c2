"""Builds both sites from one set of parts, binds them, and announces them in the home."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred

from aileron import __version__
from aileron.actions import DirectoryCatalogue
from aileron.audit import CheckpointSigner
from aileron.base.addresses import PAGES_DOMAIN, is_lasting, read_origin
from aileron.base.json import timestamp, utc
from aileron.base.life import Life
from aileron.connectors import Registry
from aileron.features import ListeningSites, RunningFeatures
from aileron.home.discovery import Discovery, withdraw_discovery, write_discovery
from aileron.home.ports import Ports, load_ports, save_ports
from aileron.runner import Runner
from aileron.store import Store
from aileron.vault import Approvers, Operators, Passkeys, Vault, generate_letters

from ._config import Config
from ._config_file import HomeActionFiles
from ._drain import longest_stop
from ._listening import Bound, bind_agent_site, bind_operator_site, unbind
from ._process import allow_descriptors, fresh_ids, in_thread, most_connections
from ._settings import DaemonSettings
from ._watchdog import watchdog_of

_LABEL_LETTERS = 10
"""43 bits: more names than an attacker could have open in a browser beforehand."""


@frozen
class LoginServices:
    """The operator's logins and keys in this daemon process.

    :ivar instance: the id of this process, which every login and signature names.
    """

    instance: str
    operators: Operators
    passkeys: Passkeys
    approvers: Approvers


@frozen
class Services:
    """The services that both sites call."""

    runner: Runner
    connectors: Registry
    logins: LoginServices
    features: RunningFeatures


class Sites:
    """Both sites with the parts of the daemon that they call.

    :ivar watchdog: counts long iterations of the reactor; not yet started. None if this reactor does not measure them.
    """

    _bound: tuple[Bound, ...] = ()
    _stops = False

    def __init__(
        self,
        reactor: Any,
        settings: DaemonSettings,
        store: Store,
        vault: Vault,
        services: Services,
        signer: CheckpointSigner,
    ) -> None:
        from aileron import api

        self._wake = store.wake
        self._reactor, self._settings, self._started_at = reactor, settings, utc(reactor.seconds())
        logins = services.logins
        self._instance, (self._launch_key, self._local_key) = logins.instance, _mint_keys()
        self.watchdog = watchdog_of(reactor)
        self._parts = api.Dependencies(
            submission=services.runner.submission,
            decisions=services.runner.decisions,
            trust=services.runner.trust,
            grants=services.runner.grants,
            limits=services.runner.limits,
            filters=services.runner.submission.filters,
            reconciliation=services.runner.reconciliation,
            sessions=store.sessions,
            audit=store.audit,
            signer=signer,
            vault=vault,
            bindings=vault,
            flags=store.flags,
            snoozes=store.snoozes,
            usage=store.usage,
            daemons=store.daemons,
            connectors=services.connectors,
            operators=logins.operators,
            passkeys=logins.passkeys,
            approvers=logins.approvers,
            action_files=HomeActionFiles(settings.home, DirectoryCatalogue(str(settings.home.actions), 0)),
            launch_key_digest=api.token_digest(self._launch_key),
            local_key_digest=api.token_digest(self._local_key),
            clock=reactor,
            ids=fresh_ids(reactor),
            randomness=secrets.token_bytes,
            version=__version__,
            started_at=self._started_at,
            review_url=lambda run_id: f"{self._bound[1].url}/approvals/{run_id}",
            instance=self._instance,
            metrics_token_digest=settings.config.metrics_token_digest,
            features=services.features,
            clients=settings.config.clients,
            long_turns=lambda: None if self.watchdog is None else self.watchdog.long_turns,
            forget_places=self._forget_places,
            several=store.shared is not None,
            is_stopping=lambda: self._stops,
            is_removed=vault.is_removed,
        )
        site, self._agent_routes = api.agent_site(self._parts)
        self._agent_site = self._guard_agents(site)
        self._operator_site = self._guard_operators()

    def _guard_operators(self) -> Any:
        from aileron.api import GuardedSite, SiteRules, operator_site

        parts = self._parts
        parts.operators.report_lapses(parts.access_log.report_lapse)
        pages = operator_site(parts, web=lambda: _pages(parts, in_thread(self._reactor, at_once=1), self._workers()))
        return GuardedSite(pages, SiteRules(), self._reactor, ids=parts.ids)

    def _workers(self) -> Mapping[str, Path]:
        """Return the scripts of features' service workers, by path. Return none if the pages change their address."""
        features = self._parts.features.features
        # guard against attack: a worker's script is served only where the address stays
        #    -> test_push.NewAddressTests.test_no_worker
        return features.workers() if self._keeps_address() else {}

    def _keeps_address(self) -> bool:
        """Return whether the address of the pages stays the same after a restart."""
        return is_lasting(read_origin(self._bound[1].url))

    def _guard_agents(self, site: Any) -> Any:
        from aileron.api import GuardedSite, SiteRules

        most = most_connections(allow_descriptors())
        taker = self._parts.features.take_requests(self._agent_routes)
        return GuardedSite(site, SiteRules(), self._reactor, most_connections=most, taker=taker, ids=self._parts.ids)

    async def end_orphaned_sessions(self) -> None:
        """End the sessions whose launcher is gone or whose time is over. Call this periodically.

        :raises StoreUnavailable: if not all sessions could be ended.
        """
        await self._parts.leases.end_lapsed_sessions()

    def _forget_places(self, owner: str) -> None:
        for site in (self._agent_site, self._operator_site):
            site.limiter.forget(owner)

    async def open(self, life: Life) -> tuple[Bound, Bound]:
        """Listen at both sites, and return the sockets of the agent site and of the operator site.

        Until the ports are bound, every request is refused. The ports are stored for the next start.

        :raises CannotListenError: if a port could not be bound.
        :raises InvalidRequest: if an endpoint of the configuration is not valid.
        :raises Forbidden: if the stored ports cannot be read safely.
        """
        from aileron.api import API_PATHS, HANDOVER, OtherNames, SiteRules, peer_uid_lookup

        home, settings = self._settings.home, self._settings
        config, wanted = settings.config, load_ports(home)
        agent = await bind_agent_site(self._reactor, self._agent_site, wanted.agent, config.listen)
        life.at_end(lambda: unbind(agent))
        operator = await bind_operator_site(
            self._reactor, self._operator_site, wanted.operator, config.operator_listen, _make_label(config)
        )
        life.at_end(lambda: unbind(operator))
        save_ports(home, Ports(agent.port, operator.port))
        agent, operator = self._bound = (agent.add_names(config.hosts), operator.add_names(config.hosts))
        self._agent_site.listens_at(agent.ports)
        self._operator_site.listens_at(operator.ports)
        lookup, uid = peer_uid_lookup(), os.getuid()
        self._agent_site.rules = SiteRules(
            agent.hosts,
            peer_uid=lookup,
            own_uid=uid,
            other_uids=frozenset(config.agent_uids),
            bare_deletes=frozenset(map(str.encode, self._parts.features.resources())),
        )
        self._operator_site.rules = SiteRules(
            operator.hosts,
            frozenset({HANDOVER}),
            lookup,
            uid,
            landing=_landing,
            other_names=OtherNames(operator.others, f".{PAGES_DOMAIN}:{operator.port}", API_PATHS, _moved),
            workers=frozenset(path.encode("ascii") for path in self._workers()),
            removes_workers=self._keeps_address(),
        )
        return agent, operator

    async def serve(self) -> None:
        """Start the features' parts that need both sites, which listen now."""
        agent, operator = self._bound
        await self._parts.features.serve(ListeningSites(self._agent_routes, (agent.port, operator.port), self._parts))

    def refuse_work(self) -> None:
        """Answer from now on that the daemon is not ready, refuse new work, and end the streams of events."""
        self._stops = True
        self._agent_site.refuse_work()
        self._wake()

    @property
    def is_working(self) -> bool:
        """True if the agent site owes an answer to a request that may change something."""
        working: bool = self._agent_site.is_working
        return working

    def announce(self, life: Life) -> None:
        """Write the daemon's addresses to the home. At its stop, the daemon removes the addresses before all else."""
        agent, operator = self._bound
        discovery = Discovery(
            url=agent.url,
            operator_url=operator.url,
            pid=os.getpid(),
            instance=self._instance,
            version=__version__,
            started_at=timestamp(self._started_at),
            launch_key=self._launch_key,
            local_key=self._local_key,
            features_off=self._parts.features.features.off,
            connector_packages=self._settings.config.connector_packages,
            stop_seconds=longest_stop(self._settings.config.store),
        )
        write_discovery(self._settings.home, discovery)
        life.at_end(lambda: withdraw_discovery(self._settings.home, self._instance))


def _mint_keys() -> tuple[str, str]:
    """Return the launch key and the local key of this daemon process, both newly made."""
    from aileron.api import LAUNCH_KEY, LOCAL_KEY, mint

    return mint(LAUNCH_KEY, secrets.token_bytes), mint(LOCAL_KEY, secrets.token_bytes)


def _landing() -> Any:
    """Return the answer to a browser that followed a link from another site to the operator site.

    It precedes every other check.
    """
    from aileron.api import Answer
    from aileron.web import LANDING_POLICY, landing

    headers = {"Content-Security-Policy": LANDING_POLICY}
    return Answer(200, landing(), headers, "text/html; charset=utf-8")


def _moved(path: bytes) -> Any:
    """Return the answer to a browser that used a host name at which no page is served.

    :param path: the path that the browser asked for.
    """
    from aileron.api import Answer
    from aileron.web import moved

    return Answer(421, moved(path), content_type="text/html; charset=utf-8")


def _make_label(config: Config) -> str | None:
    """Make the label of the host name of this start's pages, or return None if the pages are at C{localhost}."""
    # guard against attack: the pages have another name at each start -> test_planted.PlantedTests.test_another_name,
    #    instead if True
    if config.operator_host == "localhost":
        return None
    return generate_letters(_LABEL_LETTERS, secrets.token_bytes).lower()


def _pages(parts: Any, in_thread: Callable[..., Deferred[Any]], workers: Mapping[str, Path]) -> Any:
    """Create the pages, which share their dependencies with the routes. Call at a browser's first request."""
    from aileron.web import pages

    return pages(parts, in_thread, workers)
