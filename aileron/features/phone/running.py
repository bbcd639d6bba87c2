"""The listener of the phone's pages, as a feature that runs in the daemon."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen
from twisted.internet import ssl
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.api import by_passkey, chosen_site
from aileron.base.json import JSON, timestamp
from aileron.features.core import Core, ListeningSites
from aileron.features.feature import RunningFeature
from aileron.model.errors import AileronError
from aileron.model.interfaces.vault import IVault
from aileron.model.people import AccountLogin, Role
from aileron.model.vault import VaultState
from aileron.vault import Passkeys
from aileron.web import LANDING_POLICY, Entrance, landing, pages

from ._certificate_store import CertificateStore
from ._certificates import Certificate
from ._doors import PhoneApprovers, PhoneDecisions, PhoneLogins
from ._entrance import ROUTES, PhoneEntrance, Serve, read_sign_in_page
from ._listener import ClosedFactory, PublicRules, PublicSite, options_of, over_tls
from ._pairing import Pairings
from ._signing_in import SignIns, StrangerLimit
from .values import TARGET, PhoneSettings, PhoneTls

if TYPE_CHECKING:
    from aileron.api import Dependencies

__all__ = ["PhoneListener", "PublicAccounts", "RunningPhone", "StrangerLimit", "read_sign_in_page", "start_phone"]

_log = Logger()
_NONE_YET = "There is no certificate yet. Make one: aileron phone certificate"
_LOCKED = "The vault is locked."


@frozen
class PublicAccounts:
    """The accounts of people at the public name, as another feature serves them.

    :ivar serve: the handlers of signing in, each a path, a method and a function as in L{Entrance}. A handler replaces
        that of the phone's pages with the same path and method.
    :ivar files: further static files.
    :ivar routes: the names of further routes of the operator that are served at the public name.
    :ivar shown: the paths of further pages.
    :ivar find_role: see L{Dependencies}.
    """

    serve: Sequence[tuple[str, str, Serve]]
    files: Sequence[Path]
    routes: Sequence[str]
    shown: Sequence[str]
    find_role: Callable[[AccountLogin], Awaitable[Role | None]]

    def extend(self, entrance: Entrance) -> Entrance:
        """Return the entrance of the phone's pages with that of the accounts."""
        replaced = {(path, method) for path, method, _ in self.serve}
        kept = [each for each in entrance.routes if each[:2] not in replaced]
        shown = (*(entrance.shown or ()), *self.shown)
        return evolve(entrance, routes=(*self.serve, *kept), shown=shown, files=(*entrance.files, *self.files))


class PhoneListener:
    """The listener of the phone's pages.

    It accepts no connection until the vault is unlocked and there is a certificate.

    :ivar problem: why it serves nobody, as a sentence, or None.
    :ivar certificate: the certificate in use, or None.
    """

    def __init__(self, settings: PhoneSettings, store: CertificateStore, vault: IVault) -> None:
        self._settings, self._store, self._vault = settings, store, vault
        self._options: ssl.CertificateOptions | None = None
        self.problem: str | None = None
        self.certificate: Certificate | None = None
        self._port: Any = None

    @property
    def is_open(self) -> bool:
        """True if connections are accepted."""
        unlocked = self._vault.state() is VaultState.UNLOCKED
        return unlocked and (self._settings.tls is PhoneTls.NONE or self._options is not None)

    async def load(self) -> None:
        """Load the certificate from the vault and use it from now on.

        A failure closes the listener, and C{problem} has the reason.
        """
        try:
            found = await self._store.load()
        except AileronError as error:
            self.use(None, error.message)
        else:
            self.use(found, _NONE_YET)

    def use(self, certificate: Certificate | None, problem: str) -> None:
        """Use a certificate from now on, or stop serving if it is None.

        :param problem: the reason if there is no certificate, else empty.
        """
        self.certificate = certificate
        self._options = None if certificate is None else options_of(certificate)
        needs_one = self._settings.tls is not PhoneTls.NONE
        self.problem = problem if certificate is None and needs_one else None

    async def listen(self, reactor: Any, site: PublicSite) -> int | None:
        """Listen, and return the port, or None if the endpoint cannot be bound: C{problem} says why."""
        factory = ClosedFactory(site, lambda: self.find_inner(site, reactor))
        try:
            port = await serverFromString(reactor, self._settings.listen).listen(factory)
        except CannotListenError as error:
            self.problem = f"{self._settings.listen} cannot be listened at: {error.socketError}"
            _log.error("phone: {problem}", problem=self.problem)
            return None
        site.listens_at([port])
        self._port = port
        bound: int = port.getHost().port
        return bound

    def find_inner(self, site: PublicSite, reactor: IReactorTime) -> Any:
        """Return the factory of a new connection, or None while nobody is served."""
        # guard of the phone: a locked vault serves nobody
        #    -> phone.test_listener.ClosedTests.test_locked, instead if False
        if not self.is_open:
            return None
        return (
            site
            if self._settings.tls is PhoneTls.NONE or self._options is None
            else over_tls(site, self._options, reactor)
        )

    async def stop(self) -> None:
        """Stop listening. Idempotent."""
        port, self._port = self._port, None
        if port is not None:
            await port.stopListening()


@frozen(eq=False)
class RunningPhone(RunningFeature):
    """The phone's pages as a feature that runs in the daemon.

    :ivar passkeys: the passkeys that can be used at these pages.
    :ivar accounts: the accounts of people who use these pages, at most one object. A feature adds it before L{serve}.
    """

    core: Core = field(repr=False)
    settings: PhoneSettings
    passkeys: Passkeys
    pairings: Pairings
    store: CertificateStore
    listener: PhoneListener
    accounts: list[PublicAccounts] = field(factory=list)

    @property
    def is_unlocked(self) -> bool:
        """True while the vault is unlocked."""
        vault = self.core.vault
        return vault.state() is VaultState.UNLOCKED

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    def find_scope(self, name: str) -> PhoneSettings | None:
        return self.settings if name == TARGET else None

    def status(self) -> Mapping[str, JSON]:
        listener = self.listener
        ends_at = None if listener.certificate is None else timestamp(listener.certificate.ends_at)
        problem = listener.problem if self.is_unlocked else _LOCKED
        tls, url = self.settings.tls.value, self.settings.public_url
        return {"phone": {"url": url, "tls": tls, "problem": problem, "certificate_ends_at": ends_at}}

    def list_passkeys(self) -> tuple[Any, ...]:
        """Return the passkeys that can be used at the phone's pages, oldest first."""
        return tuple(each for each in self.passkeys.passkeys() if each.site == self.settings.host)

    async def serve(self, sites: ListeningSites) -> None:
        process, vault = self.core.process, self.core.vault
        process.public_urls.add(self.settings.public_url)
        site = self._make_site(sites.parts)
        if self.is_unlocked:
            await self.listener.load()
        port = await self.listener.listen(process.reactor, site)
        if port is not None:
            process.own_ports.add(port)
            process.life.at_end(self.listener.stop)
        vault.locked().addCallback(lambda _: site.end_all())

    def _make_site(self, parts: Dependencies) -> PublicSite:
        process, instance = self.core.process, parts.instance
        deps = evolve(
            parts,
            operators=PhoneLogins(parts.operators, self.passkeys.is_registered),
            decisions=PhoneDecisions(parts.decisions),
            passkeys=self.passkeys,
            approvers=PhoneApprovers(parts.approvers, self.passkeys, instance),
            launch_key_digest=secrets.token_bytes(32),
            local_key_digest=secrets.token_bytes(32),
            metrics_token_digest=None,
            review_url=lambda run_id: f"{self.settings.public_url}/approvals/{run_id}",
            cookie_prefix="__Host-",
            find_role=self.accounts[0].find_role if self.accounts else parts.find_role,
        )
        clock = process.reactor
        entrance = PhoneEntrance(
            self.pairings,
            SignIns(self.passkeys, instance, clock),
            StrangerLimit(clock),
            parts.operators.key_of,
            self.settings.tls is PhoneTls.NONE,
        )
        workers, shown, routes = deps.features.features.workers(), entrance.entrance(), list(ROUTES)
        for accounts in self.accounts:
            shown, routes = accounts.extend(shown), [*routes, *accounts.routes]
        resource = chosen_site(
            deps, routes, by_passkey, lambda: pages(deps, process.in_thread(at_once=1), workers, entrance=shown)
        )
        return PublicSite(resource, public_rules(self.settings, workers), clock)


def public_rules(settings: PhoneSettings, workers: Iterable[str] = ()) -> PublicRules:
    """Return the rules by which the phone's pages accept requests.

    :param workers: the paths of the scripts that a browser may run as a service worker.
    """
    paths = frozenset(path.encode("ascii") for path in workers)
    return PublicRules((settings.authority,), landing=_landing, workers=paths)


def _landing() -> Any:
    from aileron.api import Answer

    return Answer(200, landing(), {"Content-Security-Policy": LANDING_POLICY}, "text/html; charset=utf-8")


def start_phone(core: Core, settings: PhoneSettings) -> RunningPhone:
    """Build the listener of the phone's pages. It starts to listen when both sites listen."""
    process = core.process
    passkeys = Passkeys(core.vault, lambda: (settings.public_url,), process.reactor, needs_room=True)
    store = CertificateStore(settings, core.vault, process.reactor)
    pairings = Pairings(passkeys, process.reactor)
    return RunningPhone(core, settings, passkeys, pairings, store, PhoneListener(settings, store, core.vault))
