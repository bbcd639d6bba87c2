"""The contract of a feature: what it adds to each surface of the product."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from zope.interface import Attribute, Interface

from aileron.model.audit import EventName
from aileron.model.features import Command, NoticeRule, UpgradeAdvice

if TYPE_CHECKING:
    from .authority import ITrust
    from .connectors import IConfigFile


class IFeature(Interface):
    """A part of the product that can be left out.

    Commands, the daemon and the documentation ask every feature for what it adds, so the module that declares a
    feature imports nothing heavy, and each method imports what it needs.
    """

    name: str = Attribute("The name of the feature's directory, and its key below C{features} in config.yaml.")
    summary: str = Attribute("One line for people.")
    needs: Sequence[str] = Attribute("Names of the features without which this one is off as well.")
    targets: Mapping[str, str] = Attribute(
        "Words for what credentials can be bound to beside connectors, by the prefix of its name."
    )
    doctor_advice: Mapping[str, tuple[str, str]] = Attribute(
        "A sentence and a command that the feature adds to a finding of C{aileron doctor}, by finding: C{tracing}."
    )
    file_names: Sequence[str] = Attribute("Names in the home of the files that L{trusted_files} returns.")
    navigation: Mapping[str, str] = Attribute("Titles of the feature's pages in the navigation, by path.")
    variables: Sequence[str] = Attribute("The environment variables that the feature reads in the daemon.")

    def commands() -> Mapping[str, Command]:
        """Return commands by name; a name of two words is a command within a group."""

    def settings() -> Mapping[str, Any]:
        """Return the keys of config.yaml that belong to the feature: L{Key} or L{Section} by name.

        A key in the section of a feature that this one needs has the section before its name, such as
        C{gateway.providers.<name>.provider_tools}.
        """

    def event_types() -> Mapping[str, EventName]:
        """Return the audit events that the feature records, by type."""

    def notices() -> Mapping[str, NoticeRule]:
        """Return how the operator is notified of the feature's audit events, by type."""

    def migrations() -> Sequence[tuple[int, str]]:
        """Return the steps that make the feature's own tables: a number from 1 and SQL, in order."""

    def trusted_files(home: Any, trust: ITrust) -> Sequence[IConfigFile]:
        """Return the files of the home that count only after the operator trusted them."""

    def routes() -> Sequence[Any]:
        """Return tables of routes (L{EndpointTable}) for both sites."""

    def members() -> Mapping[str, Mapping[str, Any]]:
        """Return schemas of the members that the feature adds to answers of other routes, by route and member.

        In the place of a route stands the name of a component, such as C{Session}, to add members to all of its kind.
        """

    def pages() -> Mapping[str, Callable[..., Any]]:
        """Return pages of the operator site: the coroutine function that draws each, by path."""

    def slots() -> Mapping[str, Callable[..., Any]]:
        """Return what the feature adds to pages of others, by page, such as C{home}, C{session} or C{settings}.

        Each is a coroutine function of the routes' dependencies, the visit, and the page's subject or None, which
        returns parts of a page.
        """

    def next_steps(state: str) -> Sequence[str]:
        """Return commands that C{aileron} suggests in a state.

        :param state: C{missing} if there is neither vault nor daemon, C{running} if the daemon runs without a vault,
            C{empty} if there are no actions, C{ready} if there are actions and nothing waits, or C{first} if no agent
            was ever started.
        """

    def before_upgrade(home: Any) -> UpgradeAdvice | None:
        """Return what C{aileron upgrade --check} reports of the feature, or None if it has nothing to report."""

    def doctor_checks() -> Iterable[Callable[..., Any]]:
        """Return generator functions of the daemon's status that yield findings of C{aileron doctor}."""

    def find_sandboxes(reactor: Any, environment: Mapping[str, str]) -> Any:
        """Return the L{ISandboxes} for programs of connectors, or None if the feature makes no sandboxes.

        :raises NotFound, Forbidden: the feature makes sandboxes, but this machine cannot.
        """

    def setup_offers() -> Sequence[Callable[..., Any]]:
        """Return what C{aileron setup} offers the person at its end.

        Each is a coroutine function of the command's context and the operator's client.
        """

    def status_lines(status: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the lines that C{aileron status} prints for the feature, by label.

        :param status: the answer of C{GET /v1/status}.
        """

    def list_targets(status: Mapping[str, Any]) -> Iterable[str]:
        """Return the names that credentials can be bound to, for completion in a shell.

        :param status: the answer of C{GET /v1/status}.
        """

    def explain_binding(target: str, credential: str) -> Sequence[str]:
        """Return the lines that tell how to use a credential that was bound to a target of the feature."""

    def choose_environment(cli: Any) -> Any:
        """Return the context of a command whose environment the successor of the running daemon gets.

        :param cli: the context of the command.
        :raises CommandError: the person must choose, and did not.
        """

    def check_environment(cli: Any, found: Any) -> None:
        """Check the environment of a command that launches an agent against the running daemon.

        :param cli: the context of the command.
        :param found: where the daemon is.
        :raises CommandError: they do not fit.
        """

    def check_variables(environ: Mapping[str, str]) -> None:
        """Check the variables that the feature reads in the daemon, before the daemon starts.

        :raises InvalidRequest: a variable has a value that the feature refuses.
        """

    def announce_environment(environ: Mapping[str, str]) -> Sequence[str]:
        """Return the lines that a person is told before a daemon starts with this environment."""

    async def start(core: Any) -> Any:
        """Start the feature in the daemon, before its sites listen, and return a L{RunningFeature} or None.

        :param core: the L{Core} of this daemon.
        """
