"""C{aileron operator}: who is logged in as you, by which passkeys, and a short-lived child that logs in for a token."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, Links, pass_cli
from aileron.cli._errors import CommandError
from aileron.cli._output import say
from aileron.cli._session import OperatorCommand, as_operator, log_in, operator_command


@click.group()
def operator() -> None:
    """See and end your own logins."""


@operator.command("login")
@click.option(
    "--token-fd",
    type=click.IntRange(min=0),
    required=True,
    metavar="N",
    help="Write the token to this inherited descriptor; it is shown nowhere.",
)
@click.option("--at", metavar="URL", help="Log in there and nowhere else: the token is meant for that address.")
@_options.passphrase_fd
@pass_cli
def login(cli: CliContext, token_fd: int, at: str | None, passphrase_fd: int | None) -> None:
    """Log in, and write the token to a descriptor of the command that started this one."""
    found = cli.running()
    if at not in (None, found.operator_url):
        told = f"The daemon is at {found.operator_url} now, and the login was asked for at {at}."
        raise CommandError(told, "Nobody was logged in. If you started it anew just now, give the command once more.")

    async def whole(links: Links) -> str:
        return await log_in(cli, links, found, passphrase_fd)

    token = cli.drive(whole)
    try:
        with open(token_fd, "wb") as pipe:
            pipe.write(token.encode("ascii"))
    except (OSError, ValueError):
        raise CommandError(
            "The token's descriptor cannot be written to, so the login serves nobody.",
            "End it: aileron operator revoke --all",
        ) from None


def token_from_child(cli: CliContext, url: str, passphrase_fd: int | None) -> str:
    """Get a token from a child, in whose terminal the person typed the passphrase; we never hold that.

    :param url: of the operator site that the token will be shown to.  Whoever replaces C{daemon.json} between our look
        and the child's must not be shown a token of the true daemon.
    :raises CommandError: the child could not log in, and has said why.
    """
    import subprocess

    from aileron.cli.daemon.process import command, private_pair

    cli.conceal()
    reading, writing = private_pair()
    try:
        arguments = ["operator", "login", "--token-fd", str(writing), "--at", url]
        passed = [writing]
        if passphrase_fd is not None:
            arguments += ["--passphrase-fd", str(passphrase_fd)]
            passed.append(passphrase_fd)
        child = subprocess.Popen(command(*arguments), env=dict(cli.environ), pass_fds=passed)
    finally:
        os.close(writing)
    with open(reading, "rb") as pipe:
        token = pipe.read().decode("ascii", "replace")
    if child.wait() != 0 or not token:
        raise CommandError("There was no login, so there is nothing to go on with.")
    return token


@operator.command("list")
@operator_command
def list_logins(command: OperatorCommand) -> None:
    """List your live logins, newest first; one of them is this command's own."""
    command.list(
        lambda operator: operator.operator_sessions(),
        ("ID", "WHERE", "SINCE", "LAST USED", "UNTIL"),
        lambda item: (item["id"], _where(item), item["started_at"], item["used_at"], item["expires_at"]),
        "Nobody is logged in.",
    )


def _where(item: Mapping[str, Any]) -> str:
    if item["yours"]:
        return "this command"
    return "browser" if item["browser"] else "terminal"


@operator.command("revoke")
@click.argument("login", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="All of them, which leaves you logged in nowhere.")
@operator_command
def revoke(command: OperatorCommand, login: str | None, every: bool) -> None:
    """End one of your logins, or all: its browser or command can do nothing more."""
    if every is (login is not None):
        raise click.UsageError("Say which login: its ID, or --all.")
    answer = command.ask(
        lambda operator: operator.end_operator_sessions() if login is None else operator.end_operator_session(login),
    )
    command.say(answer, "Ended: {ids}.", ids=", ".join(answer["ended"]) or "none, for there was no other")


@operator.group("passkey")
def passkey() -> None:
    """Have approvals ask for your passkey."""


@passkey.command("list")
@operator_command
def list_passkeys(command: OperatorCommand) -> None:
    """List the passkeys that count, and say what needs one."""
    answer = command.list(
        lambda operator: operator.passkeys(),
        ("NAME", "SINCE", "ID"),
        lambda item: (item["name"], item["made_at"], item["id"]),
        "There is no passkey.",
    )
    if not command.as_json:
        say("{rule}", rule=_tell(answer["rule"]))


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
    say("{rule}", rule=_tell(answer["rule"]))


@passkey.command("reset")
@_options.passphrase_fd
@pass_cli
def reset(cli: CliContext, passphrase_fd: int | None) -> None:
    """Forget every passkey, and ask for none any more."""
    as_operator(cli, passphrase_fd, lambda operator: operator.reset_passkeys())
    say("No passkey counts any more, and no approval needs one.")


def _tell(rule: dict[str, Any]) -> str:
    if rule["everything"]:
        return "Every approval needs a passkey."
    names = ", ".join(rule["actions"])
    return f"Approvals of these actions need a passkey: {names}." if names else "No approval needs a passkey."
