"""The features that there are, which of them are on, and what they add together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import Factory, evolve, field, frozen

from aileron.base.json import JSON
from aileron.base.packages import find_package
from aileron.model.audit import EventName
from aileron.model.errors import InvalidRequest, NotFound
from aileron.model.features import Command, NoticeRule, RelayedPath, UpgradeAdvice
from aileron.model.interfaces.features import IFeature

from .core import Core, ListeningSites
from .feature import RunningFeature

if TYPE_CHECKING:
    from aileron.base.http1 import RelayHandler
    from aileron.model.interfaces.authority import ITrust
    from aileron.model.interfaces.connectors import IConfigFile, ISandboxes
    from aileron.model.interfaces.services import IAgentRoutes

BUILT_IN = (
    "gateway",
    "provider_tools",
    "inband",
    "demo",
    "launch",
    "sandbox",
    "egress",
    "mcp_http",
    "notices",
    "packages",
    "backup",
    "service",
    "importing",
    "proving",
    "setup",
    "moving",
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
    """Return the features of other packages that are called so; only these packages are imported.

    :raises InvalidRequest: no installed package has such a feature, several have, or what it has is none.
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
    """Load a feature, or return None if what is there is none of that name.

    :raises InvalidRequest: it cannot be loaded.
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

    :ivar known: all of them, in the order in which they start.
    :ivar switches: what config.yaml says, by name; a built-in feature without a switch is on.
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
        """The names of the features that are off."""
        names = {each.name for each in self.on}
        return tuple(each.name for each in self.known if each.name not in names)

    def switch(self, switches: Mapping[str, bool]) -> FeatureSet:
        """Return the set with these switches; a foreign feature that is switched on is loaded.

        :raises InvalidRequest: there is no such feature.
        """
        names = {each.name for each in self.known}
        foreign = load_foreign([name for name, on in switches.items() if on and name not in names])
        return FeatureSet((*self.known, *foreign), switches)

    def without(self, *names: str) -> FeatureSet:
        """Return the set with some features off."""
        return FeatureSet(self.known, {**self.switches, **dict.fromkeys(names, False)})

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of the features that are on, by name."""
        return _merge(each.commands() for each in self.on)

    def off_commands(self) -> Mapping[str, str]:
        """Return the commands of the features that are off, by their present names, with the feature to turn on."""
        names = {each.name for each in self.on}
        off = (each for each in self.known if each.name not in names)
        return {
            name: self.find_switched_off(each.name)
            for each in off
            for name, command in each.commands().items()
            if not command.now
        }

    def find_switched_off(self, name: str) -> str:
        """Return the feature that config.yaml has off so that a feature is off: itself, or one that it needs."""
        known = {each.name: each for each in self.known}
        while self.switches.get(name, True):
            needed = next((each for each in known[name].needs if each in self.off), None)
            if needed is None:
                break
            name = needed
        return name

    def settings(self) -> Mapping[str, Any]:
        """Return the keys of config.yaml of all known features: what is off may stay in the file."""
        from aileron.base.yaml_keys import with_key

        found = _merge(each.settings() for each in self.known)
        keys: Mapping[str, Any] = {name: key for name, key in found.items() if "." not in name}
        for name, key in found.items():
            if "." in name:
                keys = with_key(keys, name, key)
        return keys

    def event_types(self) -> Mapping[str, EventName]:
        """Return the audit events of all known features: the record may hold events of one that is off."""
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
        """Return the features' tables of routes."""
        return tuple(table for each in self.on for table in each.routes())

    def members(self, route: str) -> Mapping[str, Any]:
        """Return schemas of the members that features add to the answer of a route, or to a component."""
        return _merge(each.members().get(route, {}) for each in self.on)

    def pages(self) -> Mapping[str, Callable[..., Any]]:
        """Return the features' pages, by path."""
        return _merge(each.pages() for each in self.on)

    def targets(self) -> Mapping[str, str]:
        """Return words for what credentials can be bound to beside connectors, by the prefix of its name."""
        return _merge(each.targets for each in self.on)

    def navigation(self) -> Mapping[str, str]:
        """Return the titles of the features' pages in the navigation, by path."""
        return _merge(each.navigation for each in self.on)

    def slots(self, page: str) -> Sequence[Callable[..., Any]]:
        """Return what features add to a page."""
        return tuple(found[page] for each in self.on if page in (found := each.slots()))

    def next_steps(self, state: str) -> Sequence[str]:
        """Return the commands that features suggest in a state: C{missing} or C{ready}."""
        return tuple(step for each in self.on for step in each.next_steps(state))

    def before_upgrade(self, home: Any) -> Sequence[UpgradeAdvice]:
        """Return what C{aileron upgrade --check} reports of the features."""
        return tuple(advice for each in self.on if (advice := each.before_upgrade(home)) is not None)

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        """Return the features' checks of the installation."""
        return tuple(check for each in self.on for check in each.doctor_checks())

    def doctor_advice(self, finding: str) -> tuple[str, str] | None:
        """Return a sentence and a command that a feature adds to a finding of C{aileron doctor}, or None."""
        return next((each.doctor_advice[finding] for each in self.on if finding in each.doctor_advice), None)

    def find_sandboxes(self, reactor: Any, environment: Mapping[str, str]) -> ISandboxes:
        """Return what makes sandboxes for programs of connectors.

        :raises NotFound, Forbidden: this machine makes none, or no feature that makes them is on.
        """
        for each in self.on:
            found: ISandboxes | None = each.find_sandboxes(reactor, environment)
            if found is not None:
                return found
        raise NotFound("No feature that makes sandboxes is on. See the key features in config.yaml.")

    def setup_offers(self) -> Sequence[Callable[..., Any]]:
        """Return what features offer at the end of C{aileron setup}."""
        return tuple(offer for each in self.on for offer in each.setup_offers())

    def variables(self) -> frozenset[str]:
        """Return the environment variables that known features read in the daemon: one may be on in the next."""
        return frozenset(name for each in self.known for name in each.variables)

    def status_lines(self, status: Mapping[str, Any]) -> Mapping[str, JSON]:
        """Return the features' lines of C{aileron status}, by label."""
        return _merge(each.status_lines(status) for each in self.on)

    def list_targets(self, status: Mapping[str, Any]) -> Sequence[str]:
        """Return the names of features' targets that credentials can be bound to."""
        return tuple(name for each in self.on for name in each.list_targets(status))

    def explain_binding(self, target: str, credential: str) -> Sequence[str]:
        """Return the lines that tell how to use a credential that was bound to a target; none for a connector."""
        owners = (each for each in self.on if target.startswith(tuple(each.targets)))
        return tuple(line for each in owners for line in each.explain_binding(target, credential))

    def choose_environment(self, cli: Any) -> Any:
        """Return the context of a command whose environment the successor of the running daemon gets.

        :raises CommandError: the person must choose, and did not.
        """
        for each in self.on:
            cli = each.choose_environment(cli)
        return cli

    def check_environment(self, cli: Any, found: Any) -> None:
        """Check the environment of a command that launches an agent against the running daemon.

        :raises CommandError: they do not fit.
        """
        for each in self.on:
            each.check_environment(cli, found)

    def check_variables(self, environ: Mapping[str, str]) -> None:
        """Check the variables that known features read in the daemon, before the daemon starts.

        :raises InvalidRequest: a variable has a value that its feature refuses.
        """
        for each in self.known:
            each.check_variables(environ)

    def announce_environment(self, environ: Mapping[str, str]) -> Sequence[str]:
        """Return the lines that a person is told before a daemon starts with this environment.

        All known features are asked: only the daemon can tell whether config.yaml, which may have one off, is trusted.
        """
        return tuple(line for each in self.known for line in each.announce_environment(environ))

    async def start(self, core: Core) -> RunningFeatures:
        """Start the features in the daemon, each with those before it at hand."""
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
        """Return the part of this class that a feature has started, or None."""
        return next((part for each in self.running for part in each.parts if isinstance(part, kind)), None)

    def take_requests(self, routes: IAgentRoutes) -> RelayHandler:
        """Return what takes requests off the agent site's channel before their bodies."""
        from aileron.base.http1 import FirstHandler

        found = [each.take_requests(routes) for each in reversed(self.running)]
        return FirstHandler(tuple(each for each in found if each is not None))

    def relayed(self) -> Sequence[RelayedPath]:
        """Return the paths of the agent site that features take off its channel."""
        return tuple(path for each in self.running for path in each.relayed())

    async def serve(self, sites: ListeningSites) -> None:
        """Start what needs the sites, which listen now."""
        for each in self.running:
            await each.serve(sites)

    def resources(self) -> Mapping[str, Callable[..., Any]]:
        """Return the handlers of the agent site's paths that are no routes of the API, by path."""
        return _merge(each.resources for each in self.running)

    def session_ended(self, session_id: str) -> None:
        """Release what features hold of a session. Idempotent."""
        for each in self.running:
            each.session_ended(session_id)

    def pending(self, session_id: str | None) -> int:
        """Return how many decisions of the operator features wait for, of all sessions or of one."""
        return sum(each.pending(session_id) for each in self.running)

    def status(self) -> Mapping[str, JSON]:
        """Return the features' members of C{GET /v1/status}."""
        return _merge(each.status() for each in self.running)

    async def session_members(self, *session_ids: str) -> Mapping[str, Mapping[str, JSON]]:
        """Return members that features add to each of these sessions in answers."""
        found = [await each.session_members(session_ids) for each in self.running]
        return {name: _merge(members.get(name, {}) for members in found) for name in session_ids}

    def metrics(self) -> Iterator[Any]:
        """Return the features' metric families."""
        return (metric for each in self.running for metric in each.metrics())

    def find_scope(self, name: str) -> Any:
        """Return the object whose C{scope()} a credential named like this is bound to, or None."""
        return next((found for each in self.running if (found := each.find_scope(name)) is not None), None)
