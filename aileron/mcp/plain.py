"""The tools of agents for a server that uses another protocol than MCP, with the same definitions and texts.

The tools call the agent site's routes in this process. No part of the MCP SDK is loaded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from attrs import define, evolve, field
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import JSON
from aileron.client import Daemon, DaemonError, DaemonFault, InProcessClient
from aileron.model.errors import InternalError, Unauthorized
from aileron.model.interfaces.services import IAgentRoutes, IAgentTools

from ._definitions import STATUS_TOOL, ToolDefinition, own_definitions, read_definitions
from ._forms import Form, fill_in, relax_schema
from ._texts import ToolResult, read_status_call, render_error, render_form, render_run, render_status

_UNAUTHORIZED = 401
_MOST_KEYS = 64  # as many as there may be live sessions


class _KnownTools(NamedTuple):
    """The tools of one session at one moment.

    The generation tells whether the offered actions have changed since.
    """

    generation: object
    definitions: tuple[ToolDefinition, ...]


@implementer(IAgentTools)
@define
class PlainTools:
    """The tools of all agents' sessions.

    :param routes: the agent site's routes.
    :param generation: returns a value that differs from the last one if the offered actions have changed.
    :param longest_wait_seconds: the longest wait for a change of a call's status that the tool's schema offers.
    """

    _routes: IAgentRoutes
    _clock: IReactorTime
    _generation: Callable[[], object]
    _longest_wait_seconds: int
    _known: OrderedDict[str, _KnownTools] = field(factory=OrderedDict, init=False, repr=False)

    async def offered(self, key: str) -> tuple[ToolDefinition, ...]:
        """Return every tool: the actions by name, then the tool that checks a call's status.

        :param key: the agent's credential for the routes.
        :raises Unauthorized: if the key is not valid.
        :raises InternalError: if the actions could not be read.
        """
        generation, known = self._generation(), self._known.get(key)
        if known is None or known.generation != generation:
            known = _KnownTools(generation, await self._read(key))
            self._known[key] = known
        self._known.move_to_end(key)
        if len(self._known) > _MOST_KEYS:
            self._known.popitem(last=False)
        return known.definitions

    async def call(
        self, key: str, name: str, arguments: Mapping[str, JSON], idempotency_key: str, wait_seconds: float
    ) -> ToolResult:
        """Call a tool. Every response and error is a result, with the run's ID if known. Cancelling ends the wait."""
        daemon = self._daemon(key)
        if name == STATUS_TOOL:
            return await self._tell_status(daemon, arguments, wait_seconds)
        known = self._known.get(key)
        definition = next((each for each in known.definitions if each.name == name), None) if known else None
        if definition is None:
            return ToolResult(f"There is no tool {name!r} any more.", is_error=True)
        given = fill_in(definition, arguments, {})
        if isinstance(given, Form):
            return render_form(given)
        try:
            answer = await daemon.run(definition.action or "", given, idempotency_key, wait_seconds)
        except DaemonError as error:
            run_id = error.run_id if isinstance(error, DaemonFault) else None
            return evolve(render_error(error), run_id=run_id or "")
        return evolve(render_run(answer, definition.title), run_id=str(answer.body.get("run_id") or ""))

    async def _tell_status(self, daemon: Daemon, arguments: Mapping[str, JSON], wait_seconds: float) -> ToolResult:
        asked = read_status_call(arguments, min(wait_seconds, self._longest_wait_seconds))
        if isinstance(asked, ToolResult):
            return asked
        try:
            return render_status(await daemon.result(*asked))
        except DaemonError as error:
            return render_error(error)

    async def _read(self, key: str) -> tuple[ToolDefinition, ...]:
        try:
            items = (await self._daemon(key).actions()).get("items")
        except DaemonError as error:
            refused = isinstance(error, DaemonFault) and error.status == _UNAUTHORIZED
            raise (Unauthorized if refused else InternalError)(error.message) from None
        found = read_definitions(items if isinstance(items, list) else ())
        relaxed = [evolve(each, input_schema=relax_schema(each)) if each.asks else each for each in found]
        status = next(each for each in own_definitions(self._longest_wait_seconds) if each.name == STATUS_TOOL)
        return (*relaxed, status)

    def _daemon(self, key: str) -> Daemon:
        return Daemon(InProcessClient(self._routes, key, self._clock))
