"""A door over a real runner and store, with a scripted service, on one clock; a restart is a new life of both."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

from twisted.internet.defer import Deferred

from aileron.base.json import JSON, utc
from aileron.features.own_tools._contents import ToolContents
from aileron.features.own_tools._door import Door
from aileron.features.own_tools._reads import SessionReads
from aileron.features.own_tools._recorder import ToolRecorder
from aileron.features.own_tools._services import ToolServices
from aileron.features.own_tools._spool import BodySpools
from aileron.features.own_tools._writes import Writes
from aileron.features.own_tools.action_file import write_action
from aileron.features.own_tools.values import ToolAnswer, ToolRequest
from aileron.home.stored_contents import StoredContents
from aileron.model.audit import Event
from aileron.model.connectors import Outcome
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.runs import Run
from aileron.model.tool_claims import ToolCaller
from tests.runner.kit import AGENT
from tests.runner.tools import DECLARED, FQN, ToolsCase

HOLD = 25.0
HOST = "scripted.invalid"
JSON_TYPE = ("Content-Type", "application/json")
ONE, TWO, THREE = (ToolCaller(number, number * 100, f"gh command {number}") for number in (1, 2, 3))


def whole(status: int = 201, body: str = '{"id": 1}', **more: JSON) -> Outcome:
    """Return a service's answer as the connector returns it for a success."""
    return Outcome(
        output={"status": status, "reason": "Created", "headers": ["ETag: x"], "body": body, **more}, status=status
    )


async def call_at_once(work: Callable[..., Any], *args: Any) -> Any:
    """Call a function in this thread."""
    return work(*args)


class DoorCase(ToolsCase):
    """A door to the service C{tracker}, open to the tools of one session."""

    def setUp(self) -> None:
        super().setUp()
        self.write("tracker-tools", write_action(self.service.description, DECLARED))
        self.connections = count(1)
        self.lives = count(1)
        self.restart()
        self.session("session-1")

    def restart(self) -> Any:
        """Begin another life of the daemon."""
        runner = super().restart()
        if hasattr(self, "lives"):
            self.open_door()
        return runner

    def open_door(self) -> None:
        """Make the door of this life."""
        self.recorder = ToolRecorder(self.store.audit, self.clock, self.fresh_id)
        self.stored = StoredContents(self.directory.parent / "contents")
        self.spools = BodySpools(self.stored, call_at_once)
        self.contents = ToolContents(self.spools, self.runner.submission)
        self.writes = Writes(
            self.runner.submission, self.store.tool_claims, self.contents, self.clock, f"life-{next(self.lives)}", HOLD
        )
        self.door = Door(
            self.store.sessions,
            ToolServices(self.connectors, self.bindings, self.runner.submission),
            SessionReads(self.runner.tool_reads),
            self.writes,
            self.runner.submission,
            self.recorder,
            lambda run_id: f"http://127.0.0.1:7001/approvals/{run_id}",
        )

    def request(
        self,
        method: str = "POST",
        target: str = "/items",
        body: bytes = b'{"title": "x"}',
        caller: ToolCaller = ONE,
        **more: Any,
    ) -> ToolRequest:
        """Return a request on a new connection."""
        given = {"session_id": "session-1", "connection": next(self.connections), "host": HOST, **more}
        given.setdefault("services", frozenset({"tracker", "twin", "site"}))
        headers = given.pop("headers", (JSON_TYPE,) if body else ())
        return ToolRequest(method=method, target=target, headers=headers, body=body, caller=caller, **given)

    def ask(self, *args: Any, **kwargs: Any) -> Deferred[ToolAnswer]:
        """Send a request; a connection that is answered is written to."""
        return self.later(self.door.handle(self.request(*args, **kwargs)))

    def answered(self, *args: Any, **kwargs: Any) -> ToolAnswer:
        """Send a request, and return the answer that comes at once and is written to the connection."""
        return self.delivered(self.ask(*args, **kwargs))

    def delivered(self, asked: Deferred[ToolAnswer]) -> ToolAnswer:
        """Return the answer that is there, and write it."""
        answer = self.successResultOf(asked)
        answer.delivered()
        return answer

    def parked(self, *args: Any, **kwargs: Any) -> ToolAnswer:
        """Send a write, and return the answer when the hold is over."""
        asked = self.ask(*args, **kwargs)
        self.assertNoResult(asked)
        self.clock.advance(HOLD)
        answer = self.delivered(asked)
        self.assertEqual((403, "Waits for approval"), (answer.status, answer.reason))
        return answer

    def session_event(self, type_: str) -> Event:
        """Return an event of the session."""
        return Event(self.fresh_id(), type_, utc(self.clock.seconds()), AGENT, session_id="session-1")

    def runs(self) -> list[Run]:
        """Return all runs, the oldest first."""
        return list(reversed(self.sync(self.runner.submission.runs(RunQuery())).items))

    def sent(self) -> int:
        """Return how many effects the service saw."""
        return sum(each.method == "invoke" for each in self.service.sendings)

    def say(self, answer: ToolAnswer) -> str:
        """Return the message of a refusal in the service's form."""
        return str(json.loads(answer.body)["message"])

    def payloads(self, type_: str) -> list[Any]:
        """Return the payloads of events, the oldest first."""
        found = self.sync(self.store.audit.list(AuditQuery(type=type_))).items
        return [each.event.payload for each in reversed(found)]


def header(answer: ToolAnswer, name: str) -> str:
    """Return the value of an answer's header, or an empty text."""
    return next((value for key, value in answer.headers if key.lower() == name.lower()), "")


__all__ = ["FQN", "DoorCase", "header", "whole"]
