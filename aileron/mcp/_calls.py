"""Executes tool calls: sends them to the daemon and renders the responses. Also diagnoses the daemon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON
from aileron.client import Daemon, DaemonError, DaemonFault, DaemonUnreachable

from ._definitions import DESCRIBE_TOOL, DIAGNOSTICS_TOOL, SEARCH_TOOL, STATUS_TOOL, ToolDefinition
from ._forms import Form, fill_in, list_answered
from ._link import DaemonLink
from ._texts import (
    ToolResult,
    find_remedy,
    is_misdirected,
    mention_answers,
    read_status_call,
    render_error,
    render_form,
    render_status,
)
from ._tools import CallOptions
from .offering.access import Shortlist, describe_action, render_matches, resolve_call
from .offering.search import ActionIndex
from .offering.tools import ToolListing
from .waiting.running import REASON, ActionRunner, Attempts, Withdrawals

MOST_RUNS = 20
_KEPT = ("action", "status", "gated", "received_at", "changed_at", "reason")


@frozen
class Calls:
    """Implements all tools by requests to the daemon. Every response and error becomes a result.

    Cancelling ends only the wait.

    :ivar wait_seconds: the longest wait for a change of a call's status that the tool's schema offers.
    :ivar withdrawals: cancels the runs of calls that their clients cancelled.
    :ivar shortlist: selects the actions that are listed as tools.
    :ivar index: searches the actions that are not listed.
    """

    daemon: Daemon
    link: DaemonLink
    clock: IReactorTime
    wait_seconds: int
    withdrawals: Withdrawals
    shortlist: Shortlist
    index: ActionIndex = field(factory=ActionIndex)

    async def offered(self, *, hears_changes: bool) -> tuple[ToolDefinition, ...]:
        return await ToolListing(self.link, self.shortlist, self.wait_seconds).offered(hears_changes=hears_changes)

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        items = (await self.daemon.runs(MOST_RUNS)).get("items")
        return [_summarize_run(run) for run in items if isinstance(run, Mapping)] if isinstance(items, list) else []

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        if tool == STATUS_TOOL:
            return await self._status(arguments, options)
        if tool == DIAGNOSTICS_TOOL:
            return await diagnose(self.daemon, self.link, self.shortlist)
        definitions = await self.link.offered()
        if tool == SEARCH_TOOL:
            return render_matches(self.index, definitions, arguments.get("query"))
        if tool == DESCRIBE_TOOL:
            return describe_action(definitions, arguments.get("name"))
        asked = resolve_call(definitions, tool, arguments)
        if isinstance(asked, ToolResult):
            return render_error(self.link.trouble) if is_misdirected(self.link.trouble) else asked
        return await self._run(*asked, options)

    async def _run(self, definition: ToolDefinition, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        given = fill_in(definition, arguments, options.answers)
        if isinstance(given, Form):
            return render_form(given)
        if not self.link.takes_tool_call:
            options = evolve(options, tool_call=None)
        result = await ActionRunner(self.daemon, self.clock, self.withdrawals).run(definition, given, options)
        return mention_answers(result, list_answered(definition, arguments, options.answers))

    async def withdraw_run(self, run_id: str) -> None:
        run = await self.daemon.run_status(run_id, 0)
        withdrawn = [each.action for each in self.link.definitions if each.withdrawn_on_cancel]
        if run.get("action") in withdrawn and run.get("status") == "pending_approval":
            await self.daemon.withdraw(run_id, REASON)

    async def _status(self, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        asked = read_status_call(arguments, options.wait_seconds)
        if isinstance(asked, ToolResult):
            return asked
        approval_id, wait_seconds = asked
        attempts = Attempts(self.clock, wait_seconds)
        try:
            return render_status(await attempts.answer(lambda left: self.daemon.result(approval_id, left)))
        except DaemonUnreachable as error:
            if is_misdirected(error):
                return render_error(error)
            return ToolResult(f"{error} The action's status is not known now; ask again later.", is_error=True)
        except DaemonError as error:
            return render_error(error)


def _summarize_run(run: Mapping[str, Any]) -> dict[str, Any]:
    failure = run.get("failure")
    why = {"failure": failure.get("message")} if isinstance(failure, Mapping) else {}
    return {"approval_id": run.get("id"), **{key: run.get(key) for key in _KEPT}, **why}


_VAULT_REMEDIES = {
    "locked": "The vault is locked: ask the user to run 'aileron vault unlock' in their own terminal.",
    "missing": "There is no vault yet: ask the user to run 'aileron vault init' in their own terminal.",
    "lost": "The vault's file is lost: ask the user to look at 'aileron vault status'.",
}


async def diagnose(daemon: Daemon, link: DaemonLink, shortlist: Shortlist) -> ToolResult:
    """Check the daemon now, and return what was found as the result of the diagnostics tool.

    Errors of the daemon are findings, too, and are not raised.
    """
    try:
        status = await daemon.status()
    except DaemonError as error:
        return ToolResult(_describe_degraded(error))
    faulty = (f"Not loaded: {fault.get('file')}: {fault.get('message')}" for fault in link.load_errors)
    return ToolResult("\n".join([*_describe_standing(status), *await _describe_offering(link, shortlist), *faulty]))


def _describe_degraded(error: DaemonError) -> str:
    if isinstance(error, DaemonFault) and error.status == 401:
        return (
            "Aileron: degraded. The daemon does not accept this session's token.\n"
            "Remedy: ask the user to start this agent again."
        )
    if is_misdirected(error):
        return f"Aileron: degraded. {error}\nRemedy: ask the user to {find_remedy(error)}."
    if isinstance(error, DaemonUnreachable):
        return (
            f"Aileron: degraded. {error}\nRemedy: ask the user to run 'aileron daemon start'; tools come by themselves."
        )
    return f"Aileron: degraded. {error}\nRemedy: ask the user to run 'aileron status'."


def _describe_standing(status: Mapping[str, Any]) -> list[str]:
    state = str(status.get("vault_state", "unknown"))
    head = f"Aileron: the daemon answers (version {status.get('version')}, vault {state})."
    paused = "It is paused: nothing runs until the user resumes it." if status.get("paused") else ""
    return [line for line in (head, _VAULT_REMEDIES.get(state, ""), paused) if line]


async def _describe_offering(link: DaemonLink, shortlist: Shortlist) -> list[str]:
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
