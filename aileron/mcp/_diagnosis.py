"""Says how things stand between the agent and the daemon, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aileron.client import Daemon, DaemonError, DaemonFault, DaemonUnreachable

from ._definitions import SEARCH_TOOL
from ._link import Link
from ._texts import PUT_RIGHT, ToolResult, is_misdirected
from .offering.access import Shortlist

_VAULT_REMEDIES = {
    "locked": "The vault is locked: ask the user to run 'aileron vault unlock' in their own terminal.",
    "missing": "There is no vault yet: ask the user to run 'aileron vault init' in their own terminal.",
    "lost": "The vault's file is lost: ask the user to look at 'aileron vault status'.",
}


async def diagnosis(daemon: Daemon, link: Link, shortlist: Shortlist) -> ToolResult:
    """Ask the daemon now and tell what was found.  Always an answer, never a failure."""
    try:
        status = await daemon.status()
    except DaemonError as error:
        return ToolResult(_degraded(error))
    return ToolResult("\n".join([*_standing(status), *await _offering(link, shortlist), *_faulty(link)]))


def _degraded(error: DaemonError) -> str:
    if isinstance(error, DaemonFault) and error.status == 401:
        return (
            "Aileron: degraded. The daemon does not accept this session's token.\n"
            "Remedy: ask the user to start the agent anew with 'aileron launch'."
        )
    if is_misdirected(error):
        return f"Aileron: degraded. {error}\nRemedy: ask the user to {PUT_RIGHT}."
    if isinstance(error, DaemonUnreachable):
        return (
            f"Aileron: degraded. {error}\nRemedy: ask the user to run 'aileron daemon start'; tools come by themselves."
        )
    return f"Aileron: degraded. {error}\nRemedy: ask the user to run 'aileron status'."


def _standing(status: Mapping[str, Any]) -> list[str]:
    state = str(status.get("vault_state", "unknown"))
    head = f"Aileron: the daemon answers (version {status.get('version')}, vault {state})."
    paused = "It is paused: nothing runs until the user resumes it." if status.get("paused") else ""
    return [line for line in (head, _VAULT_REMEDIES.get(state, ""), paused) if line]


async def _offering(link: Link, shortlist: Shortlist) -> list[str]:
    if link.trouble is not None:
        return [f"The list of actions could not be read: {link.trouble}"]
    if not link.definitions:
        return ["No action is offered. 'aileron action list' tells the user which there are."]
    listed = await shortlist.of(link.definitions)
    names = ", ".join(definition.name for definition in listed)
    if len(listed) == len(link.definitions):
        return [f"Actions offered ({len(listed)}): {names}."]
    used = f"Listed, since they are used most: {names or 'none yet'}."
    return [f"Actions offered: {len(link.definitions)}. {used} {SEARCH_TOOL} finds the others."]


def _faulty(link: Link) -> list[str]:
    return [f"Not loaded: {fault.get('file')}: {fault.get('message')}" for fault in link.load_errors]
