"""C{aileron operator}: logins and passkeys of the operator, and a short-lived child that logs in to return a token."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.context import CliContext, Links, pass_cli
from aileron.cli.errors import INTERRUPTED, CommandError
from aileron.cli.ids import id_argument
from aileron.cli.output import Columns, say, time_at
from aileron.cli.session import (
    OperatorCommand,
    log_in,
    look_first,
    operator_command,
    plain_command,
    quietly,
    reading_command,
)
from aileron.cli.things import LOGIN

from .terminal import note_multiplexer
from .unlocking import unlock_for_login

if TYPE_CHECKING:
    from aileron.client import Operator

T = TypeVar("T")


@click.group()
def operator() -> None:
    """List and end your own logins."""


@operator.command("login")
@click.option(
    "--token-fd",
    type=click.IntRange(min=0),
    required=True,
    metavar="N",
    help="Write the token to this inherited file descriptor. It is not shown.",
)
@click.option("--at", metavar="URL", help="Log in only if the daemon is at this address.")
@click.option("--unlock", is_flag=True, help="Start the daemon and unlock the vault first, if necessary.")
@_options.passphrase_fd
@pass_cli
def login(cli: CliContext, token_fd: int, at: str | None, unlock: bool, passphrase_fd: int | None) -> None:
    """Log in, and write the token to a file descriptor of the parent process."""
    secret = unlock_for_login(cli, passphrase_fd) if unlock else None
    found = cli.running()
    if at not in (None, found.operator_url):
        told = f"The daemon is at {found.operator_url}, not at {at}."
        raise CommandError(told, "You were not logged in. If the daemon was just restarted, run the command again.")

    async def carry_out(links: Links) -> str:
        return await log_in(cli, links, found, passphrase_fd, secret)

    token = cli.drive(carry_out)
    try:
        with open(token_fd, "wb") as pipe:
            pipe.write(token.encode("ascii"))
    except (OSError, ValueError):
        raise CommandError(
            "Cannot write the token to its descriptor. The login is not used.",
            "End it: aileron operator revoke --all",
        ) from None


def token_from_child(cli: CliContext, url: str, passphrase_fd: int | None) -> str:
    """Return a token from a child, in whose terminal the person typed the passphrase. This process never holds it.

    :param url: the operator site that the token is for. If a program replaces C{daemon.json} between our check and the
        child's, it must not receive a token of the true daemon.
    :raises CommandError: the child could not log in, and has printed the reason.
    :raises KeyboardInterrupt: the person pressed Ctrl-C there.
    """
    return _log_in_child(cli, passphrase_fd, "--at", url)


def unlock_with_child(cli: CliContext, passphrase_fd: int | None) -> str:
    """Return a token as L{token_from_child} does, from a child that first starts the daemon and unlocks the vault.

    :raises CommandError: the child could not, and has printed the reason.
    :raises KeyboardInterrupt: the person pressed Ctrl-C there.
    """
    return _log_in_child(cli, passphrase_fd, "--unlock")


def _log_in_child(cli: CliContext, passphrase_fd: int | None, *options: str) -> str:
    import subprocess

    from aileron.cli.daemon.process import command, private_pair
    from aileron.cli.drive import interruptible

    cli.conceal()
    reading, writing = private_pair()
    try:
        arguments = ["operator", "login", "--token-fd", str(writing), *options]
        passed = [writing]
        if passphrase_fd is not None:
            arguments += ["--passphrase-fd", str(passphrase_fd)]
            passed.append(passphrase_fd)
        child = subprocess.Popen(command(*arguments), env=dict(cli.environ), pass_fds=passed)
    finally:
        os.close(writing)
    with interruptible(lambda _number, _frame: None), open(reading, "rb") as pipe:  # Ctrl-C is the child's
        token = pipe.read().decode("ascii", "replace")
        status = child.wait()
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    if status != 0 or not token:
        raise CommandError("Login failed, so nothing was done.")
    return token


def as_signed_in(
    cli: CliContext,
    passphrase_fd: int | None,
    work: Callable[[Operator], Awaitable[T]],
    look: Callable[[Operator], Awaitable[object]] | None = None,
) -> T:
    """Log in with a child, so that other programs may be started, run C{work} with the operator site, and log out.

    :param look: see L{look_first}.
    """
    url = cli.running().operator_url

    async def carry_out(links: Links) -> T:
        await look_first(cli, links, look)
        token = token_from_child(cli, url, passphrase_fd)
        operator = links.operator(url, token)
        try:
            return await work(operator)
        finally:
            await quietly(operator.logout)

    return cli.drive(carry_out)


@operator.command("list")
@_options.exact_times
@reading_command
def list_logins(command: OperatorCommand) -> None:
    """List your active logins, newest first. One of them belongs to this command."""
    columns: Columns = {
        "ID": "id",
        "CLIENT": _where,
        "SINCE": time_at("started_at"),
        "LAST USED": time_at("used_at"),
        "CAN": lambda item: "decide" if item.get("decides", True) else "watch",
        "DECIDES UNTIL": time_at("expires_at"),
    }
    command.list(command.get("operator", "sessions"), columns, "No logins.")


def _where(item: Mapping[str, Any]) -> str:
    if item["yours"]:
        return "this command"
    return "browser" if item["browser"] else "terminal"


@operator.command("revoke")
@id_argument("login", LOGIN, optional=True)
@click.option("--all", "every", is_flag=True, help="End all logins.")
@operator_command
def revoke(command: OperatorCommand, login: str | None, every: bool) -> None:
    """End one of your logins, or all. Its browser or command loses access."""
    if every is (login is not None):
        raise click.UsageError("Specify a login ID, or --all.")
    path = ("operator", "sessions", *([] if login is None else [login]))

    async def look(operator: Operator) -> None:
        logins = (await operator.get("operator", "sessions"))["items"]
        if login is not None and login not in {each["id"] for each in logins}:
            raise CommandError(f"There is no login {login}. Nothing was ended.", "List them: aileron operator list")

    answer = command.ask(lambda operator: operator.delete(*path), look)
    command.say(answer, "Ended: {ids}.", ids=", ".join(answer["ended"]) or "none")


@operator.group("passkey")
def passkey() -> None:
    """Require a passkey for approvals."""


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
        "ID": "id",
    }
    command.list(answer, columns, "No passkeys.")
    if not command.as_json:
        say("{rule}", rule=_tell(answer["rule"]))


@passkey.command("add")
@plain_command
def add(command: OperatorCommand) -> None:
    """Confirm the passkey that you created on the page of `aileron open passkeys`."""
    note_multiplexer(command.cli.environ)
    words = command.cli.ask("The two words shown on the page: ")
    added = command.post("operator", "passkeys", "confirm", body={"words": words})
    say("Passkey {name} added.", name=added["name"])


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
