"""The command C{aileron notification}: the channels of notifications."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import options as _options
from aileron.cli.doctor.findings import DoctorFinding, wrong
from aileron.cli.errors import FAILED, CommandError
from aileron.cli.output import Columns, note, time_at
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.credentials import DEFAULT_KIND

from .values import NOTICE

if TYPE_CHECKING:
    from aileron.client import Operator

_SERVICE = "notice"
_NOTHING = "No notifications are configured. Add them under notifications in config.yaml."
_TEST_SECONDS = 40.0  # one attempt of each channel takes 30 at most


@click.group()
def notification() -> None:
    """Notify you of pending approvals: on the desktop, by webhook, ntfy, mail and others.

    Channels are configured in config.yaml; their secrets are stored in the vault.
    """


@notification.command("list")
@_options.exact_times
@reading_command
def list_channels(command: OperatorCommand) -> None:
    """List the channels and their state."""
    _list(command, command.get("notifications"))


@notification.command("test")
@operator_command
def test(command: OperatorCommand) -> None:
    """Send a test notification by every channel. The exit code is 1 if one fails, or there is none."""
    answer = command.post("notifications", "test", wait_seconds=_TEST_SECONDS)
    _list(command, answer)
    if not answer["items"] or any(item["problem"] for item in answer["items"]):
        click.get_current_context().exit(FAILED)


@notification.command("add")
@click.argument("name")
@_options.secret_fd
@operator_command
def add(command: OperatorCommand, name: str, secret_fd: int | None) -> None:
    """Store the secret of channel NAME of config.yaml in the vault.

    The secret is the address, such as ntfys://ntfy.sh/TOPIC or mailtos://USER:PASSWORD@example.com, or the key that
    signs a webhook. It is read from the terminal without being shown, or from --secret-fd.
    """

    async def work(operator: Operator) -> Mapping[str, Any]:
        connector = NOTICE + name
        # Checked first, so that no secret is requested that no channel needs.
        scope = (await operator.post("bindings", "target", body={"connector": connector, "base_url": None}))["scope"]
        by_address = scope["header"] == "address"
        what = f"Address of {name}" if by_address else f"Key that signs requests to {scope['base_url']}"
        secret = command.cli.secret(what, secret_fd)
        body = {"connector": connector, "service": _SERVICE, "identity": name, "secret": secret}
        return await operator.post("bindings", "setup", body=body)

    async def look(operator: Operator) -> None:
        channels = (await operator.get("notifications"))["items"]
        if name not in {each["name"] for each in channels}:
            raise CommandError(
                f"There is no channel {name} in config.yaml. Nothing was stored.",
                "List channels: aileron notification list",
            )

    command.say(command.ask(work, look), "{name} is set up. Try it: aileron notification test", name=name)


@notification.command("remove")
@click.argument("name")
@operator_command
def remove(command: OperatorCommand, name: str) -> None:
    """Delete the secret of NAME from the vault. Nothing more is sent there."""
    gone = command.remove("bindings", f"{DEFAULT_KIND}/{_SERVICE}/{name}")
    command.say(gone, "The secret of {name} is deleted from the vault.", name=name)


def find_failing(status: Mapping[str, Any]) -> Iterator[DoctorFinding]:
    """Report the channels whose last attempt failed."""
    for name in status.get("notifications", {}).get("failing", ()):
        yield wrong(f"Notifications by {name} are failing.", "See why: aileron notification list")


def _list(command: OperatorCommand, answer: Mapping[str, Any]) -> None:
    columns: Columns = {
        "NAME": "name",
        "KIND": "kind",
        "STATE": _state,
        "SENT": "sent",
        "FAILED": "failed",
        "LAST SENT": time_at("sent_at"),
    }
    command.list(answer, columns, _NOTHING)
    for item in () if command.as_json else answer["items"]:
        if item["problem"]:
            note("{name}: {problem}", name=item["name"], problem=item["problem"])
        elif item["needs_secret"] and not item["bound"]:
            note("{name} needs its secret. Add it: aileron notification add {name}", name=item["name"])


def _state(item: Mapping[str, Any]) -> str:
    if item["problem"]:
        return "failing"
    return "secret missing" if item["needs_secret"] and not item["bound"] else "ready"
