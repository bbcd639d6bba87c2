"""The command C{aileron notification browser}: the browsers that are notified by Web Push."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from aileron.cli import options as _options
from aileron.cli.errors import FAILED
from aileron.cli.output import Columns, note, time_at
from aileron.cli.session import OperatorCommand, operator_command, reading_command

_PATH = ("notifications", "browsers")
_NOTHING = "No browser is registered. To register one, open Settings in it and press Notify me when no page is open."
_TEST_SECONDS = 40.0  # one attempt of each browser takes 20 at most, all at the same time


@click.group()
def browser() -> None:
    """Notify browsers of pending approvals when no page is open (Web Push)."""


@browser.command("list")
@_options.exact_times
@reading_command
def list_browsers(command: OperatorCommand) -> None:
    """List the registered browsers and their state."""
    _list(command, command.get(*_PATH))


@browser.command("test")
@operator_command
def test(command: OperatorCommand) -> None:
    """Send a test notification to every browser. The exit code is 1 if one fails, or there is none."""
    answer = command.post(*_PATH, "test", wait_seconds=_TEST_SECONDS)
    _list(command, answer)
    if not answer["items"] or any(item["problem"] for item in answer["items"]):
        click.get_current_context().exit(FAILED)


@browser.command("remove")
@click.argument("id")
@operator_command
def remove(command: OperatorCommand, id: str) -> None:  # noqa: A002 - the argument's name
    """Remove a browser. It is notified no longer."""
    command.say(command.remove(*_PATH, id), "Browser {id} is removed.", id=id)


def _list(command: OperatorCommand, answer: Mapping[str, Any]) -> None:
    columns: Columns = {
        "ID": "id",
        "BROWSER": "name",
        "SERVICE": "service",
        "STATE": _state,
        "ADDED": time_at("added_at"),
        "LAST SENT": time_at("sent_at"),
    }
    command.list(answer, columns, _NOTHING)
    for item in () if command.as_json else answer["items"]:
        if item["problem"]:
            note("{name}: {problem}", name=item["name"], problem=item["problem"])


def _state(item: Mapping[str, Any]) -> str:
    return "failing" if item["problem"] else "ready"
