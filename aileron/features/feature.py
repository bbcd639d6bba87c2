"""The base classes of features: of one that is installed, and of one that runs in the daemon. They add nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from zope.interface import implementer

from aileron.base.json import JSON
from aileron.model.audit import EventName
from aileron.model.features import Command, NoticeRule, RelayedPath, UpgradeAdvice
from aileron.model.interfaces.features import IFeature
from aileron.model.people import Owner

if TYPE_CHECKING:
    from aileron.base.http1 import RelayHandler
    from aileron.home.discovery import Discovery
    from aileron.home.paths import Home
    from aileron.model.interfaces.authority import ITrust
    from aileron.model.interfaces.connectors import IConfigFile
    from aileron.model.interfaces.services import IAgentRoutes
    from aileron.model.interfaces.vault import IKeySource
    from aileron.model.traces import RequestedRun

    from .core import Core, ListeningSites


class RunningFeature:
    """A feature that was started in the daemon. Each method does nothing unless a feature overrides it.

    :ivar parts: the objects that the feature's routes and pages find by their class.
    :ivar resources: handlers of paths of the agent site that are no routes of the API, by path. Each is a coroutine
        function of the request and the routes' dependencies. On these paths a DELETE may have no body.
    """

    parts: Sequence[object] = ()
    resources: Mapping[str, Callable[..., Any]] = {}

    def take_requests(self, routes: IAgentRoutes) -> RelayHandler | None:
        """Return the handler of requests that bypass the agent site's routes, or None.

        It gets each request when the head is parsed, before the body. This method is called once, before the sites
        listen. The handler of the feature that started last is tried first.

        :param routes: the agent site's routes, for calls within this process.
        """
        return None

    def relayed(self) -> Sequence[RelayedPath]:
        """Return the paths that the handler of L{take_requests} serves, for the API document."""
        return ()

    async def serve(self, sites: ListeningSites) -> None:
        """Start the parts of the feature that need listening sites: the sites listen now."""

    def session_ended(self, session_id: str) -> None:
        """Free what the feature stores for a session that has ended. Idempotent."""

    def outcome_told(self, session_id: str, run_id: str) -> None:
        """Note that an agent was given the outcome of a run.

        :param session_id: the run's session.
        """

    def run_requested(self, requested: RequestedRun) -> None:
        """Note that an agent or the operator requested a run. A repeated request may be about an earlier run."""

    def pending(self, session_id: str | None) -> int:
        """Return how many decisions of the operator the feature waits for, of all sessions or of one."""
        return 0

    def status(self) -> Mapping[str, JSON]:
        """Return the members that the feature adds to the answer of the operator's C{GET /v1/status}."""
        return {}

    async def session_members(self, session_ids: Sequence[str]) -> Mapping[str, Mapping[str, JSON]]:
        """Return the members that the feature adds to these sessions in the API's answers, by session ID."""
        return {}

    async def find_owner(self, name: str) -> Owner | None:
        """Return the account with this name as the owner of sessions and credentials, or None if there is none.

        :raises StoreUnavailable: if it cannot be read.
        """
        return None

    def metrics(self) -> Iterable[Any]:
        """Return metric families for C{GET /metrics}."""
        return ()

    def find_scope(self, name: str) -> Any:
        """Return the feature's target of credentials with this name, or None if the feature has none.

        :param name: the name of the target, such as C{notice://phone}.
        :return: an object whose method C{scope()} returns the scope that a credential is bound to.
        """
        return None


@implementer(IFeature)
class Feature:
    """A feature that adds nothing. Built-in features override what they add."""

    name: ClassVar[str]
    summary: ClassVar[str]
    needs: ClassVar[Sequence[str]] = ()
    targets: ClassVar[Mapping[str, str]] = {}
    doctor_advice: ClassVar[Mapping[str, tuple[str, str]]] = {}
    file_names: ClassVar[Sequence[str]] = ()
    navigation: ClassVar[Mapping[str, str]] = {}
    variables: ClassVar[Sequence[str]] = ()
    workers: ClassVar[Mapping[str, Path]] = {}
    scripts: ClassVar[Sequence[Path]] = ()

    def commands(self) -> Mapping[str, Command]:
        return {}

    def settings(self) -> Mapping[str, Any]:
        return {}

    def event_types(self) -> Mapping[str, EventName]:
        return {}

    def notices(self) -> Mapping[str, NoticeRule]:
        return {}

    def trusted_files(self, home: Home, trust: ITrust) -> Sequence[IConfigFile]:
        return ()

    def routes(self) -> Sequence[Any]:
        return ()

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def pages(self) -> Mapping[str, Callable[..., Any]]:
        return {}

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        return {}

    def next_steps(self, state: str) -> Sequence[str]:
        return ()

    def before_upgrade(self, home: Home) -> UpgradeAdvice | None:
        return None

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        return ()

    def find_sandboxes(self, reactor: Any, environment: Mapping[str, str]) -> Any:
        return None

    def setup_offers(self) -> Sequence[Callable[..., Any]]:
        return ()

    def status_lines(self, status: Mapping[str, Any]) -> Mapping[str, JSON]:
        return {}

    def watch_offers(self) -> Sequence[Callable[..., Any]]:
        return ()

    def list_targets(self, status: Mapping[str, Any]) -> Iterable[str]:
        return ()

    def explain_binding(self, target: str, credential: str) -> Sequence[str]:
        return ()

    def key_sources(self, cli: Any) -> Sequence[IKeySource]:
        return ()

    def unattended_key_sources(self, cli: Any) -> Sequence[IKeySource]:
        return ()

    def choose_environment(self, cli: Any) -> Any:
        return cli

    def check_environment(self, cli: Any, found: Discovery) -> None:
        return None

    def check_variables(self, environ: Mapping[str, str]) -> None:
        return None

    def announce_environment(self, environ: Mapping[str, str]) -> Sequence[str]:
        return ()

    async def start(self, core: Core) -> RunningFeature | None:
        return None
