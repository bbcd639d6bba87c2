"""C{aileron operator passkey}: what may not be approved without one, and which count."""

from __future__ import annotations

from typing import Any

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._output import listed, say
from aileron.cli._session import as_operator


@click.group("passkey")
def passkey() -> None:
    """Have approvals ask for your passkey."""


@passkey.command("list")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def list_passkeys(cli: CliContext, passphrase_fd: int | None, as_json: bool) -> None:
    """List the passkeys that count, and say what needs one."""
    answer = as_operator(cli, passphrase_fd, lambda operator: operator.passkeys())
    rows = ((item["name"], item["made_at"], item["id"]) for item in answer["items"])
    listed(as_json, answer, ("NAME", "SINCE", "ID"), rows, "There is no passkey.")
    if not as_json:
        say("{rule}", rule=_told(answer["rule"]))


@passkey.command("add")
@_options.passphrase_fd
@pass_cli
def add(cli: CliContext, passphrase_fd: int | None) -> None:
    """Let the passkey count that you made on the page of `aileron open passkeys`."""
    words = cli.ask("The two words that the page shows: ")
    added = as_operator(cli, passphrase_fd, lambda operator: operator.confirm_passkey(words))
    say("The passkey {name} counts from now on.", name=added["name"])


@passkey.command("require")
@click.argument("actions", metavar="[ACTION]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every approval.")
@_options.passphrase_fd
@pass_cli
def require(cli: CliContext, actions: tuple[str, ...], everything: bool, passphrase_fd: int | None) -> None:
    """Have every approval, or those of these actions, need your passkey.

    A name that ends with * is every action that begins so. Name those that need one already, too.
    """
    if everything is bool(actions):
        raise click.UsageError("Say which approvals: names of actions, or --all.")
    answer = as_operator(cli, passphrase_fd, lambda operator: operator.require_passkey(everything, actions))
    say("{rule}", rule=_told(answer["rule"]))


@passkey.command("reset")
@_options.passphrase_fd
@pass_cli
def reset(cli: CliContext, passphrase_fd: int | None) -> None:
    """Forget every passkey, and ask for none any more."""
    as_operator(cli, passphrase_fd, lambda operator: operator.reset_passkeys())
    say("No passkey counts any more, and no approval needs one.")


def _told(rule: dict[str, Any]) -> str:
    if rule["everything"]:
        return "Every approval needs a passkey."
    names = ", ".join(rule["actions"])
    return f"Approvals of these actions need a passkey: {names}." if names else "No approval needs a passkey."
