"""The contract of a feature: what it adds to each surface of the product."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zope.interface import Attribute, Interface

from aileron.model.audit import EventName
from aileron.model.features import Command, NoticeRule, UpgradeAdvice

if TYPE_CHECKING:
    from .authority import ITrust
    from .connectors import IConfigFile


class IFeature(Interface):
    """A part of the product that can be switched off.

    Commands, the daemon and the documentation call every feature, so the module that declares a feature imports nothing
    heavy, and each method imports the modules that it needs.
    """

    name: str = Attribute("The name of the feature's directory, and its key below C{features} in config.yaml.")
    summary: str = Attribute("One line for people.")
    needs: Sequence[str] = Attribute("Names of the features that must be on for this feature to be on.")
    targets: Mapping[str, str] = Attribute(
        "Labels of the things beside connectors that credentials can be bound to, by the prefix of their names."
    )
    doctor_advice: Mapping[str, tuple[str, str]] = Attribute(
        "A sentence and a command that the feature adds to a finding of C{aileron doctor}, by finding: C{tracing}."
    )
    file_names: Sequence[str] = Attribute("The names of the files that L{trusted_files} returns, in the home.")
    navigation: Mapping[str, str] = Attribute("Titles of the feature's pages in the navigation, by path.")
    variables: Sequence[str] = Attribute("The environment variables that the feature reads in the daemon.")
    workers: Mapping[str, Path] = Attribute(
        "Scripts that a browser may run as service workers, by path. They are served only where the pages keep their "
        "address, and answer no requests of pages."
    )
    scripts: Sequence[Path] = Attribute(
        "Files of JavaScript modules that run in every page. They import C{hooks.js} and other modules of the pages."
    )

    def commands() -> Mapping[str, Command]:
        """Return the feature's commands by name. A name of two words is a command within a group."""

    def settings() -> Mapping[str, Any]:
        """Return the keys of config.yaml that belong to the feature: L{Key} or L{Section} by name.

        A key within the section of another feature is named with that section, such as
        C{gateway.providers.<name>.provider_tools}.
        """

    def event_types() -> Mapping[str, EventName]:
        """Return the audit events that the feature records, by type."""

    def notices() -> Mapping[str, NoticeRule]:
        """Return the rules for notifying the operator of the feature's audit events, by event type."""

    def trusted_files(home: Any, trust: ITrust) -> Sequence[IConfigFile]:
        """Return the files of the home that are in force only after the operator trusted them."""

    def routes() -> Sequence[Any]:
        """Return tables of routes (L{EndpointTable}) for both sites."""

    def members() -> Mapping[str, Mapping[str, Any]]:
        """Return schemas of the members that the feature adds to answers of other routes, by route and member.

        A key may also be the name of a component, such as C{Session}. Then the members are added to every value of it.
        """

    def pages() -> Mapping[str, Callable[..., Any]]:
        """Return the coroutine functions that draw the feature's pages of the operator site, by path."""

    def slots() -> Mapping[str, Callable[..., Any]]:
        """Return the functions that draw the feature's parts of other pages, by page, such as C{home} or C{settings}.

        C{approvals_end} is the end of the list of requests. Each is a coroutine function of the routes' dependencies,
        the visit, and the page's subject or None, which returns parts of a page.
        """

    def next_steps(state: str) -> Sequence[str]:
        """Return commands that C{aileron} suggests in a state.

        :param state: C{missing} if there is neither vault nor daemon, C{running} if the daemon runs without a vault,
            C{empty} if there are no actions, C{ready} if there are actions and nothing waits, or C{first} if no agent
            was ever started.
        """

    def before_upgrade(home: Any) -> UpgradeAdvice | None:
        """Return the feature's part of C{aileron upgrade --check}, or None if there is nothing to report."""

    def doctor_checks() -> Iterable[Callable[..., Any]]:
        """Return generator functions of the daemon's status that yield findings of C{aileron doctor}."""

    def find_sandboxes(reactor: Any, environment: Mapping[str, str]) -> Any:
        """Return the L{ISandboxes} for programs of connectors, or None if the feature makes no sandboxes.

        :raises NotFound, Forbidden: if the feature makes sandboxes, but this machine does not support them.
        """

    def setup_offers() -> Sequence[Callable[..., Any]]:
        """Return the functions for the further steps that C{aileron setup} offers at its end.

        Each is a coroutine function of the command's context and the operator's client.
        """

    def status_lines(status: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the lines that C{aileron status} prints for the feature, by label.

        :param status: the answer of C{GET /v1/status}.
        """

    def watch_offers() -> Sequence[Callable[..., Any]]:
        """Return the functions that C{aileron watch} calls each second for what it offers beside pending approvals.

        Each is a coroutine function of the operator's client that returns L{WatchOffer}s.
        """

    def list_targets(status: Mapping[str, Any]) -> Iterable[str]:
        """Return the names that credentials can be bound to, for completion in a shell.

        :param status: the answer of C{GET /v1/status}.
        """

    def explain_binding(target: str, credential: str) -> Sequence[str]:
        """Return the lines that explain the use of a credential that was bound to a target of the feature."""

    def key_sources(cli: Any) -> Sequence[Any]:
        """Return the feature's L{IKeySource}s that need a person at the terminal, such as security keys.

        Commands read them before they ask for the passphrase to unlock the vault.

        :param cli: the context of the command.
        """

    def unattended_key_sources(cli: Any) -> Sequence[Any]:
        """Return the feature's L{IKeySource}s that need no person.

        They are read when a daemon starts, and again while one of them cannot be asked.

        :param cli: the context of the command.
        """

    def choose_environment(cli: Any) -> Any:
        """Return the command's context with the environment for the daemon that replaces the running one.

        :param cli: the context of the command.
        :raises CommandError: if the person must choose an environment, but did not.
        """

    def check_environment(cli: Any, found: Any) -> None:
        """Check that the environment of a command that launches an agent matches the running daemon.

        :param cli: the context of the command.
        :param found: the address of the running daemon.
        :raises CommandError: if the environment does not match.
        """

    def check_variables(environ: Mapping[str, str]) -> None:
        """Check the variables that the feature reads in the daemon, before the daemon starts.

        :raises InvalidRequest: if a variable has a value that the feature refuses.
        """

    def announce_environment(environ: Mapping[str, str]) -> Sequence[str]:
        """Return the lines to print before a daemon starts with this environment."""

    async def start(core: Any) -> Any:
        """Start the feature in the daemon, before its sites listen, and return a L{RunningFeature} or None.

        :param core: the L{Core} of this daemon.
        """
