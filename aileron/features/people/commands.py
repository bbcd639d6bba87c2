"""The group of commands C{aileron people}: the accounts of the people who decide together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.output import Columns, note, say, time_at
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.model.people import NAME, Role

if TYPE_CHECKING:
    from aileron.client import Operator

_is_name = re.compile(NAME).fullmatch
_ROLES = click.Choice([role.value for role in Role])
_NOTHING = "No accounts: you decide alone. Add one: aileron people add NAME --role approver"
_STATES = {"active": "active", "invited": "invited", "altered": "altered outside of Aileron: remove it"}
_COLUMNS: Columns = {
    "NAME": "name",
    "ROLE": "role",
    "GROUPS": lambda item: ", ".join(item["groups"]),
    "STATE": lambda item: _STATES[item["state"]],
    "PASSKEYS": lambda item: str(item["passkeys"]),
    "SINCE": time_at("created_at"),
}


def _check_name(context: click.Context, parameter: click.Parameter, name: str) -> str:
    if _is_name(name) is None:
        raise click.BadParameter(
            "a name has at most 32 small letters, digits and hyphens, and begins with a letter.", context, parameter
        )
    return name


def _check_names(context: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_check_name(context, parameter, name) for name in names))


_GROUP = click.option(
    "--group",
    "groups",
    metavar="NAME",
    multiple=True,
    callback=_check_names,
    help="A group that rules about approvals can name, as group:NAME. Can be repeated.",
)


@click.group()
def people() -> None:
    """Let several people decide, each with an account and a role, at the address `phone.public_url`."""


@people.command("list")
@_options.exact_times
@reading_command
def list_people(command: OperatorCommand, /) -> None:
    """List the accounts with their roles."""
    command.list(command.get("people"), _COLUMNS, _NOTHING)


@people.command("add")
@click.argument("names", metavar="NAME...", nargs=-1, required=True, callback=_check_names)
@click.option("--role", type=_ROLES, default=Role.APPROVER.value, show_default=True, help="What the person may do.")
@_GROUP
@operator_command
def add(command: OperatorCommand, /, names: tuple[str, ...], role: str, groups: tuple[str, ...]) -> None:
    """Make accounts, and show for each the link by which its person sets a passphrase.

    A viewer sees requests and runs. An approver also decides. An administrator also issues grants and manages accounts.
    """
    wanted: dict[str, JSON] = {"groups": list(groups)} if groups else {}
    added: list[Mapping[str, Any]] = []

    async def add_each(operator: Operator) -> None:
        for name in names:
            added.append(await operator.post("people", body={"name": name, "role": role, **wanted}))  # noqa: PERF401

    try:
        command.ask(add_each)
    finally:  # also if a later name is refused: a link is shown only now
        _show(command, *added)


@people.command("invite")
@click.argument("name")
@operator_command
def invite(command: OperatorCommand, /, name: str) -> None:
    """Replace the passphrase and the passkeys of an account by a new link, such as for a person who forgot it."""
    _show(command, command.post("people", name, "invite"))


@people.command("role")
@click.argument("name")
@click.argument("role", type=_ROLES)
@operator_command
def change_role(command: OperatorCommand, /, name: str, role: str) -> None:
    """Give an account another role. Its person signs in again."""
    changed = command.post("people", name, "role", body={"role": role})
    command.say(changed, "{name} is now {role}.", name=name, role=role)


@people.command("groups")
@click.argument("name")
@_GROUP
@operator_command
def change_groups(command: OperatorCommand, /, name: str, groups: tuple[str, ...]) -> None:
    """Give an account exactly these groups; without --group none. Its person signs in again."""
    wanted: JSON = list(groups)
    changed = command.post("people", name, "groups", body={"groups": wanted})
    told = ", ".join(changed["groups"]) or "none"
    command.say(changed, "The groups of {name} are now: {groups}.", name=name, groups=told)


@people.command("remove")
@click.argument("name")
@operator_command
def remove(command: OperatorCommand, /, name: str) -> None:
    """Remove an account. Its person is logged out at once."""
    command.say(command.delete("people", name), "The account {name} is removed.", name=name)


@people.command("connect")
@click.argument("name")
@click.argument("agent")
@click.option("--hours", type=click.IntRange(1, 720), default=8, show_default=True, help="Maximum duration.")
@operator_command
def connect(command: OperatorCommand, /, name: str, agent: str, hours: int) -> None:
    """Open a session for an AGENT of the account NAME, and print its credentials, once.

    Set the printed variables in the agent's environment, on the person's machine. What the agent requests is confirmed
    by this person. To open a session of your own: aileron session open
    """

    def print_variables(opened: Mapping[str, Any]) -> None:
        for variable, text in {"AILERON_URL": command.cli.running().url, "AILERON_TOKEN": opened["token"]}.items():
            say("{variable}={text}", variable=variable, text=text)
        note(
            "On another machine, set AILERON_URL to the https:// address at which that machine reaches the agent site."
        )
        note("Session {id} ends after {hours} h. To end it now: aileron session end {id}", id=opened["id"], hours=hours)

    command.show(
        command.post("people", name, "sessions", body={"agent": agent, "minutes": hours * 60}), print_variables
    )


def _show(command: OperatorCommand, *invited: Mapping[str, Any]) -> None:
    def print_links(_: Any) -> None:
        for each in invited:
            say(
                "{name} ({role}) sets a passphrase here, once, within three days:", name=each["name"], role=each["role"]
            )
            say("  {url}", url=each["url"])
        note("Whoever opens a link first has the account. Send each to its person alone.")

    if invited:
        command.show(invited[0] if len(invited) == 1 else {"items": list(invited)}, print_links)
