"""The hosts and services that an agent in a sandbox may reach, as the user names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import click
from attrs import frozen

from aileron.features.egress.values import EGRESS_PRESETS, read_egress
from aileron.features.own_tools import completion

_UNPROTECTED = (
    "--own-tools requires --sandbox: without it nothing leads the tools' requests to Aileron, and the agent could use "
    "keys of yours instead."
)
NO_SERVICES = "none"
"""The word for no service, not even those of C{config.yaml}."""

_EGRESS = click.option(
    "--egress",
    metavar="LIST",
    help="With --sandbox: also let the agent reach these hosts, by presets "
    f"({', '.join(EGRESS_PRESETS)}) or by name, and those of egress.toml for this project; "
    "'project' means those alone.",
)
_OWN_TOOLS = click.option(
    "--own-tools",
    metavar="LIST",
    shell_complete=completion.services,
    help="With --sandbox: let the agent's own tools, such as gh and curl, use these services without a key. What they "
    "change waits for your approval. By default those of own_tools.services in config.yaml; 'none' means no service.",
)


@frozen
class SandboxAccess:
    """The hosts and services that an agent in a sandbox may reach, besides Aileron.

    :ivar egress: presets and hosts, as the user wrote them.
    :ivar services: the names of the services that the agent's own tools may use.
    :ivar configured: whether the services are those of C{config.yaml} if none is named.
    """

    egress: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    configured: bool = False

    def features(self) -> Mapping[str, bool]:
        """Return, for each feature that has one of these options, whether its option was given."""
        return {"egress": bool(self.egress), "own_tools": bool(self.services)}


def access_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options C{--egress} and C{--own-tools} to a command, which gets a L{SandboxAccess} as C{access}."""

    @wraps(command)
    def run(*arguments: Any, egress: str | None, own_tools: str | None, **options: Any) -> None:
        access = read_access(egress, own_tools, sandbox=options["sandbox"])
        command(*arguments, access=access, **options)

    return _EGRESS(_OWN_TOOLS(run))


def read_access(egress: str | None, services: str | None, *, sandbox: bool) -> SandboxAccess:
    """Read the options C{--egress} and C{--own-tools}. Whether there are such services is not checked.

    :raises click.UsageError: if an option names nothing, a word is neither a preset nor a host, or there is no sandbox.
    """
    hosts, named = _read_hosts(egress, sandbox=sandbox), _read_services(services, sandbox=sandbox)
    return SandboxAccess(hosts, named, sandbox and services is None)


def _read_hosts(text: str | None, *, sandbox: bool) -> tuple[str, ...]:
    if text is not None and not sandbox:
        raise click.UsageError("--egress requires --sandbox: without it the agent has the whole network.")
    return read_hosts(text)


def read_hosts(text: str | None) -> tuple[str, ...]:
    """Read the option C{--egress}, which may be missing.

    :raises click.UsageError: if it names nothing, or a word is neither a preset nor a host.
    """
    if text is None:
        return ()
    words = _split(text)
    try:
        read_egress(words)
    except ValueError as error:
        raise click.UsageError(f"--egress: {error}") from None
    if not words:
        raise click.UsageError("--egress needs presets or hosts, separated by commas.")
    return words


def _read_services(text: str | None, *, sandbox: bool) -> tuple[str, ...]:
    if text is None:
        return ()
    # guard of own tools: they are not promised where nothing leads requests to Aileron
    #    -> features.launch.test_access.AccessTests.test_sandbox
    if not sandbox:
        raise click.UsageError(_UNPROTECTED)
    return () if text.strip() == NO_SERVICES else read_services(text, "--own-tools")


def read_services(text: str, option: str) -> tuple[str, ...]:
    """Read the names of services. Whether there are such services is not checked.

    :param option: the option that has them, for the error.
    :raises click.UsageError: if there is none.
    """
    names = tuple(dict.fromkeys(_split(text)))
    if not names:
        raise click.UsageError(f"{option} needs services, separated by commas. List them: aileron own-tools list")
    return names


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.split(","))))
