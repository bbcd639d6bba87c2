"""The hosts of sandboxed agents on the operator's pages."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve, field, frozen

from aileron.base.json import utc
from aileron.features.egress.running import RunningEgress, SessionHosts
from aileron.features.egress.values import EgressDecision, EgressHost, EgressState, TunnelOpener
from aileron.model.audit import Actor
from aileron.model.sessions import Session
from aileron.model.tool_claims import ToolCaller
from tests.api.case import NOW, running
from tests.web.case import WebCase, read

_HOST = EgressHost(
    id="01HOST",
    session_id="session-1",
    project="/home/me/\u202eshop",
    host="a.example:443",
    state=EgressState.PENDING,
    basis="",
    asked_at=utc(NOW),
    sent=1234,
)


@frozen
class KnownHosts(SessionHosts):
    """Hosts that a test has put there."""

    known: tuple[EgressHost, ...] = field(default=(_HOST,))

    async def open(self, session: Session, words: tuple[str, ...], caller: ToolCaller) -> tuple[int, str]:
        raise NotImplementedError

    def hosts(self) -> tuple[EgressHost, ...]:
        return self.known

    def pending(self, session_id: str | None = None) -> int:
        return sum(each.state is EgressState.PENDING for each in self.known)

    async def decide(self, host_id: str, decision: EgressDecision, seen: EgressState, actor: Actor) -> EgressHost:
        raise NotImplementedError

    def end(self, session_id: str) -> None:
        raise NotImplementedError

    def register_opener(self, opener: TunnelOpener) -> None:
        raise NotImplementedError


class HostsTests(WebCase):
    """What is shown of them."""

    def buttons(self, path: str) -> list[tuple[str, Any]]:
        """What the buttons of a page send."""
        tags = [each for tag, each in read(self.fragment(path).text).tags if tag == "button" and "data-act" in each]
        return [(each["data-act"], json.loads(each["data-body"])) for each in tags if "egress" in each["data-act"]]

    def test_waiting(self) -> None:
        """A host that waits is shown among the approvals, with who wants it where, and three answers."""
        self.agent()
        self.build(features=running(RunningEgress(KnownHosts())))
        text = read(self.fragment("/approvals").text).text
        for words in ("Pending approvals", "claude wants to connect to", "a.example:443", "\\u202eshop"):
            self.assertIn(words, text)
        self.assertNotIn("No pending approvals", text)
        sent = [("POST /v1/egress/01HOST/decision", {"decision": each, "state": "pending"}) for each in EgressDecision]
        self.assertEqual(self.buttons("/approvals"), sent)
        self.assertEqual(self.fragment("/approvals").headers["x-aileron-waiting"], "1")

    def test_none(self) -> None:
        """Where none waits, nothing of it is shown."""
        none, denied = KnownHosts(()), KnownHosts((evolve(_HOST, state=EgressState.DENIED),))
        for started in ((), (RunningEgress(none),), (RunningEgress(denied),)):
            self.build(features=running(*started))
            self.assertNotIn("Network access", self.fragment("/approvals").text)
            self.assertIn("No pending approvals", self.fragment("/approvals").text)

    def test_session(self) -> None:
        """A session's page lists its hosts, what passed, and what can be decided otherwise."""
        self.agent()
        allowed = evolve(_HOST, state=EgressState.ALLOWED, basis="npm")
        hosts = KnownHosts((allowed, evolve(_HOST, session_id="session-2", host="b.example:443")))
        self.build(features=running(RunningEgress(hosts)))
        text = read(self.fragment("/sessions/session-1").text).text
        for words in ("a.example:443", "npm", "1,234"):
            self.assertIn(words, text)
        self.assertNotIn("b.example", text)
        decide = "POST /v1/egress/01HOST/decision"
        self.assertEqual(self.buttons("/sessions/session-1"), [(decide, {"decision": "deny", "state": "allowed"})])
