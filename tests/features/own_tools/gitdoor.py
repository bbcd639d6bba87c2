"""A door to a git host with a scripted connector, and pushes as git writes them."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import JSON, digest
from aileron.connectors import SHOW_PUSH
from aileron.features.own_tools.action_file import write_action
from aileron.features.own_tools.values import ToolAnswer, ToolRequest
from aileron.model.connectors import READ, Operation, Outcome, Presentation
from aileron.model.own_tools import ToolDeclaration
from aileron.model.tool_claims import ToolCaller
from aileron.testing import MemoryConnectors, ScriptedConnector
from aileron.testing._connectors import scripted_description
from tests.connectors.kinds.git.test_push import A, B, body, line
from tests.connectors.repository import packets
from tests.runner.tools import FQN, READS, WRITES

from .door import HOLD, HOST, ONE, DoorCase

DECLARED = ToolDeclaration("site", (HOST,), {}, frozenset({"authorization"}), is_git=True)
PUSHES = evolve(WRITES, presentation=Presentation("push", {}, ("Push to ${in.repository}: ${in.changes}",)))
SHOWS = Operation(SHOW_PUSH, READ, idempotent=True, tools_only=True)
TARGET = "/acme/web.git/git-receive-pack"
TYPE = ("Content-Type", "application/x-git-receive-pack-request")
REPORT = packets(b"\1" + packets(b"unpack ok\n", b"ok refs/heads/main\n", None), None)


def reported(report: bytes = REPORT) -> Outcome:
    """Return a server's report as the connector returns it."""
    output: dict[str, JSON] = {"status": 200, "reason": "OK", "headers": [], "body": report.decode(), "report": {}}
    return Outcome(output=output, status=200)


def push_body(pack: bytes = b"", *lines: str, **more: Any) -> bytes:
    """Return the body of a push with some pack."""
    return body(*(lines or (line(A, B),)), rest=b"PACK\0\0\0\2" + pack.ljust(24, b"."), **more)


class GitDoorCase(DoorCase):
    """A door to the git host C{site}, open to the git of one session."""

    def setUp(self) -> None:
        super().setUp()
        described = evolve(
            scripted_description(PUSHES, READS, SHOWS, fqn=FQN), content_hash=digest("git"), own_tools=DECLARED
        )
        self.service = ScriptedConnector(description=described, clock=self.clock)
        self.service.shows[SHOW_PUSH] = lambda: Outcome(output={"refs": "main", "patch": "+x"})
        self.service.usual = reported()
        self.connectors = MemoryConnectors.of([self.connector, self.service])
        self.believe_connectors()
        (self.directory / "tracker-tools.md").unlink()
        self.write("site-tools", write_action(described, DECLARED))
        self.restart()

    def git(
        self, method: str = "POST", target: str = TARGET, body: bytes = b"", caller: ToolCaller = ONE, **more: Any
    ) -> ToolRequest:
        """Return a request of git."""
        headers = more.pop("headers", (TYPE,) if method == "POST" else ())
        return self.request(method, target, body, caller, headers=headers, **more)

    def push(self, sent: bytes | None = None, caller: ToolCaller = ONE, **more: Any) -> Deferred[ToolAnswer]:
        """Send a push."""
        written = push_body() if sent is None else sent
        return self.later(self.door.handle(self.git(body=written, caller=caller, **more)))

    def parked_push(self, *args: Any, **kwargs: Any) -> ToolAnswer:
        """Send a push, and return the answer when the hold is over."""
        asked = self.push(*args, **kwargs)
        self.assertNoResult(asked)
        self.clock.advance(HOLD)
        return self.delivered(asked)
