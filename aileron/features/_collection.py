"""The known features, which of them are switched on, and what they add to the program together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import Factory, evolve, field, frozen

from aileron.base.json import JSON
from aileron.base.packages import find_package
from aileron.model.audit import EventName
from aileron.model.errors import InvalidRequest, NotFound
from aileron.model.features import Command, NoticeRule, RelayedPath, UpgradeAdvice
from aileron.model.interfaces.features import IFeature
from aileron.model.people import Owner

from .core import Core, ListeningSites
from .feature import RunningFeature

if TYPE_CHECKING:
    from aileron.base.http1 import RelayHandler
    from aileron.model.interfaces.authority import ITrust
    from aileron.model.interfaces.connectors import IConfigFile, ISandboxes
    from aileron.model.interfaces.services import IAgentRoutes
    from aileron.model.interfaces.vault import IKeySource
    from aileron.model.traces import RequestedRun

BUILT_IN = (
    "gateway",
    "provider_tools",
    "spending",
    "claims",
    "inband",
    "demo",
    "launch",
    "sandbox",
    "egress",
    "own_tools",
    "mcp_http",
    "notices",
    "push",
    "phone",
    "people",
    "oidc",
    "packages",
    "backup",
    "service",
    "importing",
    "proving",
    "setup",
    "moving",
    "portable",
    "key_sources",
    "prompts",
    "profiles",
    "wake",
    "tracing",
)
"""The features that ship with Aileron, by their directories, in the order in which they start."""

ENTRY_POINTS = "aileron.features"
"""The group of entry points by which other packages declare features."""

_CHECK = "Check the key features in config.yaml."
_T = TypeVar("_T")


def load_built_in() -> tuple[IFeature, ...]:
    """Return the features that ship with Aileron."""
    return tuple(import_module(f"{__package__}.{name}").FEATURE for name in BUILT_IN)


def load_foreign(names: Iterable[str]) -> tuple[IFeature, ...]:
    """Load the features with these names from other packages. No other packages are imported.

    :raises InvalidRequest: if not exactly one installed package declares a feature of a name, or if it cannot be loaded
        or is not a feature of that name.
    """
    return tuple(map(_load_foreign, names))


def _load_foreign(name: str) -> IFeature:
    points = tuple(dict.fromkeys(entry_points(group=ENTRY_POINTS, name=name)))
    if not points:
        raise InvalidRequest(f"There is no feature {name}. {_CHECK}")
    if len(points) > 1:
        packages = ", ".join(sorted(each.module for each in points))
        raise InvalidRequest(f"Several packages have a feature {name}: {packages}. Uninstall all but one.")
    found = _load_point(*points)
    if found is None:
        raise InvalidRequest(f"The entry point {name} ({points[0].value}) is not a feature of that name. {_CHECK}")
    return found


def _load_point(point: EntryPoint) -> IFeature | None:
    """Load the feature that an entry point declares, or return None if the object is not a feature of that name.

    :raises InvalidRequest: if it cannot be loaded.
    """
    try:
        package = find_package(point.module.partition(".")[0])
        found: IFeature | None = None if package is None else point.load()
        is_it = IFeature.providedBy(found) and found is not None and found.name == point.name
    except Exception as error:
        told = f"The feature {point.name} cannot be loaded: {type(error).__name__}. {_CHECK}"
        raise InvalidRequest(told) from error
    if package is None:
        told = f"The package of the feature {point.name} is not installed, or is in the working directory."
        raise InvalidRequest(told)
    return found if is_it else None


@frozen
class FeatureSet:
    """The features that a process knows, and which of them are off.

    Methods use only the features that are on, unless their docstrings say otherwise.

    :ivar known: the features, on or off, in the order in which they start.
    :ivar switches: whether config.yaml turns a feature on, by name. A built-in feature without a switch is on.
    """

    known: tuple[IFeature, ...] = field(factory=load_built_in)
    switches: Mapping[str, bool] = field(factory=dict)
    on: tuple[IFeature, ...] = field(init=False)

    @on.default
    def _choose(self) -> tuple[IFeature, ...]:
        chosen = {each.name: each for each in self.known if self.switches.get(each.name, True)}
        while missing := [each for each in chosen.values() if not chosen.keys() >= set(each.needs)]:
            for each in missing:
                del chosen[each.name]
        return tuple(chosen.values())

    @property
    def off(self) -> tuple[str, ...]:
        """The names of the features that are switched off."""
        names = {each.name for each in self.on}
        return tuple(each.name for each in self.known if each.name not in names)

    def switch(self, switches: Mapping[str, bool]) -> FeatureSet:
        """Return the set with these switches. A feature of another package is loaded if it is switched on.

        :raises InvalidRequest: if such a feature does not exist or cannot be loaded.
        """
        names = {each.name for each in self.known}
        foreign = load_foreign([name for name, on in switches.items() if on and name not in names])
        return FeatureSet((*self.known, *foreign), switches)

    def without(self, *names: str) -> FeatureSet:
        """Return a set in which the named features are switched off too."""
        return FeatureSet(self.known, {**self.switches, **dict.fromkeys(names, False)})

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of the features that are on, by name."""
        return _merge(each.commands() for each in self.on)

    def off_commands(self) -> Mapping[str, str]:
        """Return, for each command of a feature that is off, the feature to turn on. Replaced commands are left out."""
        names = {each.name for each in self.on}
        off = (each for each in self.known if each.name not in names)
        return {
            name: self.find_switched_off(each.name)
            for each in off
            for name, command in each.commands().items()
            if not command.now
        }

    def find_switched_off(self, name: str) -> str:
        """Return the feature to turn on so that C{name} is on: C{name} itself, or a feature that it needs."""
        known = {each.name: each for each in self.known}
        while self.switches.get(name, True):
            needed = next((each for each in known[name].needs if each in self.off), None)
            if needed is None:
                break
            name = needed
        return name

    def settings(self) -> Mapping[str, Any]:
        """Return the keys of config.yaml of all known features. The file may contain keys of features that are off."""
        from aileron.base.yaml_keys import with_key

        found = _merge(each.settings() for each in self.known)
        keys: Mapping[str, Any] = {name: key for name, key in found.items() if "." not in name}
        for name, key in found.items():
            if "." in name:
                keys = with_key(keys, name, key)
        return keys

    def event_types(self) -> Mapping[str, EventName]:
        """Return the audit events of all known features. The audit log may contain events of features that are off."""
        return _merge(each.event_types() for each in self.known)

    def notices(self) -> Mapping[str, NoticeRule]:
        """Return how the operator is notified of the features' events."""
        return _merge(each.notices() for each in self.on)

    def file_names(self) -> Sequence[str]:
        """Return the names of the files of all known features that count only after the operator trusted them."""
        return tuple(name for each in self.known for name in each.file_names)

    def trusted_files(self, home: Any, trust: ITrust) -> Sequence[IConfigFile]:
        """Return the features' files that count only after the operator trusted them."""
        return tuple(file for each in self.on for file in each.trusted_files(home, trust))

    def routes(self) -> Sequence[Any]:
        """Return the tables of routes of the features that are on."""
        return tuple(table for each in self.on for table in each.routes())

    def members(self, route: str) -> Mapping[str, Any]:
        """Return the schemas of members that features add to a route's answer or to a component of the API document.

        :param route: the name of the route or of the component.
        """
        return _merge(each.members().get(route, {}) for each in self.on)

    def pages(self) -> Mapping[str, Callable[..., Any]]:
        """Return the functions that draw the features' pages, by path."""
        return _merge(each.pages() for each in self.on)

    def targets(self) -> Mapping[str, str]:
        """Return a description of each kind of target for credentials besides connectors, by its names' prefix."""
        return _merge(each.targets for each in self.on)

    def navigation(self) -> Mapping[str, str]:
        """Return the titles of the features' pages in the navigation, by path."""
        return _merge(each.navigation for each in self.on)

    def scripts(self) -> Sequence[Path]:
        """Return the files of the features' scripts, which are joined with those of the pages."""
        return tuple(path for each in self.on for path in each.scripts)

    def workers(self) -> Mapping[str, Path]:
        """Return the files of the features' service workers, by path."""
        return _merge(each.workers for each in self.on)

    def slots(self, page: str) -> Sequence[Callable[..., Any]]:
        """Return the functions that add parts to a page, one of each feature that has one (see L{IFeature.slots})."""
        return tuple(found[page] for each in self.on if page in (found := each.slots()))

    def next_steps(self, state: str) -> Sequence[str]:
        """Return the commands that features suggest in a state: C{missing} or C{ready}."""
        return tuple(step for each in self.on for step in each.next_steps(state))

    def before_upgrade(self, home: Any) -> Sequence[UpgradeAdvice]:
        """Return the advice of all features for C{aileron upgrade --check}."""
        return tuple(advice for each in self.on if (advice := each.before_upgrade(home)) is not None)

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        """Return the features' checks of the installation."""
        return tuple(check for each in self.on for check in each.doctor_checks())

    def doctor_advice(self, finding: str) -> tuple[str, str] | None:
        """Return a sentence and a command that a feature adds to a finding of C{aileron doctor}.

        Advice whose command belongs to a feature that is off is skipped. Return None if no advice is left.
        """
        off = self.off_commands()
        given = (each.doctor_advice[finding] for each in self.on if finding in each.doctor_advice)
        return next((each for each in given if each[1].split()[1] not in off), None)

    def find_sandboxes(self, reactor: Any, environment: Mapping[str, str]) -> ISandboxes:
        """Return the factory of sandboxes for the programs of connectors, from the first feature that has one.

        :raises NotFound, Forbidden: if this machine supports no sandboxes, or no feature that makes them is on.
        """
        for each in self.on:
            found: ISandboxes | None = each.find_sandboxes(reactor, environment)
            if found is not None:
                return found
        raise NotFound("No feature that makes sandboxes is on. See the key features in config.yaml.")

    def setup_offers(self) -> Sequence[Callable[..., Any]]:
        """Return the functions that C{aileron setup} calls at its end, each of which offers a feature to the user."""
        return tuple(offer for each in self.on for offer in each.setup_offers())

    def variables(self) -> frozenset[str]:
        """Return the environment variables that features read in the daemon, including features that are off now."""
        return frozenset(name for each in self.known for name in each.variables)

    def status_lines(self, status: Mapping[str, Any]) -> Mapping[str, JSON]:
        """Return the features' lines of C{aileron status}, by label."""
        return _merge(each.status_lines(status) for each in self.on)

    def watch_offers(self) -> Sequence[Callable[..., Any]]:
        """Return the features' functions that find what C{aileron watch} offers beside pending approvals."""
        return tuple(find for each in self.on for find in each.watch_offers())

    def list_targets(self, status: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of all targets of features to which a credential can be bound."""
        return tuple(name for each in self.on for name in each.list_targets(status))

    def explain_binding(self, target: str, credential: str) -> Sequence[str]:
        """Return lines that explain how to use a credential bound to a feature's target; empty for other targets."""
        owners = (each for each in self.on if target.startswith(tuple(each.targets)))
        return tuple(line for each in owners for line in each.explain_binding(target, credential))

    def key_sources(self, cli: Any) -> Sequence[IKeySource]:
        """Return the key sources that need a person at the terminal, in the order in which they are read.

        :param cli: the context of the command.
        """
        return tuple(source for each in self.on for source in each.key_sources(cli))

    def unattended_key_sources(self, cli: Any) -> Sequence[IKeySource]:
        """Return the key sources that need no person, in the order in which they are read when a daemon starts.

        :param cli: the context of the command.
        """
        return tuple(source for each in self.on for source in each.unattended_key_sources(cli))

    def choose_environment(self, cli: Any) -> Any:
        """Return a command's context with the environment for a new daemon, which replaces the running one.

        :raises CommandError: if the person must choose between two environments, and did not.
        """
        for each in self.on:
            cli = each.choose_environment(cli)
        return cli

    def check_environment(self, cli: Any, found: Any) -> None:
        """Check the environment of a command that launches an agent against the running daemon.

        :raises CommandError: if a feature finds that the two do not match.
        """
        for each in self.on:
            each.check_environment(cli, found)

    def check_variables(self, environ: Mapping[str, str]) -> None:
        """Check the variables that known features read in the daemon, before the daemon starts.

        :raises InvalidRequest: if a variable has a value that its feature refuses.
        """
        for each in self.known:
            each.check_variables(environ)

    def announce_environment(self, environ: Mapping[str, str]) -> Sequence[str]:
        """Return the lines to print before a daemon starts with this environment.

        Features that are off are included, because only the daemon knows whether the config.yaml that turns them off is
        trusted.
        """
        return tuple(line for each in self.known for line in each.announce_environment(environ))

    async def start(self, core: Core) -> RunningFeatures:
        """Start the features that are on, in order. Each can find the objects that earlier ones started."""
        started = RunningFeatures(self)
        for each in self.on:
            running = await each.start(evolve(core, find=started.find))
            if running is not None:
                started = RunningFeatures(self, (*started.running, running))
        return started


def _merge(found: Iterable[Mapping[str, _T]]) -> Mapping[str, _T]:
    return {name: value for each in found for name, value in each.items()}


@frozen
class RunningFeatures:
    """The features that were started in the daemon."""

    features: FeatureSet = field(factory=FeatureSet)
    running: tuple[RunningFeature, ...] = Factory(tuple)

    def find(self, kind: type[_T]) -> _T | None:
        """Return the object of class C{kind} that a running feature provides, or None if there is none."""
        return next((part for each in self.running for part in each.parts if isinstance(part, kind)), None)

    def take_requests(self, routes: IAgentRoutes) -> RelayHandler:
        """Return one handler that tries the handlers of all features, the feature that started last first.

        See L{RunningFeature.take_requests}.
        """
        from aileron.base.http1 import FirstHandler

        found = [each.take_requests(routes) for each in reversed(self.running)]
        return FirstHandler(tuple(each for each in found if each is not None))

    def relayed(self) -> Sequence[RelayedPath]:
        """Return the paths of the agent site that the handlers returned by L{take_requests} serve."""
        return tuple(path for each in self.running for path in each.relayed())

    async def serve(self, sites: ListeningSites) -> None:
        """Start the parts of all features that need listening sites: the sites listen now."""
        for each in self.running:
            await each.serve(sites)

    def resources(self) -> Mapping[str, Callable[..., Any]]:
        """Return the handlers of the agent site's paths that are no routes of the API, by path."""
        return _merge(each.resources for each in self.running)

    def session_ended(self, session_id: str) -> None:
        """Tell each feature that a session has ended, so that it deletes what it stores for the session. Idempotent."""
        for each in self.running:
            each.session_ended(session_id)

    def outcome_told(self, session_id: str, run_id: str) -> None:
        """Tell the features that an agent was given the outcome of a run of this session."""
        for each in self.running:
            each.outcome_told(session_id, run_id)

    def run_requested(self, requested: RequestedRun) -> None:
        """Tell the features that a run was requested."""
        for each in self.running:
            each.run_requested(requested)

    def pending(self, session_id: str | None) -> int:
        """Return how many decisions of the operator features wait for, of all sessions or of one."""
        return sum(each.pending(session_id) for each in self.running)

    def status(self) -> Mapping[str, JSON]:
        """Return the features' members of C{GET /v1/status}."""
        return _merge(each.status() for each in self.running)

    async def session_members(self, *session_ids: str) -> Mapping[str, Mapping[str, JSON]]:
        """Return the members that features add to each of these sessions in the API's answers, by session ID."""
        found = [await each.session_members(session_ids) for each in self.running]
        return {name: _merge(members.get(name, {}) for members in found) for name in session_ids}

    async def find_owner(self, name: str) -> Owner | None:
        """Return the account with this name that a feature knows, or None if there is none."""
        for each in self.running:
            owner = await each.find_owner(name)
            if owner is not None:
                return owner
        return None

    def metrics(self) -> Iterator[Any]:
        """Return the features' metric families."""
        return (metric for each in self.running for metric in each.metrics())

    def find_scope(self, name: str) -> Any:
        """Return the target of credentials with this name of the first running feature that has one, or None."""
        return next((found for each in self.running if (found := each.find_scope(name)) is not None), None)
