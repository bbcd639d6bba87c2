"""C{aileron grant}: what you allowed beforehand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._output import heading, listed, say, say_json, values
from aileron.cli._session import as_operator

from .granting import show_allowed


@click.group()
def grant() -> None:
    """See and revoke what you allowed beforehand; make one with `aileron approval approve ID --grant`."""


@grant.command("list")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def list_grants(cli: CliContext, /, passphrase_fd: int | None, as_json: bool) -> None:
    """List standing grants, oldest first."""
    answer = as_operator(cli, passphrase_fd, lambda operator: operator.grants())
    rows = (_row(item) for item in answer["items"])
    listed(as_json, answer, ("ID", "ACTION", "STATE", "LEFT", "UNTIL", "FOR"), rows, "You have granted nothing.")


@grant.command("show")
@click.argument("grant_id", metavar="ID")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def show_grant(cli: CliContext, /, grant_id: str, passphrase_fd: int | None, as_json: bool) -> None:
    """Show one whole: what it allows, and whether it does now."""
    found = as_operator(cli, passphrase_fd, lambda operator: operator.grant(grant_id))
    if as_json:
        say_json(found)
    else:
        _show(found)


@grant.command("revoke")
@click.argument("grant_id", metavar="ID")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def revoke_grant(cli: CliContext, /, grant_id: str, passphrase_fd: int | None, as_json: bool) -> None:
    """Revoke one: nothing more begins by it."""
    found = as_operator(cli, passphrase_fd, lambda operator: operator.revoke_grant(grant_id))
    if as_json:
        say_json(found)
    else:
        say("{id} is {state}; you are asked again.", id=found["id"], state=_state(found))


def _show(found: Mapping[str, Any]) -> None:
    heading("{action}", action=found["action"])
    if found["suspended"]:
        say("  IT ALLOWS NOTHING NOW: {why}", why=found["suspended"])
    values(
        {
            "grant": found["id"],
            "state": _state(found),
            "left": f"{found['left']} of {found['uses']}",
            "until": found["not_after"],
            "for": _for(found),
            "made at": found["made_at"],
            "made with": f"the run {found['run_id']}",
            "last used": found["used_at"] or "never",
        },
        "  ",
    )
    heading("It allows calls where")
    show_allowed(found["predicates"], found["exact"])
    heading("It stands on")
    values(found["bound"], "  ")


def _row(item: Mapping[str, Any]) -> tuple[object, ...]:
    left = f"{item['left']} of {item['uses']}"
    return (item["id"], item["action"], _state(item), left, item["not_after"], _for(item))


def _state(item: Mapping[str, Any]) -> str:
    return "suspended" if item["suspended"] else str(item["state"]).replace("_", " ")


def _for(item: Mapping[str, Any]) -> str:
    return "all sessions" if item["session_id"] is None else f"session {item['session_id']}"
