"""C{aileron operator}: logins and passkeys of the operator, and a short-lived child that logs in to return a token."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aileron.cli import options as _options
from aileron.cli.context import CliContext, Links, pass_cli
from aileron.cli.errors import INTERRUPTED, CommandError
from aileron.cli.ids import id_argument
from aileron.cli.output import Columns, time_at
from aileron.cli.session import (
    OperatorCommand,
    log_in,
    look_first,
    operator_command,
    quietly,
    reading_command,
)
from aileron.cli.things import LOGIN

from .unlocking import unlock_for_login

if TYPE_CHECKING:
    from aileron.client import Operator, OperatorLogin

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

    async def carry_out(links: Links) -> OperatorLogin:
        return await log_in(cli, links, found, passphrase_fd, secret)

    logged_in = cli.drive(carry_out)
    try:
        with open(token_fd, "wb") as pipe:
            pipe.write(logged_in.write().encode("ascii"))
    except (OSError, ValueError):
        raise CommandError(
            "Cannot write the token to its descriptor. The login is not used.",
            "End it: aileron operator revoke --all",
        ) from None


def login_from_child(cli: CliContext, url: str, passphrase_fd: int | None) -> OperatorLogin:
    """Return a login from a child, in whose terminal the person typed the passphrase. This process never holds it.

    :param url: the operator site that the token is for. If a program replaces C{daemon.json} between our check and the
        child's, it must not receive a token of the true daemon.
    :raises CommandError: if the child could not log in, and has printed the reason.
    :raises KeyboardInterrupt: if the person pressed Ctrl-C there.
    """
    return _log_in_child(cli, passphrase_fd, "--at", url)


def unlock_with_child(cli: CliContext, passphrase_fd: int | None) -> OperatorLogin:
    """Return a login from a child that first starts the daemon and unlocks the vault.

    The person types the passphrase in the child's terminal. This process never holds it.

    :raises CommandError: if the child could not, and has printed the reason.
    :raises KeyboardInterrupt: if the person pressed Ctrl-C there.
    """
    return _log_in_child(cli, passphrase_fd, "--unlock")


def _log_in_child(cli: CliContext, passphrase_fd: int | None, *options: str) -> OperatorLogin:
    import subprocess

    from aileron.cli.daemon.process import command, private_pair
    from aileron.cli.drive import interruptible
    from aileron.client import OperatorLogin

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
        line = pipe.read().decode("ascii", "replace")
        status = child.wait()
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    if status != 0 or not line:
        raise CommandError("Login failed, so nothing was done.")
    return OperatorLogin.read(line)


def as_signed_in(
    cli: CliContext,
    passphrase_fd: int | None,
    work: Callable[[Operator], Awaitable[T]],
    look: Callable[[Operator], Awaitable[object]] | None = None,
) -> T:
    """Log in with a child, so that other programs may be started, run C{work} with the operator site, and log out.

    Return the result of C{work}. Its errors are raised unchanged.

    :param look: see L{look_first}.
    :raises CommandError: if no daemon runs, C{look} raised it, or the child could not log in and has printed the
        reason.
    :raises KeyboardInterrupt: if the person pressed Ctrl-C in the child.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    url = cli.running().operator_url

    async def carry_out(links: Links) -> T:
        await look_first(cli, links, look)
        login = login_from_child(cli, url, passphrase_fd)
        operator = links.operator(url, login.token).signing(login.key)
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
