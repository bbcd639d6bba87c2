"""The commands of C{aileron own-tools}: the services that agents' own tools, such as C{gh}, may use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import asdict

from aileron.cli.actions.files import ACTIONS
from aileron.cli.actions.own_files import find_file, remove_file
from aileron.cli.actions.trusting import TrustRequest, as_values, refuse_unasked, tell, trust_added, yes
from aileron.cli.context import CliContext
from aileron.cli.errors import FAILED, CommandError
from aileron.cli.output import Columns, note, say, say_json, table_of
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.home.paths import prepare
from aileron.home.private_files import atomic_write, read_private
from aileron.model.own_tools import is_address

from . import completion
from .action_file import write_action
from .declared import LIST, DeclaredTools, find_declared, list_declared
from .machine import find_tools, list_lacking, list_ways

if TYPE_CHECKING:
    from aileron.client import Operator

_MAX_BYTES = 1024 * 1024
_COLUMNS: Columns = {
    "SERVICE": "service",
    "STATE": "state",
    "CONNECTOR": "connector",
    "HOSTS": lambda item: _shorten(item["hosts"]),
    "ACTION": "action",
}
_TOOLS: Columns = {
    "TOOL": "tool",
    "FOUND": lambda item: item["path"] or "not on PATH",
    "CREDENTIAL": lambda item: item["credential"] or "none needed",
    "TRUSTS AILERON BY": "trusts_by",
    "REACHES IT BY": "reaches_by",
}
_VAULT = {"locked": "Unlock it: aileron vault unlock", "missing": "Create one: aileron vault init"}
_PROXY_ONLY = "In a sandbox of this system, tools that ignore HTTPS_PROXY do not reach it."
_SERVICE = click.argument("service", shell_complete=completion.services)
_SHOWN_HOSTS = 2


@click.group("own-tools")
def own_tools() -> None:
    """Let agents' own tools, such as gh and curl, use services without a key.

    What they read is sent at once. What they write waits for your approval.
    """


@own_tools.command("add")
@_SERVICE
@yes
@operator_command
def add(command: OperatorCommand, /, service: str, yes: bool) -> None:
    """Write the action of SERVICE into your home, and ask you to trust it."""
    refuse_unasked(command.as_json, yes)
    cli, found = command.cli, find_declared(command.cli, service)
    prepare(cli.home)
    path = _write_once(cli, found, quiet=command.as_json)
    request = TrustRequest(ACTIONS.kind, paths=(path,), sure=yes, as_json=command.as_json)
    trusted = trust_added(cli, command.passphrase_fd, request)
    if command.as_json:
        say_json({"added": path.name, "trusted": as_values(trusted or [])})
    elif trusted is not None:
        tell(trusted)
        note("Check what else it needs: aileron own-tools check {service}", service=service)


@own_tools.command("list")
@reading_command
def list_services(command: OperatorCommand, /) -> None:
    """List the services that agents' own tools can use, and those that you can add."""
    answer, bindings, vault = command.read(_read_all)
    items = [
        {
            "service": each.tools.service,
            "state": _tell_state(_find_state(command.cli, each, answer), _is_bound(each, bindings), vault),
            "connector": each.about.name,
            "hosts": _list_hosts(each, bindings),
            "action": each.action,
        }
        for each in list_declared(command.cli)
    ]
    command.list({"items": items}, _COLUMNS, "No connector declares own tools.")


@own_tools.command("remove")
@_SERVICE
@click.option("--yes", is_flag=True, help="Delete it without asking.")
@operator_command
def remove(command: OperatorCommand, /, service: str, yes: bool) -> None:
    """Delete the action of SERVICE, so that agents' own tools can no longer use it.

    The credential stays bound to the connector.
    """
    found = find_declared(command.cli, service)
    if find_file(command.cli.home, ACTIONS, found.action) is None:
        raise CommandError(f"{service} was not added. Nothing was changed.", LIST)
    remove_file(command, ACTIONS, found.action, yes=yes)


@own_tools.command("check")
@_SERVICE
@reading_command
def check(command: OperatorCommand, /, service: str) -> None:
    """Check whether agents' own tools can use SERVICE now, and show what to do otherwise."""
    found = find_declared(command.cli, service)
    environ = command.cli.environ
    problems = [*_list_problems(command.cli, found, *command.read(_read_all)), *list_lacking(found.tools, environ)]
    tools: list[dict[str, Any]] = [asdict(each) for each in find_tools(found.tools, environ)]
    if command.as_json:
        told = [{"what": what, "command": typed} for what, typed in problems]
        say_json({"service": service, "problems": told, "tools": tools, "ways": list_ways(environ)})
    elif not problems:
        say("Ready: aileron launch AGENT --sandbox --own-tools {service}", service=service)
        table_of(_TOOLS, tools)
        if "host names" not in list_ways(environ):
            note(_PROXY_ONLY)
    for what, typed in () if command.as_json else problems:
        note("{what} {typed}", what=what, typed=typed)
    if problems:
        click.get_current_context().exit(FAILED)


async def _read_all(operator: Operator) -> tuple[Mapping[str, Any], Sequence[Mapping[str, Any]], str]:
    """Return the daemon's actions, its bindings, and the state of the vault, such as C{locked}."""
    vault = await operator.get("vault", "status")
    return await operator.get("actions"), (await operator.get("bindings"))["items"], vault["state"]


def _shorten(hosts: Sequence[str]) -> str:
    """Return hosts as one text: all of them, or the first ones and the number of the others."""
    if len(hosts) <= _SHOWN_HOSTS + 1:
        return ", ".join(hosts)
    return f"{', '.join(hosts[:_SHOWN_HOSTS])} and {len(hosts) - _SHOWN_HOSTS} more"


def _is_bound(found: DeclaredTools, bindings: Sequence[Mapping[str, Any]]) -> bool:
    return any(each["connector"] == found.about.name for each in bindings)


def _tell_state(state: str, bound: bool, vault: str) -> str:
    """Return the state of a service for the list: that of its action, or else what a ready action lacks.

    While the vault is locked, it is not known whether an action is trusted.
    """
    if vault != "unlocked" and state in ("ready", "not trusted"):
        return f"vault {vault}"
    return "no credential" if state == "ready" and not bound else state


def _list_hosts(found: DeclaredTools, bindings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the hosts of a service: at the base URL of its only binding, if that has one."""
    bound = [each.get("base_url") for each in bindings if each["connector"] == found.about.name]
    tools = found.about.find_tools(bound[0] if len(bound) == 1 else None)
    return [] if tools is None else list(tools.hosts)


def _list_problems(
    cli: CliContext, found: DeclaredTools, answer: Mapping[str, Any], bindings: Sequence[Mapping[str, Any]], vault: str
) -> Iterator[tuple[str, str]]:
    """Yield what a service lacks, each with the command that helps."""
    service, state = found.tools.service, _find_state(cli, found, answer)
    if vault != "unlocked":
        advice = _VAULT.get(vault, "See what to do: aileron doctor")
        yield ("There is no vault yet." if vault == "missing" else f"The vault is {vault}."), advice
    if state == "not added":
        yield f"{service} was not added.", f"Add it: aileron own-tools add {service}"
    elif state == "not trusted" and vault == "unlocked":
        yield f"The action {found.action} is not trusted.", f"Review it: aileron action trust {found.action}"
    elif state == "disabled":
        yield f"The action {found.action} is disabled.", f"Enable it: aileron action enable {found.action}"
    if not _is_bound(found, bindings):
        yield f"No credential is bound to {found.about.name}.", f"Bind one: aileron credential setup {found.about.name}"
    for host in _list_hosts(found, bindings):
        if is_address(host):
            yield f"{host} is an IP address. Tools reach a service by its name only.", "Use a name in base_url."


def _find_state(cli: CliContext, found: DeclaredTools, answer: Mapping[str, Any]) -> str:
    """Return C{ready}, C{disabled}, C{not trusted} or C{not added}: the state of the action of a service.

    :param answer: the actions that the daemon offers.
    """
    offered = next((each for each in answer["items"] if each["name"] == found.action), None)
    if offered is not None:
        return "ready" if offered["enabled"] else "disabled"
    return "not added" if find_file(cli.home, ACTIONS, found.action) is None else "not trusted"


def _write_once(cli: CliContext, found: DeclaredTools, *, quiet: bool) -> Path:
    """Write the action of a service into the home, unless it is there, and return its path.

    :raises CommandError: if the home has an action of that name with different contents.
    """
    text, path = write_action(found.about, found.tools).encode(), find_file(cli.home, ACTIONS, found.action)
    if path is None:
        path = ACTIONS.directory(cli.home) / f"{found.action}{ACTIONS.suffix}"
        atomic_write(path, text, replace=False)
        if not quiet:
            say("Written: {path}", path=path)
    elif read_private(path, _MAX_BYTES) != text:
        service = found.tools.service
        raise CommandError(
            f"{path} exists with different contents and was left as it is.",
            f"To replace it: aileron own-tools remove {service}, then aileron own-tools add {service}",
        )
    return path
