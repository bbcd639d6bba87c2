"""A connector to an MCP server: calls a tool if its description is the one that was reviewed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from math import ceil
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import JSON, canonical, plain
from aileron.base.waiting import Interrupted
from aileron.connectors._answer import TooLarge
from aileron.connectors._decode import show_safely
from aileron.connectors._sending import FAILURES, describe_failure, wait_in_time
from aileron.model.connectors import READ, ConnectorDescription, Finding, Operation, Outcome, Request, Sought
from aileron.model.errors import CapabilityDenied, ExternalApiError, HashMismatch, InvalidRequest
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization

from ._pins import list_tools
from ._result import CallReader
from ._session import McpSession, McpSessions
from ._spec import McpOperation, McpSpec
from ._wire import Delivery, Refused

EFFECT_KEY = "aileron/effect_key"
"""The member of a call's C{_meta} that holds the effect key."""

_CALL, _LIST = "CALL", "LIST"
_UNAUTHORIZED = 401
_MOST_LOCATION = 300
_ELSEWHERE = " Redirects are not followed: set `url` in the connector's file to the server's own address."
_NOT_THERE = " No MCP server takes messages at this address: check `url` in the connector's file."
_OTHER_FORM = " The server does not take the Streamable HTTP of the protocol. Check `url`, or update the server."
_ADVICE = {
    **dict.fromkeys((301, 302, 303, 307, 308), _ELSEWHERE),
    _UNAUTHORIZED: " It needs a credential that it accepts: aileron credential setup {name}",
    404: _NOT_THERE,
    405: f"{_NOT_THERE} The older HTTP+SSE transport is not supported.",
    406: _OTHER_FORM,
    415: _OTHER_FORM,
}
"""Advice for the operator, by the HTTP status of a refusal."""


@implementer(IConnector, IInputNormalizer)
@frozen
class McpConnector:
    """A connector that calls tools as its file declares them.

    :ivar sessions: opens sessions with the server.
    :ivar clock: measures time limits.
    """

    spec: McpSpec
    sessions: McpSessions = field(repr=False)
    clock: IReactorTime = field(repr=False)

    def describe(self) -> ConnectorDescription:
        return self.spec.describe(self.sessions.why_approval)

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Build the request. Its JSON body is everything that the call consists of, except the credential.

        :raises CapabilityDenied: if the operation is unknown, or C{base_url} is not the connector's.
        :raises InvalidRequest: if an input is not valid JSON, or inputs are given to an operation that takes none.
        """
        about, description = self.spec.find_operation(operation), self.spec.description
        if base_url != description.base_url:
            raise CapabilityDenied(f"{description.name} talks to {description.base_url} and to nobody else.")
        declared = self.spec.operations.get(operation)
        if declared is None and inputs:
            raise InvalidRequest(f"The operation {operation} takes no inputs.")
        shown: dict[str, JSON] = {"method": "tools/list"}
        if declared is not None:
            meta: JSON = {EFFECT_KEY: effect_key} if about.effect != READ else {}
            shown = {"tool": declared.tool, "arguments": plain(inputs), "pin": declared.pin, "_meta": meta}
        shown |= self._server()
        try:
            canonical(shown)
        except ValueError as error:
            raise InvalidRequest("An input holds a number or a text that JSON cannot carry exactly.") from error
        need = description.credential if self.spec.local is None else None
        return Request(
            description.name,
            operation,
            about.effect,
            about.idempotent,
            _LIST if declared is None else _CALL,
            base_url,
            body=json.dumps(shown, ensure_ascii=False, indent=2).encode("utf-8"),
            credential_header=need.header or None if need else None,
            credential_query=need.query if need else None,
            credential_path=need.path if need else None,
        )

    def normalize_input(self, operation: str, name: str, value: JSON) -> JSON:
        return self.spec.normalize_input(operation, name, value)

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        self.spec.find_read(request.operation)
        return await self.invoke(request, credential, seconds)

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        about, shown = self._own(request)
        within = min(seconds, about.timeout_seconds)
        until = self.clock.seconds() + within
        sent = await self.sessions.authorize(request, credential, within)
        left = max(until - self.clock.seconds(), 0.0)
        run = _ToolRun(self, about, shown, sent, credential)
        relay = self.sessions.relay
        notes: Callable[[], Mapping[str, JSON]] = dict
        try:
            with relay.during(request, credential) if relay and credential else nullcontext(dict) as notes:
                outcome = await run.outcome(left, late_seconds)
        except CancelledError:
            raise Interrupted(notes()) from None
        outcome = evolve(outcome, notes={**outcome.notes, **notes()})
        if outcome.status == _UNAUTHORIZED and outcome.fault and credential and await credential.refused(sent):
            return evolve(outcome, fault=evolve(outcome.fault, retriable=True))
        if run.lacking and credential:
            await credential.refused(sent, run.lacking[0].challenge)
        return outcome

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Raise an error: the protocol has no request for the effect of an earlier call.

        :raises CapabilityDenied: always.
        """
        raise CapabilityDenied(f"The operation {sought.operation} declares no way to look for its effect.")

    def _own(self, request: Request) -> tuple[Operation, Mapping[str, Any]]:
        """Check that this connector prepared the request, and return its operation and its decoded body.

        :raises CapabilityDenied: if the operation is unknown, the request is another connector's or was changed, or the
            server would be started differently than approved.
        """
        about, declared = self.spec.find_operation(request.operation), self.spec.operations.get(request.operation)
        shown: Mapping[str, Any] = json.loads(request.body or b"{}")
        pinned = (None, None) if declared is None else (declared.tool, declared.pin)
        expected = (self.spec.fqn, about.effect, self.spec.url, *pinned)
        if expected != (request.connector, request.effect, request.url, shown.get("tool"), shown.get("pin")):
            raise CapabilityDenied("The request is not one of this connector.")
        if self._server().get("server") != shown.get("server"):
            raise CapabilityDenied("The server would be started in another way than was approved; nothing was called.")
        return about, shown

    def _server(self) -> Mapping[str, JSON]:
        review = self.sessions.review()
        return {"server": review} if review else {}


@frozen
class _ToolRun:
    """One exchange with the server: a session, the check of the tool, and the call.

    :ivar delivery: the delivery of the call itself. Earlier messages have no effect.
    :ivar used: the session once it is open, else empty.
    :ivar lacking: the refusal because of a missing scope, else empty.
    """

    connector: McpConnector
    about: Operation
    shown: Mapping[str, Any]
    sent: Authorization
    credential: ICredential | None
    delivery: Delivery = field(factory=Delivery)
    used: list[McpSession] = field(factory=list)
    lacking: list[Refused] = field(factory=list)

    @property
    def name(self) -> str:
        """The name of the connector."""
        return self.connector.spec.fqn

    async def outcome(self, seconds: float, late_seconds: float) -> Outcome:
        """Make the call and return its outcome. Failures of the server, the network or a limit are outcomes, too."""
        clock, most = self.connector.clock, self.connector.spec.max_response_bytes
        try:
            outcome = await wait_in_time(
                Deferred.fromCoroutine(self._converse()),
                clock,
                self.delivery,
                seconds=seconds,
                late_seconds=late_seconds,
            )
        except Refused as error:
            self.lacking.extend([error] if error.lacks_scope else [])
            outcome = self._refused(error)
        except FAILURES as error:
            fault = describe_failure(self.name, error, self.delivery, seconds=ceil(seconds), most_bytes=most)
            if isinstance(error, TooLarge):
                advice = "To allow more, set `max_response_bytes` under [mcp] in the connector's file."
                fault = evolve(fault, message=f"{fault.message} {advice}")
            outcome = Outcome(fault=fault, sent=self.delivery.sent, classified=not self.delivery.sent)
        refused = [show_safely(each) for session in self.used for each in session.refused]
        return evolve(outcome, notes={**outcome.notes, "refused": refused}) if refused else outcome

    async def _converse(self) -> Outcome:
        session = await self.connector.sessions.open(self.sent, self.credential)
        self.used.append(session)
        try:
            declared = self.connector.spec.operations.get(self.about.name)
            return await (self._list(session) if declared is None else self._call(session, declared))
        finally:
            self.connector.sessions.done(session)

    async def _list(self, session: McpSession) -> Outcome:
        listing = await list_tools(session)
        tools: list[JSON] = [{**each.described, "pin": each.pin} for each in listing.tools]
        return Outcome({"tools": tools} if listing.is_whole else {"tools": tools, "more": True})

    async def _call(self, session: McpSession, declared: McpOperation) -> Outcome:
        listing = await list_tools(session, declared.tool)
        pins = [each.pin for each in listing.tools]
        if pins != [declared.pin]:
            return self._changed(declared, len(pins))
        answer = await session.call_tool(declared.tool, self.shown["arguments"], self.shown["_meta"], self.delivery)
        return CallReader(self.name, declared.tool, self.about.effect).outcome(answer)

    def _changed(self, declared: McpOperation, found: int) -> Outcome:
        what = "is not the one that was reviewed" if found else "is no longer among the tools of the server"
        what = "is listed several times by the server" if found > 1 else what
        message = (
            f"The tool {show_safely(declared.tool)} of {self.name} {what}. Nothing was called. "
            f"See what changed: aileron connector import {self.name}"
        )
        details: dict[str, JSON] = {"tool": declared.tool, "changed": "described" if found else "missing"}
        return Outcome(fault=HashMismatch(message, details).fault(), sent=False)

    def _refused(self, error: Refused) -> Outcome:
        """Return the outcome of an HTTP error. Only an error about the credential means that nothing was done."""
        lacking = ": the credential lacks a scope" if error.lacks_scope else ""
        leads = f" and redirects to {show_safely(error.location, _MOST_LOCATION)}" if error.location else ""
        advice = "" if error.lacks_scope else _ADVICE.get(error.status, "").format(name=self.name)
        message = f"{self.name} answered with status {error.status}{lacking or leads}.{advice}"
        fault = ExternalApiError(message, {"status": error.status}).fault()
        certain = error.status == _UNAUTHORIZED or error.lacks_scope or not self.delivery.sent
        return Outcome(fault=fault, sent=self.delivery.sent, classified=certain, status=error.status)
