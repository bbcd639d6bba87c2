"""Builds both sites from one set of parts, binds them, and announces them in the home."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred

from aileron import __version__
from aileron.actions import DirectoryCatalogue
from aileron.audit import CheckpointSigner
from aileron.base.addresses import PAGES_DOMAIN
from aileron.base.json import timestamp, utc
from aileron.base.life import Life
from aileron.connectors import Registry
from aileron.features import ListeningSites, RunningFeatures
from aileron.home.discovery import Discovery, withdraw_discovery, write_discovery
from aileron.home.ports import Ports, load_ports, save_ports
from aileron.runner import Runner
from aileron.store import Store
from aileron.vault import Operators, Passkeys, Vault, generate_letters

from ._config import Config
from ._config_file import HomeActionFiles
from ._listening import Bound, bind_agent_site, bind_operator_site, unbind
from ._process import allow_descriptors, fresh_ids, in_thread, most_connections
from ._settings import DaemonSettings
from ._watchdog import watchdog_of

_LABEL_LETTERS = 10
"""43 bits: more names than an attacker could have open in a browser beforehand."""


@frozen
class Services:
    """The services that both sites call."""

    runner: Runner
    connectors: Registry
    passkeys: Passkeys
    features: RunningFeatures


class Sites:
    """Both listeners over one set of parts.

    :ivar watchdog: the watchdog, not yet started, or None if this reactor does not measure its turns.
    """

    _bound: tuple[Bound, ...] = ()

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

        self._reactor, self._settings, self._started_at = reactor, settings, utc(reactor.seconds())
        self._instance, self._launch_key, self._local_key = _mint_names()
        self.watchdog = watchdog_of(reactor)
        self._parts = api.Dependencies(
            submission=services.runner.submission,
            decisions=services.runner.decisions,
            trust=services.runner.trust,
            grants=services.runner.grants,
            limits=services.runner.limits,
            reconciliation=services.runner.reconciliation,
            sessions=store.sessions,
            audit=store.audit,
            signer=signer,
            vault=vault,
            bindings=vault,
            flags=store.flags,
            snoozes=store.snoozes,
            usage=store.usage,
            connectors=services.connectors,
            operators=Operators(vault, self._instance, self._addresses, reactor),
            passkeys=services.passkeys,
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
        )
        site, self._agent_routes = api.agent_site(self._parts)
        self._agent_site = self._guard_agents(site)
        self._operator_site = self._guard_operators()

    def _guard_operators(self) -> Any:
        from aileron.api import GuardedSite, SiteRules, operator_site

        parts = self._parts
        parts.operators.report_lapses(parts.access_log.report_lapse)
        pages = operator_site(parts, web=lambda: _pages(parts, in_thread(self._reactor, at_once=1)))
        return GuardedSite(pages, SiteRules(), self._reactor)

    def _guard_agents(self, site: Any) -> Any:
        from aileron.api import GuardedSite, SiteRules

        most = most_connections(allow_descriptors())
        taker = self._parts.features.take_requests(self._agent_routes)
        return GuardedSite(site, SiteRules(), self._reactor, most_connections=most, taker=taker)

    async def look_at_leases(self) -> None:
        """End the sessions whose owner is gone. Call this periodically.

        :raises StoreUnavailable: not all sessions could be ended.
        """
        await self._parts.leases.look()

    def _forget_places(self, owner: str) -> None:
        for site in (self._agent_site, self._operator_site):
            site.limiter.forget(owner)

    def _addresses(self) -> tuple[str, ...]:
        return (self._bound[1].url,) if self._bound else ()

    async def open(self, life: Life) -> tuple[Bound, Bound]:
        """Listen, then accept requests to the ports that were bound. Until then every request is refused."""
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
        )
        return agent, operator

    async def serve(self) -> None:
        """Start the features' parts that need both sites, which listen now."""
        agent, operator = self._bound
        await self._parts.features.serve(ListeningSites(self._agent_routes, (agent.port, operator.port)))

    def announce(self, life: Life) -> None:
        """Write the daemon's addresses to the home. When the daemon stops, they are removed first."""
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
        )
        write_discovery(self._settings.home, discovery)
        life.at_end(lambda: withdraw_discovery(self._settings.home, self._instance))


def _mint_names() -> tuple[str, str, str]:
    """Return the instance id of this daemon process, its launch key and its local key, all newly made."""
    from aileron.api import LAUNCH_KEY, LOCAL_KEY, mint

    return secrets.token_hex(8), mint(LAUNCH_KEY, secrets.token_bytes), mint(LOCAL_KEY, secrets.token_bytes)


def _landing() -> Any:
    """Return the page for a browser that another site sent to the operator site. It precedes every other check."""
    from aileron.api import Answer
    from aileron.web import LANDING_POLICY, landing

    headers = {"Content-Security-Policy": LANDING_POLICY}
    return Answer(200, landing(), headers, "text/html; charset=utf-8")


def _moved() -> Any:
    """Return the page for a browser that used a host name at which no page is served."""
    from aileron.api import Answer
    from aileron.web import moved

    return Answer(421, moved(), content_type="text/html; charset=utf-8")


def _make_label(config: Config) -> str | None:
    """Make the label of the host name of this start's pages, or return None if they are at localhost."""
    # guard against attack: the pages have another name at each start -> test_planted.PlantedTests.test_another_name,
    #    instead if True
    if config.operator_host == "localhost":
        return None
    return generate_letters(_LABEL_LETTERS, secrets.token_bytes).lower()


def _pages(parts: Any, in_thread: Callable[..., Deferred[Any]]) -> Any:
    """Create the pages, which share their dependencies with the routes. Call at a browser's first request."""
    from aileron.web import pages

    return pages(parts, in_thread)
