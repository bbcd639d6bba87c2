"""Both sites of the daemon: the requests of launchers, agent sessions and the operator's commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.base.json import JSON
from aileron.base.trace_context import TraceParent
from aileron.model.signing import MOST_DECISIONS

from ._answers import AnswerNotUnderstood, DaemonAnswer, DaemonError, DaemonFault, DaemonUnreachable
from ._requests import DaemonClient, Query, Requester
from ._signing import TerminalKey, item_of

LEASE_PAUSE_SECONDS = 1.0
_LONGEST_SECONDS = 3600.0  # the API's limit for a wait
_NO_SESSION = 404


@frozen
class OpenedSession:
    """A newly opened session. Its secrets are returned only here.

    :ivar token: for the agent's requests.
    :ivar gateway_key: for the agent's LLM traffic.
    :ivar in_band_key: for LLM traffic in in-band mode, or empty if the session has none.
    """

    id: str
    token: str = field(repr=False)
    gateway_key: str = field(repr=False)
    in_band_key: str = field(default="", repr=False)


@frozen
class BothSites:
    """The routes that agents and the operator share.

    Each method raises L{DaemonUnreachable}, L{DaemonFault} and L{AnswerNotUnderstood}.
    """

    _client: Requester

    async def action(self, name: str) -> Mapping[str, Any]:
        """Return one action.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await self.get("actions", name)

    async def result(self, run_id: str, wait_seconds: float = 0) -> Mapping[str, Any]:
        """Return a run's status: C{{status, run_id, audit_id?, result?, reason?, edited?, failure?, retry_after}}.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await self.get("action-approvals", run_id, "result", wait_seconds=wait_seconds)

    async def withdraw(self, run_id: str, reason: str | None = None) -> Mapping[str, Any]:
        """Cancel a run before anything is sent, and return its status.

        :raises DaemonFault: with C{conflict}, if sending has started.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        body = {} if reason is None else {"reason": reason}
        return await self.post("action-approvals", run_id, "withdraw", body=body)

    async def get(self, *path: str, query: Query | None = None, wait_seconds: float = 0) -> Mapping[str, Any]:
        """Send GET to a route below C{/v1} and return the decoded response.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        given = {**(query or {}), "wait": int(wait_seconds) or None}
        return (await self._client.ask("GET", "v1", *path, query=given, wait_seconds=wait_seconds)).body

    async def post(
        self, *path: str, body: Mapping[str, JSON] | None = None, wait_seconds: float = 0
    ) -> Mapping[str, Any]:
        """Send POST to a route below C{/v1} and return the decoded response.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return (await self._client.ask("POST", "v1", *path, body=body or {}, wait_seconds=wait_seconds)).body


@frozen
class Daemon(BothSites):
    """The agent site, with a launch key or an agent token.

    Each method raises L{DaemonUnreachable}, L{DaemonFault} and L{AnswerNotUnderstood}. Cancelling ends the wait, never
    the run.
    """

    async def status(self) -> Mapping[str, Any]:
        """Return the daemon's version, vault state and counts.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await self.get("status")

    async def open_session(
        self,
        agent: str,
        working_dir: str,
        *,
        client: bool = False,
        leased: bool = False,
        minutes: int | None = None,
        in_band: bool = False,
        notes_tools: bool = False,
        restriction: Mapping[str, JSON] | None = None,
    ) -> OpenedSession:
        """Open a session. The agent and working directory are claims, and are shown as such.

        :param client: whether an MCP client opens the session itself, without a launcher.
        :param leased: whether the session ends when its lease (L{hold_lease}) is released.
        :param minutes: the maximum lifetime, or None for as long as the lease is held, or a day without a lease.
        :param in_band: whether the session gets a key for in-band mode.
        :param notes_tools: whether the tools that providers run for it are recorded.
        :param restriction: what restricts its actions besides the operator's configuration, or None: the name of a
            C{profile} and the project's C{selection}.
        :raises AnswerNotUnderstood: if the daemon is of an earlier version and returned no key for in-band mode.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        flags = {"client": client, "lease": leased, "in_band": in_band, "notes_tools": notes_tools}
        said = {"minutes": minutes, **(restriction or {}), **{name: flag or None for name, flag in flags.items()}}
        more: dict[str, JSON] = {name: value for name, value in said.items() if value is not None}
        body: dict[str, JSON] = {"agent": agent, "working_dir": working_dir, **more}
        answer = await self._client.ask("POST", "v1", "sessions", body=body)
        try:
            told = answer.body
            in_band_key = told["in_band_key"] if in_band else ""
            return OpenedSession(told["id"], told["token"], told["gateway_key"], in_band_key)
        except KeyError:
            raise AnswerNotUnderstood(
                "The daemon opened a session, but its response has no session ID.", answer.status
            ) from None

    async def hold_lease(self, session_id: str) -> None:
        """Hold the lease of a session until the session ends or the connection is lost. Cancelling releases the lease.

        :raises DaemonUnreachable: if the stream could not be opened, or the client does not use HTTP.
        :raises DaemonFault: if the daemon refuses, for example because there is no such session with a lease.
        :raises AnswerNotUnderstood: if the response is anything else.
        """
        if not isinstance(self._client, DaemonClient):
            raise DaemonUnreachable("A stream of events can be followed over HTTP only.")
        await self._client.follow("v1", "sessions", session_id, "lease", on_event=lambda: None)

    async def end_session(self, session_id: str, exit_code: int | None) -> Mapping[str, Any]:
        """End the session, and return it. Idempotent.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await self.post("sessions", session_id, "end", body={"exit_code": exit_code})

    async def actions(self, generation: int | None = None, wait_seconds: float = 0) -> Mapping[str, Any]:
        """Return the offered actions once their generation differs from C{generation}, or after the wait.

        :return: C{{generation, items, load_errors, takes_tool_call}}.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await self.get("actions", query={"generation": generation}, wait_seconds=wait_seconds)

    async def run(
        self,
        name: str,
        arguments: Mapping[str, JSON],
        idempotency_key: str | None = None,
        wait_seconds: float | None = None,
        tool_call: str | None = None,
        parent: TraceParent | None = None,
    ) -> DaemonAnswer:
        """Run an action. Idempotent: the same key with the same arguments returns the same run.

        :param wait_seconds: None waits until an ungated run is settled, and does not wait for a gated run.
        :param tool_call: the ID of the model's tool call. Send it only if the daemon accepts one.
        :param parent: the caller's place in its own trace, or None.
        :return: status 200 with the result, or 202 with the pending run.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        said = {"idempotency_key": idempotency_key, "tool_call": tool_call}
        held = _LONGEST_SECONDS if wait_seconds is None else wait_seconds
        body: dict[str, JSON] = {"args": arguments, **{name: text for name, text in said.items() if text is not None}}
        path = ("v1", "actions", name, "run")
        return await self._client.ask(
            *("POST", *path), body=body, prefer_seconds=wait_seconds, wait_seconds=held, parent=parent
        )

    async def run_status(self, run_id: str, wait_seconds: float = 0) -> Mapping[str, Any]:
        """Return one run with its action and times, once it is settled or the wait is over.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await self.get("runs", run_id, wait_seconds=wait_seconds)

    async def most_used(self, limit: int) -> Sequence[str]:
        """Return the names of the actions that all sessions ran most often of late.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        items = (await self.get("most-used", query={"limit": limit})).get("items")
        return [str(name) for name in items] if isinstance(items, list) else []

    async def runs(self, limit: int) -> Mapping[str, Any]:
        """Return the session's own runs as C{{items, cursor}}, newest first.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await self.get("runs", query={"limit": limit})


@frozen
class Operator(BothSites):
    """The operator site. Without a token it accepts only a login. Its routes are those of its OpenAPI document.

    Each method raises L{DaemonUnreachable}, L{DaemonFault} and L{AnswerNotUnderstood}.
    """

    _client: DaemonClient
    _key: TerminalKey | None = None

    def signing(self, key: TerminalKey | None) -> Operator:
        """Return a client like this one that signs decisions with C{key}. None means that decisions are not signed."""
        return Operator(self._client, key)

    async def decide(self, approval_id: str, decision: Mapping[str, JSON]) -> Mapping[str, Any]:
        """Send a decision, signed if this client has a key, and return the decided approval.

        :param decision: C{{approved, digest, reason?, not_before?, grant?}}.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        body = dict(decision)
        if self._key is not None:
            body["signed"] = self._key.sign([item_of(approval_id, decision)], self._client.seconds())
        return await self.post("action-approvals", approval_id, "decide", body=body)

    async def decide_list(
        self, decisions: Sequence[tuple[str, Mapping[str, JSON]]]
    ) -> Sequence[Mapping[str, Any] | DaemonFault]:
        """Send several decisions. If this client has a key, it signs them as lists.

        :param decisions: pairs of an approval's ID and C{{approved, digest, reason?, not_before?}}.
        :return: for each in order the decided approval, or the daemon's refusal.
        :raises DaemonError: if the daemon does not answer. Decisions sent before may have been recorded.
        """
        results = list[Mapping[str, Any] | DaemonFault]()
        for at in range(0, len(decisions), MOST_DECISIONS):
            part = decisions[at : at + MOST_DECISIONS]
            signed = {}
            if self._key is not None:
                items = [item_of(approval_id, decision) for approval_id, decision in part]
                signed = {"signed": self._key.sign(items, self._client.seconds())}
            for approval_id, decision in part:
                try:
                    results.append(
                        await self.post("action-approvals", approval_id, "decide", body={**decision, **signed})
                    )
                except DaemonFault as fault:
                    results.append(fault)
        return results

    async def logout(self) -> Mapping[str, Any]:
        """End this operator session, and return the daemon's answer.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await self.post("operator", "logout")

    async def patch(self, *path: str, body: Mapping[str, JSON]) -> Mapping[str, Any]:
        """Send PATCH to a route below C{/v1} and return the decoded response.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return (await self._client.ask("PATCH", "v1", *path, body=body)).body

    async def delete(self, *path: str, body: Mapping[str, JSON] | None = None) -> Mapping[str, Any]:
        """Send DELETE to a route below C{/v1} and return the decoded response.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return (await self._client.ask("DELETE", "v1", *path, body=body or {})).body

    async def follow(self, on_event: Callable[[], None]) -> None:
        """Call C{on_event} when the event stream opens and for each recorded event, until the stream ends.

        Cancelling ends the stream.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        await self._client.follow("v1", "events", on_event=on_event)


@frozen
class Lease:
    """The lease of a session: a request that stays open. When it ends, the daemon ends the session.

    :param daemon: returns the agent site with the current launch key, which changes when the daemon starts, or None if
        no daemon runs.
    """

    _daemon: Callable[[], Daemon | None]
    _clock: IReactorTime

    async def hold(self, session_id: str) -> None:
        """Hold the lease until the session ends or the coroutine is cancelled.

        After a failure, request the lease again after a pause. If the daemon has no such session, return.
        """
        while True:
            daemon = self._daemon()
            try:
                if daemon is not None:
                    await daemon.hold_lease(session_id)
            except DaemonFault as fault:
                if fault.status == _NO_SESSION:
                    return
            except DaemonError:
                """The lease is requested again."""
            await deferLater(self._clock, LEASE_PAUSE_SECONDS)
