"""Checks of trusted files, credential bindings and security events."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aileron.base.addresses import base_url_problem, read_origin
from aileron.base.json import from_timestamp
from aileron.cli.errors import place_of
from aileron.cli.output import when
from aileron.cli.vault.signing_in import renewal

from .findings import DoctorFinding, remark, waits, wrong

if TYPE_CHECKING:
    from aileron.client import Operator

Item = Mapping[str, Any]
Answers = Mapping[str, Mapping[str, Any]]
Connect = Callable[[str, int], None]

_MOST = 20
_STATES = {
    "new": "is not trusted, so it is not active",
    "changed": "changed since you trusted it, so it is not active",
}


async def ask(operator: Operator) -> Answers:
    """Return the daemon's actions, connectors, trust, bindings, unknown runs and signs of tampering, by these names.

    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    return {
        "actions": await operator.get("actions"),
        "connectors": await operator.get("connectors"),
        "trust": await operator.get("trust"),
        "bindings": await operator.get("bindings"),
        "unknown": await operator.get("runs", query={"state": "unknown", "limit": _MOST}),
        "tampered": await operator.get("audit", query={"type": "tamper.detected", "limit": _MOST}),
    }


def authority(told: Answers, since: datetime) -> Iterator[DoctorFinding]:
    """Yield findings about trust, bindings and security events.

    :param told: the lists that L{ask} returned.
    :param since: events detected earlier are not reported again.
    """
    yield from _files(told["trust"]["items"])
    yield from _unasked(told["trust"]["items"])
    yield from _errors(told)
    yield from _unbound(told)
    for binding in told["bindings"]["items"]:
        yield from _check_bound(binding)
    for connector in told["connectors"]["items"]:
        if "readable_by" in ((connector["credential"] or {}).get("settings") or {}):
            yield remark(
                f"{connector['name']} has its credential in a variable, which the program and what it starts can read.",
                "If it uses an HTTP API, add [mcp.api] to its file: the program does not get it then.",
            )
    for run in told["unknown"]["items"]:
        yield waits(
            f"The outcome of {run['action']} (run {run['id']}) is unknown: it may have happened.",
            f"Check the service, then record it: aileron run settle {run['id']} --happened (or --did-not-happen)",
        )
    for record in told["tampered"]["items"]:
        if from_timestamp(record["at"]) >= since:
            yield wrong(
                f"Signs of tampering were found ({when(record['at'], relative=False)}).",
                f"See what was found: aileron audit show {record['audit_id']}",
            )


def open_and_close(host: str, port: int, seconds: float = 3.0) -> None:
    """Connect to a host and port, and disconnect.

    :raises OSError: if the host cannot be reached.
    """
    socket.create_connection((host, port), seconds).close()


def network(told: Answers, connect: Connect = open_and_close) -> Iterator[DoctorFinding]:
    """Yield a finding for each service that has a credential and cannot be reached.

    :param connect: opens and closes a connection to host and port, or raises an OSError with the reason.
    """
    bound = {binding["connector"] for binding in told["bindings"]["items"]}
    places = {
        place for connector in told["connectors"]["items"] if connector["name"] in bound for place in connector["hosts"]
    }
    for place in sorted(places):
        origin = read_origin(f"http://{place}")
        try:
            connect(origin.host, origin.port)
        except OSError as error:
            yield wrong(f"{place} cannot be reached: {error.strerror or type(error).__name__}.")


def _files(items: Iterable[Item]) -> Iterator[DoctorFinding]:
    for item in items:
        kind, name, state = item["kind"], item["name"], item["state"]
        if state in _STATES:
            command = "config trust" if kind == "config" else f"{kind} trust {name}"
            yield waits(
                f"The {kind} {name} {_STATES[state]} ({item['path']}).", f"Review and trust it: aileron {command}"
            )
        elif state == "gone":
            yield remark(f"The {kind} {name} is trusted, but its file is missing or has an error.")


def _unasked(items: Iterable[Item]) -> Iterator[DoctorFinding]:
    names = [item["name"] for item in items if item.get("unasked") and item["state"] == "trusted"]
    if names:
        make = "makes" if len(names) == 1 else "make"
        yield remark(
            f"{', '.join(names)} {make} changes without asking you.",
            "To be asked before each run, write `required = true` under `[approval]` in the action's file.",
        )


def _errors(told: Answers) -> Iterator[DoctorFinding]:
    untrusted = {item["path"] for item in told["trust"]["items"] if item["state"] in _STATES}
    for error in {
        place_of(error): error for error in (*told["actions"]["load_errors"], *told["connectors"]["problems"])
    }.values():
        if error["kind"] != "untrusted":
            yield wrong(f"{place_of(error)}: {error['message']}", "The file is ignored until the error is fixed.")
        elif error["file"] not in untrusted:
            yield waits(f"{place_of(error)}: {error['message']}")


def _unbound(told: Answers) -> Iterator[DoctorFinding]:
    needing = {each["name"] for each in told["connectors"]["items"] if each["credential"] is not None}
    bound = {binding["connector"] for binding in told["bindings"]["items"]}
    for action in told["actions"]["items"]:
        for name in sorted({pin["name"] for pin in action["connectors"]} & needing - bound):
            yield waits(
                f"The action {action['name']} needs a credential for {name}, and none is bound.",
                f"Bind one: aileron credential setup {name}",
            )


def _check_bound(binding: Item) -> Iterator[DoctorFinding]:
    name, connector = binding["name"], binding["connector"]
    if binding["in_force"] is None:
        yield waits(f"{name} is bound to {connector}, which is missing or not trusted.")
    elif not binding["fits"] and not _is_misaddressed(binding):
        yield wrong(
            f"{name} is not used: {connector} asks for another scope than you bound it for.",
            f"Compare both, and if the change is right, rebind it: aileron credential rebind {name}",
        )
    if binding["state"]["reason"] is not None:
        how = "cannot be used" if binding["state"]["status"] == "needs_you" else "is limited"
        yield waits(f"{name} {how}: {binding['state']['reason']}", f"Renew it: {renewal(binding)}")
    if binding["state"].get("surplus") is not None:
        yield remark(f"{name}: {binding['state']['surplus']}", f"Sign in again for less: {renewal(binding)}")
    if binding["flag"] is not None:
        yield wrong(
            f"{name}: {binding['flag']['reason']} ({when(binding['flag']['since'], relative=False)})",
            "Bind another credential there.",
        )


def _is_misaddressed(binding: Item) -> bool:
    """Return True if a binding's address is invalid, which the check of the vault's file reports already."""
    return binding["base_url"] is not None and base_url_problem(binding["base_url"]) is not None
