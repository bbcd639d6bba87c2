"""The commands of C{aileron network}, which list and decide the hosts that sandboxed agents request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import options as _options
from aileron.cli.errors import CommandError
from aileron.cli.output import Columns, say, say_json, time_at
from aileron.cli.session import OperatorCommand, operator_command, reading_command

if TYPE_CHECKING:
    from aileron.client import Operator

_COLUMNS: Columns = {
    "ID": "id",
    "HOST": "host",
    "STATE": "state",
    "ALLOWED BY": lambda item: item["basis"] or "-",
    "PROJECT": "project",
    "REQUESTS": "times",
    "SENT": "sent",
    "RECEIVED": "received",
    "FIRST REQUESTED": time_at("asked_at"),
}
_HOST = click.argument("hosts", metavar="HOST...", nargs=-1, required=True)
_LIST = "List the hosts: aileron network list"


@click.group("network")
def egress() -> None:
    """Decide which hosts sandboxed agents may connect to."""


@egress.command("list")
@_options.exact_times
@reading_command
def list_hosts(command: OperatorCommand, /) -> None:
    """List the hosts that running sandboxed sessions asked for, those waiting for your approval first."""
    command.list(command.get("egress"), _COLUMNS, "No hosts were requested.")


@egress.command()
@_HOST
@click.option("--always", is_flag=True, help="For every session in this project, from now on.")
@operator_command
def allow(command: OperatorCommand, /, hosts: tuple[str, ...], always: bool) -> None:
    """Allow each HOST, or ID from the list, for its session."""
    scope = "every session in {project}" if always else "session {session_id}"
    _decide_all(
        command, hosts, "always" if always else "session", f"Allowed {{host}} for {scope}. The agent can try again."
    )


@egress.command()
@_HOST
@operator_command
def deny(command: OperatorCommand, /, hosts: tuple[str, ...]) -> None:
    """Deny each HOST, or ID from the list, to its session; open connections to it are closed."""
    _decide_all(command, hosts, "deny", "Denied {host} to session {session_id}.")


def _decide_all(command: OperatorCommand, hosts: Sequence[str], decision: str, template: str) -> None:
    """Decide the hosts one after another within one login, and print each decision.

    :raises CommandError: if a host is not found, or has several sessions.
    :raises VaultLocked: if the daemon's vault is not unlocked.
    :raises WrongPassphrase: if the passphrase is wrong.
    """

    async def work(operator: Operator) -> list[Mapping[str, Any]]:
        done = []
        for host in dict.fromkeys(hosts):
            done.append(decided := await _decide(operator, host, decision))
            if not command.as_json:
                say(template, **decided)
        return done

    async def look(operator: Operator) -> None:
        items = (await operator.get("egress"))["items"]
        for host in hosts:
            _find(items, host)

    done = command.ask(work, look)
    if command.as_json:
        say_json(done[0] if len(done) == 1 else {"items": done})


async def _decide(operator: Operator, wanted: str, decision: str) -> Mapping[str, Any]:
    """Look up a host by its name or ID, and decide it if its state has not changed since the lookup.

    Return the decided host.

    :raises CommandError: if no host has that name or ID, or more than one.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    found = _find((await operator.get("egress"))["items"], wanted)
    return await operator.post("egress", found["id"], "decision", body={"decision": decision, "state": found["state"]})


def _find(items: Sequence[Mapping[str, Any]], wanted: str) -> Mapping[str, Any]:
    """Return the host with a name or ID.

    :raises CommandError: if no host has that name or ID, or more than one.
    """
    names = (wanted, f"{wanted}:443")
    found = [item for item in items if item["id"] == wanted] or [item for item in items if item["host"] in names]
    if not found:
        raise CommandError(f"No running session asked for {wanted}.", _LIST)
    if len(found) > 1:
        raise CommandError(f"{len(found)} sessions asked for {wanted}; use an ID.", _LIST)
    return found[0]
