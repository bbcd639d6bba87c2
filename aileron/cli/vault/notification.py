"""C{aileron notification}: the channels by which you are told of what waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import FAILED
from aileron.cli._output import listed, note, say, say_json
from aileron.cli._session import as_operator
from aileron.credentials import DEFAULT_KIND
from aileron.values import NOTICE

if TYPE_CHECKING:
    from aileron.client import Operator

_SERVICE = "notice"
_NOTHING = "No notification is configured: see notifications in config.yaml."
_TITLES = ("NAME", "KIND", "STATE", "SENT", "GIVEN UP", "LAST SENT")


@click.group()
def notification() -> None:
    """Be told of what waits: on the desktop, by a webhook, by ntfy, mail and others.

    Which there are, config.yaml says; what of them is secret lies in the vault.
    """


@notification.command("list")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def list_channels(cli: CliContext, passphrase_fd: int | None, as_json: bool) -> None:
    """List the channels, and how each does."""
    _tell(as_operator(cli, passphrase_fd, lambda operator: operator.notifications()), as_json)


@notification.command("test")
@_options.passphrase_fd
@_options.as_json
@click.pass_context
@pass_cli
def test(cli: CliContext, context: click.Context, passphrase_fd: int | None, as_json: bool) -> None:
    """Send a test by every channel, once. The exit code is 1 if one did not take it, or there is none."""
    answer = as_operator(cli, passphrase_fd, lambda operator: operator.try_notifications())
    _tell(answer, as_json)
    if not answer["items"] or any(item["problem"] for item in answer["items"]):
        context.exit(FAILED)


@notification.command("add")
@click.argument("name")
@click.option(
    "--secret-fd", type=click.IntRange(min=0), metavar="N", help="Read the secret from this inherited descriptor."
)
@_options.passphrase_fd
@_options.as_json
@pass_cli
def add(cli: CliContext, name: str, secret_fd: int | None, passphrase_fd: int | None, as_json: bool) -> None:
    """Put into the vault what NAME of config.yaml needs.

    That is the address, such as ntfys://ntfy.sh/TOPIC or mailtos://USER:PASSWORD@example.com, or the key by which a
    webhook is signed. It is asked for in the terminal and not shown, or comes by --secret-fd.
    """
    made = as_operator(cli, passphrase_fd, _adding(name, lambda what: cli.secret(what, secret_fd)))
    if as_json:
        say_json(made)
    else:
        say("{name} can be told now. Try it: aileron notification test", name=name)


@notification.command("remove")
@click.argument("name")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def remove(cli: CliContext, name: str, passphrase_fd: int | None, as_json: bool) -> None:
    """Take the secret of NAME out of the vault; nothing is sent there any more."""
    gone = as_operator(
        cli, passphrase_fd, lambda operator: operator.revoke_binding(f"{DEFAULT_KIND}/{_SERVICE}/{name}")
    )
    if as_json:
        say_json(gone)
    else:
        say("What {name} needs is no longer in the vault.", name=name)


def _adding(name: str, secret: Callable[[str], str]) -> Callable[[Operator], Any]:
    """Nothing is asked for that no channel wants."""

    async def work(operator: Operator) -> Mapping[str, Any]:
        connector = NOTICE + name
        scope = (await operator.binding_target(connector))["scope"]
        by_address = scope["header"] == "address"
        what = f"Address of {name}" if by_address else f"Key that signs what goes to {scope['base_url']}"
        body = {"connector": connector, "service": _SERVICE, "identity": name, "secret": secret(what)}
        return await operator.set_up_binding(body)

    return work


def _tell(answer: Mapping[str, Any], as_json: bool) -> None:
    rows = (
        (item["name"], item["kind"], _state(item), item["sent"], item["failed"], item["sent_at"])
        for item in answer["items"]
    )
    listed(as_json, answer, _TITLES, rows, _NOTHING)
    if as_json:
        return
    for item in answer["items"]:
        if item["problem"]:
            note("{name}: {problem}", name=item["name"], problem=item["problem"])
        elif item["needs_secret"] and not item["bound"]:
            note("{name} waits for its secret: aileron notification add {name}", name=item["name"])


def _state(item: Mapping[str, Any]) -> str:
    if item["problem"]:
        return "failing"
    return "not in the vault yet" if item["needs_secret"] and not item["bound"] else "ready"
