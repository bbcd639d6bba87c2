"""C{aileron operator login}: a short-lived child that reads the passphrase and hands back a token."""

from __future__ import annotations

import os

import click

from aileron.cli import _options
from aileron.cli._errors import Trouble
from aileron.cli._session import log_in
from aileron.cli._surroundings import Links, Surroundings, pass_surroundings

from .logins import list_logins, revoke
from .passkeys import passkey


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
@pass_surroundings
def login(around: Surroundings, token_fd: int, at: str | None, passphrase_fd: int | None) -> None:
    """Log in, and write the token to a descriptor of the command that started this one."""
    found = around.running()
    if at not in (None, found.operator_url):
        told = f"The daemon is at {found.operator_url} now, and the login was asked for at {at}."
        raise Trouble(told, "Nobody was logged in. If you started it anew just now, give the command once more.")

    async def whole(links: Links) -> str:
        return await log_in(around, links, found, passphrase_fd)

    token = around.drive(whole)
    try:
        with open(token_fd, "wb") as pipe:
            pipe.write(token.encode("ascii"))
    except (OSError, ValueError):
        raise Trouble(
            "The token's descriptor cannot be written to, so the login serves nobody.",
            "End it: aileron operator revoke --all",
        ) from None


operator.add_command(list_logins)
operator.add_command(revoke)
operator.add_command(passkey)


def token_from_child(around: Surroundings, url: str, passphrase_fd: int | None) -> str:
    """A token that a child got, in whose terminal the person typed the passphrase; we never hold that.

    :param url: of the operator site that the token will be shown to.  Whoever replaces C{daemon.json} between our look
        and the child's must not be shown a token of the true daemon.
    :raises Trouble: the child could not log in, and has said why.
    """
    import subprocess

    from aileron.cli.daemon.children import command, private_pair

    around.conceal()
    reading, writing = private_pair()
    try:
        arguments = ["operator", "login", "--token-fd", str(writing), "--at", url]
        passed = [writing]
        if passphrase_fd is not None:
            arguments += ["--passphrase-fd", str(passphrase_fd)]
            passed.append(passphrase_fd)
        child = subprocess.Popen(command(*arguments), env=dict(around.environ), pass_fds=passed)
    finally:
        os.close(writing)
    with open(reading, "rb") as pipe:
        token = pipe.read().decode("ascii", "replace")
    if child.wait() != 0 or not token:
        raise Trouble("There was no login, so there is nothing to go on with.")
    return token
