"""Carries out one tool call: asks the daemon, and puts the answer into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from aileron.client import Daemon, DaemonError, DaemonUnreachable
from aileron.values import JSON

from ._definitions import DESCRIBE_TOOL, DIAGNOSTICS_TOOL, SEARCH_TOOL, STATUS_TOOL, ToolDefinition, own_definitions
from ._diagnosis import diagnosis
from ._forms import Form, filled_in, said_by_a_person
from ._link import Link
from ._texts import ToolResult, is_misdirected, of_error, of_form, of_status, with_their_words
from ._tools import CallOptions
from .offering.access import ACCESS_DEFINITIONS, Shortlist, asked_for, described, found
from .waiting.running import ActionRunner, Attempts
from .waiting.withdrawals import REASON, Withdrawals

MOST_RUNS = 20
_KEPT = ("action", "status", "gated", "received_at", "changed_at", "reason")


@frozen
class Calls:
    """Every tool, by name.  All answers are results; nothing is raised but a cancellation, which ends the wait only.

    :ivar wait_seconds: how long an agent is told that it may wait for news of a call, at most.
    :ivar withdrawals: takes back calls that their clients cancelled.
    :ivar shortlist: which actions are listed.
    """

    daemon: Daemon
    link: Link
    clock: IReactorTime
    wait_seconds: int
    withdrawals: Withdrawals
    shortlist: Shortlist

    async def offered(self, *, hears_changes: bool) -> tuple[ToolDefinition, ...]:
        """Every tool that is listed, our own last; those that lead to the others only where some are not.

        :param hears_changes: whether the caller is told of tools that are added later; if not, those count as unlisted.
        """
        definitions = await self.link.offered()
        listed = await self.shortlist.of(definitions)
        access = ACCESS_DEFINITIONS if len(listed) < len(definitions) or not hears_changes else ()
        ours = sorted((*own_definitions(self.wait_seconds), *access), key=lambda definition: definition.name)
        return (*listed, *ours)

    async def actions(self) -> tuple[ToolDefinition, ...]:
        """Every action, listed or not."""
        return await self.link.offered()

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        """Return the newest runs of this session, without arguments and results.

        See L{aileron.mcp._tools.IOffers} for its contract.
        """
        return await recent_runs(self.daemon)

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        """Call one tool."""
        if tool == STATUS_TOOL:
            return await self._status(arguments, options)
        if tool == DIAGNOSTICS_TOOL:
            return await diagnosis(self.daemon, self.link, self.shortlist)
        definitions = await self.link.offered()
        if tool == SEARCH_TOOL:
            return found(definitions, arguments.get("query"))
        if tool == DESCRIBE_TOOL:
            return described(definitions, arguments.get("name"))
        asked = asked_for(definitions, tool, arguments)
        if isinstance(asked, ToolResult):
            return of_error(self.link.trouble) if is_misdirected(self.link.trouble) else asked
        return await self._run(*asked, options)

    async def _run(self, definition: ToolDefinition, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        given = filled_in(definition, arguments, options.answers)
        if isinstance(given, Form):
            return of_form(given)
        result = await ActionRunner(self.daemon, self.clock, self.withdrawals).run(definition, given, options)
        return with_their_words(result, said_by_a_person(definition, arguments, options.answers))

    async def withdraw(self, key: str) -> None:
        """Withdraw the call of this key.

        See L{aileron.mcp._tools.ICalls} for its contract.
        """
        await self.withdrawals.withdraw(key)

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """Ask the daemon for the state of a run, without waiting."""
        return await self.daemon.run_status(run_id, 0)

    async def withdraw_run(self, run_id: str) -> None:
        """Withdraw a run that is pending, if its action is withdrawn when its client cancels.

        See L{aileron.mcp._tools.ICalls} for its contract.
        """
        run = await self.daemon.run_status(run_id, 0)
        definition = self._definition_of(run)
        if definition is not None and definition.withdrawn_on_cancel and run.get("status") == "pending_approval":
            await self.daemon.withdraw(run_id, REASON)

    def _definition_of(self, run: Mapping[str, Any]) -> ToolDefinition | None:
        return next(
            (definition for definition in self.link.definitions if definition.action == run.get("action")), None
        )

    async def _status(self, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
        approval_id, wait = arguments.get("approval_id"), arguments.get("wait_seconds", 0)
        if not isinstance(approval_id, str) or not approval_id:
            return ToolResult("approval_id must be the text that the pending answer named.", is_error=True)
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
            return ToolResult("wait_seconds must be a number, 0 or more.", is_error=True)
        attempts = Attempts(self.clock, min(wait, options.wait_seconds))
        try:
            return of_status(await attempts.answer(lambda left: self.daemon.result(approval_id, left)))
        except DaemonUnreachable as error:
            if is_misdirected(error):
                return of_error(error)
            return ToolResult(f"{error} The action's status is not known now; ask again later.", is_error=True)
        except DaemonError as error:
            return of_error(error)


async def recent_runs(daemon: Daemon) -> Sequence[Mapping[str, Any]]:
    """The newest runs of this session, newest first; arguments and results, which may be long, are left out.

    :raises DaemonError: they cannot be told.
    """
    items = (await daemon.runs(MOST_RUNS)).get("items")
    return [_told(run) for run in items if isinstance(run, Mapping)] if isinstance(items, list) else []


def _told(run: Mapping[str, Any]) -> dict[str, Any]:
    failure = run.get("failure")
    why = {"failure": failure.get("message")} if isinstance(failure, Mapping) else {}
    return {"approval_id": run.get("id"), **{key: run.get(key) for key in _KEPT}, **why}
