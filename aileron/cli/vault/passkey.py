"""C{aileron passkey}: the passkeys that sign decisions and let browsers in, and the approvals that require one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.output import Columns, say, time_at
from aileron.cli.session import OperatorCommand, plain_command, reading_command

from .open import add_passkey
from .terminal import note_multiplexer
from .unlocking import is_unlocked

if TYPE_CHECKING:
    from aileron.client import Operator


@click.group()
def passkey() -> None:
    """Let a passkey sign for you, and require one for approvals."""


@passkey.command("list")
@_options.exact_times
@reading_command
def list_passkeys(command: OperatorCommand) -> None:
    """List your passkeys, and what requires one.

    A passkey can be used at the address for which it was made. `operator_host` in config.yaml sets the address.
    """
    answer = command.get("operator", "passkeys")
    columns: Columns = {
        "NAME": "name",
        "SINCE": time_at("made_at"),
        "STATE": lambda item: "usable" if item["site"] == answer["site"] else f"only at {item['site']}",
        "SYNCED": lambda item: "" if item.get("synced") is None else "yes" if item["synced"] else "no",
        "ID": "id",
    }
    command.list(answer, columns, "No passkeys.")
    if not command.as_json:
        say("{rule}", rule=_tell(answer["rule"]))


@passkey.command("add")
@plain_command
def add(command: OperatorCommand) -> None:
    """Add a passkey: create it in the browser that opens, and type the two words that its page then shows.

    The daemon is started, and the vault unlocked, if necessary. The words also log the browser in.

    If you have created a passkey on the page *Passkeys* already, no page opens, and its words are asked for.
    """
    if _is_proposed(command.cli):
        note_multiplexer(command.cli.environ)
        words = command.cli.ask("The two words shown on the page: ")
        added = command.post("operator", "passkeys", "confirm", body={"words": words})
    else:
        added = add_passkey(command.cli, command.passphrase_fd)
    say("Passkey {name} added.", name=added["name"])


def _is_proposed(cli: CliContext) -> bool:
    """Return whether a browser's page has created a passkey and shows its two words, which must be typed here.

    If the vault is locked, return False. If the daemon is of an earlier version, which does not report this, return
    True, because that version requires opening the page before calling the command.
    """
    if not is_unlocked(cli):
        return False
    found = cli.running()
    if found.local_key is None:
        return True
    # One command runs one reactor, which the request with the words needs.
    return cli.probe(found.operator_url, "/v1/operator/passkeys", found.local_key).get("proposed", True) is True


@passkey.command("require")
@click.argument("actions", metavar="[ACTION]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every approval.")
@plain_command
def require(command: OperatorCommand, actions: tuple[str, ...], everything: bool) -> None:
    """Require your passkey for all approvals, or for those of some actions.

    A name that ends with * matches all actions with that prefix. The list replaces the previous one.
    """
    if everything is bool(actions):
        raise click.UsageError("Specify names of actions, or --all.")
    rule: dict[str, JSON] = {"everything": everything, "actions": list(actions)}
    answer = command.post("operator", "passkeys", "rule", body=rule)
    say("{rule}", rule=_tell(answer["rule"]))


@passkey.command("remove")
@click.argument("key", metavar="NAME")
@plain_command
def remove(command: OperatorCommand, key: str) -> None:
    """Remove one passkey by its name or ID, such as that of a lost phone.

    It counts no more at once. What it approved and has not started needs your approval again. The list of actions that
    require a passkey stays.
    """

    async def find(operator: Operator) -> Mapping[str, Any]:
        items = (await operator.get("operator", "passkeys"))["items"]
        found: list[Mapping[str, Any]] = [each for each in items if key in (each["id"], each["name"])]
        if len(found) != 1:
            why = "There is no passkey" if not found else "Several passkeys are named"
            raise CommandError(f"{why} {key}. Nothing was removed.", "List them: aileron passkey list")
        return found[0]

    async def work(operator: Operator) -> Mapping[str, Any]:
        return await operator.delete("operator", "passkeys", str((await find(operator))["id"]))

    gone = command.ask(work, find)
    say("Passkey {name} removed.", name=gone["name"])


@passkey.command("reset")
@plain_command
def reset(command: OperatorCommand) -> None:
    """Remove all passkeys, and require none any more."""
    command.delete("operator", "passkeys")
    say("All passkeys removed. No approval requires one.")


def _tell(rule: dict[str, Any]) -> str:
    if rule["everything"]:
        return "All approvals require a passkey."
    names = ", ".join(rule["actions"])
    return f"Approvals of these actions require a passkey: {names}." if names else "No approval requires a passkey."
