"""Writes of tools are runs, each answered once to whoever repeats it; nothing is sent twice on one approval."""

from __future__ import annotations

import json
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred

from aileron.base.json import digest
from aileron.features.own_tools._recorder import MOST_REQUESTS_A_MINUTE, ToolRecorder
from aileron.features.own_tools._services import ToolServices
from aileron.features.own_tools._writes import MOST_BYTES_OF_SESSION
from aileron.features.own_tools.action_file import write_action
from aileron.features.own_tools.values import ToolAnswer
from aileron.model.connectors import FORWARD_READ, Outcome
from aileron.model.errors import BindingRequired, ExternalApiError, NotFound, StoreUnavailable
from aileron.model.faults import Fault
from aileron.model.interfaces.runner import ISubmission
from aileron.model.own_tools import ToolDeclaration
from aileron.model.queries import RunQuery
from aileron.model.runs import Call, Run, RunState
from aileron.model.sessions import SessionEnding
from aileron.model.streams import StreamedAnswer
from aileron.model.tool_claims import KEPT, NO_CALLER, ToolCaller
from aileron.model.vault import NewBinding, Scope
from aileron.testing import ScriptedConnector
from tests.promises.case import Killed
from tests.runner.kit import OPERATOR
from tests.runner.tools import DECLARED

from .door import FQN, HOLD, HOST, ONE, THREE, TWO, DoorCase, header, whole
from .test_streaming import Body


class KilledSubmission:
    """The runner's interface for calls, in a daemon that ends as soon as a run is stored."""

    def __init__(self, inner: ISubmission) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def submit(self, call: Call) -> Run:
        """Store the run, and return nothing any more."""
        await self._inner.submit(call)
        never: Deferred[Run] = Deferred()
        return await never


class HoldTests(DoorCase):
    """A write is held, and then told that it waits."""

    def test_decided_within_the_hold(self) -> None:
        """A write that is approved while its connection is held gets the service's real answer."""
        self.service.script.append(whole(201, '{"id": 7}'))
        asked = self.ask()
        self.assertNoResult(asked)
        self.assertEqual(0, self.sent())
        (run,) = self.runs()
        self.approve(run)
        answer = self.delivered(asked)
        self.assertEqual((201, b'{"id": 7}'), (answer.status, answer.body))
        self.assertEqual((run.id, "x"), (header(answer, "Aileron-Run"), header(answer, "ETag")))
        self.assertEqual((1, RunState.COMPLETED), (self.sent(), self.state(run)))

    def test_patience(self) -> None:
        """A tool that gives up early is told before it does."""
        for caller, agent, seconds in ((ONE, "python-httpx/0.27.2", 4.0), (TWO, "PyGithub/Python", 12.0)):
            asked = self.ask(headers=(("User-Agent", agent), ("Content-Type", "text/plain")), caller=caller)
            self.clock.advance(seconds - 0.5)
            self.assertNoResult(asked)
            self.clock.advance(0.5)
            self.assertEqual("Waits for approval", self.delivered(asked).reason)

    def test_exact(self) -> None:
        """The run has the request as it was written, without the placeholder; it is the session's own."""
        headers = (("Content-Type", "text/plain"), ("X-Key", "aileron-placeholder"), ("X-More", "1"))
        self.ask("PUT", "/a%2Fb?c=%20", b"\x00\xff", headers=headers)
        (run,) = self.runs()
        given = {name: value for name, value in run.arguments.items() if name != "recognised"}
        expected = {
            "host": "scripted.invalid",
            "method": "PUT",
            "target": "/a%2Fb?c=%20",
            "headers": ["Content-Type: text/plain", "X-More: 1"],
            "body_base64": "AP8=",
        }
        self.assertEqual(expected, given)
        self.assertEqual(("session-1", True), (run.session_id, run.gated))

    def test_parked(self) -> None:
        """After the hold, the tool is told in the service's form that it waits, where, and what to do."""
        answer = self.parked()
        (run,) = self.runs()
        self.assertIn(f"http://127.0.0.1:7001/approvals/{run.id}", answer.body.decode())
        self.assertIn("same command again", self.say(answer))
        for name, value in (("Aileron-Run", run.id), ("x-should-retry", "false"), ("Cache-Control", "no-store")):
            self.assertEqual(value, header(answer, name))
        self.assertEqual(0, self.sent())

    def test_sent_without_the_tool(self) -> None:
        """What is approved after the tool has gone is sent all the same, once, and its answer is claimed later."""
        self.service.script.append(whole())
        self.parked()
        (run,) = self.runs()
        self.approve(run)
        self.assertEqual(1, self.sent())
        answer = self.answered(caller=TWO)
        self.assertEqual((201, run.id, 1), (answer.status, header(answer, "Aileron-Run"), self.sent()))
        self.assertEqual([True], [each["repeated"] for each in self.payloads("own_tools.answered")])

    def test_client_gone(self) -> None:
        """If the tool goes away while it is held, its run goes on, and the next command gets the answer."""
        asked = self.ask()
        asked.cancel()
        self.failureResultOf(asked, CancelledError)
        (run,) = self.runs()
        self.assertIs(run.state, RunState.PENDING)
        self.service.script.append(whole())
        again = self.ask(caller=TWO)
        self.approve(run)
        self.assertEqual((201, 1, 1), (self.delivered(again).status, self.sent(), len(self.runs())))

    def test_gone_early(self) -> None:
        """Whenever the tool goes away while its run is being stored, one run is there at the next command."""
        for steps in range(8):
            target = f"/items/{steps}"
            self.pool.hold()
            asked = self.ask(target=target)
            for _ in range(steps):
                if self.pool.todo:
                    self.pool.step()
            asked.cancel()
            self.failureResultOf(asked, CancelledError)
            self.pool.release()
            self.ask(target=target, caller=TWO)
            self.assertEqual([target], [each.arguments["target"] for each in self.runs()[steps:]])


class RepetitionTests(DoorCase):
    """The rules of repetition."""

    def setUp(self) -> None:
        super().setUp()
        self.service.usual = whole()

    def test_killed(self) -> None:
        """A daemon that ends as soon as a run is stored has stored its claim: the repetition gets the same run."""
        self.patch(self.writes, "submission", KilledSubmission(self.runner.submission))
        self.assertNoResult(self.ask())
        self.restart()
        self.parked(caller=TWO)
        self.assertEqual(1, len(self.runs()))
        self.approve(self.runs()[0])
        self.assertEqual(201, self.answered(caller=THREE).status)
        self.assertEqual(1, self.sent())

    def test_undecided(self) -> None:
        """A repetition of an undecided run waits for it; no other run is asked for."""
        self.parked()
        self.parked(caller=TWO)
        self.assertEqual(1, len(self.runs()))

    def test_at_once(self) -> None:
        """Two equal writes at once are two runs, and each gets its own answer."""
        self.service.script += [whole(201, "1"), whole(201, "2")]
        first, second = self.ask(), self.ask(caller=TWO)
        one, two = self.runs()
        self.approve(one)
        self.approve(two)
        self.assertEqual([b"1", b"2"], [self.delivered(first).body, self.delivered(second).body])
        self.assertEqual(2, self.sent())

    def test_at_once_slow(self) -> None:
        """Of two commands that repeat one run at once, one gets its answer, and the other is asked for."""
        self.parked()
        self.approve(self.runs()[0])
        self.pool.hold()
        first, second = self.ask(caller=TWO), self.ask(caller=THREE)
        self.pool.release()
        self.assertEqual(201, self.delivered(first).status)
        self.assertNoResult(second)
        self.assertEqual(2, len(self.runs()))

    def test_same_caller(self) -> None:
        """A caller that had an answer and sends the same again means it twice, and never gets that answer again."""
        self.parked()
        self.approve(self.runs()[0])
        self.assertEqual(201, self.answered().status)
        self.parked(target="/more")
        self.assertEqual(403, self.answered().status)
        self.approve(self.runs()[1])
        self.assertEqual(201, self.answered(target="/more").status)
        self.parked()
        self.assertEqual((3, 2), (len(self.runs()), self.sent()))

    def test_third_command(self) -> None:
        """A command that had its answer is over: the same command once more is a new run."""
        self.parked()
        self.approve(self.runs()[0])
        self.assertEqual(201, self.answered(caller=TWO).status)
        self.parked(caller=THREE)
        self.assertEqual(2, len(self.runs()))

    def test_not_delivered(self) -> None:
        """An answer that was not written to an open connection counts as not given."""
        self.parked()
        self.approve(self.runs()[0])
        self.successResultOf(self.ask(caller=TWO))
        self.assertEqual(201, self.answered(caller=THREE).status)
        self.assertEqual(1, len(self.runs()))

    def test_other_form(self) -> None:
        """Another body, target or method is another request; the order of JSON's keys and the user agent are not."""
        self.parked(body=b'{"a": 1, "b": 2}', headers=(("Content-Type", "application/json"), ("User-Agent", "gh/1")))
        self.parked(body=b'{"b": 2, "a": 1}', headers=(("Content-Type", "application/json"),), caller=TWO)
        self.assertEqual(1, len(self.runs()))
        self.parked(body=b'{"a": 1, "b": 3}', caller=THREE)
        self.parked("PUT", body=b'{"a": 1, "b": 2}', caller=ToolCaller(4, 4))
        self.parked(target="/other", body=b'{"a": 1, "b": 2}', caller=ToolCaller(5, 5))
        self.assertEqual(4, len(self.runs()))

    def test_several_writes(self) -> None:
        """A command of three writes over several commands has each effect once."""
        three = ("/releases", "/assets", "/publish")
        for number, _ in enumerate(three, 1):
            caller = ToolCaller(10 + number, 1)
            for target in three[: number - 1]:
                self.assertEqual(201, self.answered(target=target, caller=caller).status)
            self.parked(target=three[number - 1], caller=caller)
            self.approve(self.runs()[-1])
        for target in three:
            self.assertEqual(201, self.answered(target=target, caller=ToolCaller(20, 1)).status)
        self.assertEqual((3, 3), (len(self.runs()), self.sent()))

    def test_unknown_callers(self) -> None:
        """If callers are not known, connections stand for them: at worst it is asked once more."""
        unknown = ToolCaller()
        self.parked(caller=unknown)
        self.approve(self.runs()[0])
        self.assertEqual(201, self.answered(caller=unknown).status)
        self.parked(caller=unknown)
        self.assertEqual((2, 1), (len(self.runs()), self.sent()))

    def test_other_session(self) -> None:
        """No other session gets an answer while the one that asked is live: it asks for itself."""
        self.parked()
        self.approve(self.runs()[0])
        self.session("session-2")
        self.parked(caller=ONE, session_id="session-2")
        self.assertEqual((2, 1), (len(self.runs()), self.sent()))

    def test_expired(self) -> None:
        """A day after its run has ended an answer is gone; a run that waits longer keeps its claim."""
        self.parked()
        self.clock.advance(2 * KEPT.total_seconds())
        self.parked(caller=TWO)
        self.assertEqual(1, len(self.runs()))
        self.approve(self.runs()[0])
        self.clock.advance(KEPT.total_seconds())
        self.parked(caller=THREE)
        self.assertEqual((2, 1), (len(self.runs()), self.sent()))

    def test_restart(self) -> None:
        """A claim outlives the daemon: what was parked in one life and sent in the next is claimed in a third."""
        self.parked()
        self.next_life()
        self.approve(self.runs()[0])
        self.next_life()
        answer = self.answered(caller=TWO)
        self.assertEqual((201, 1, 1), (answer.status, self.sent(), len(self.runs())))
        self.next_life()
        self.parked(caller=THREE)
        self.assertEqual(2, len(self.runs()))


class LaterSessionTests(DoorCase):
    """Answers that came after the session had ended, and the next session of the same agent and project."""

    def setUp(self) -> None:
        super().setUp()
        self.service.usual = whole()

    def end(self, session_id: str = "session-1") -> None:
        """End a session, as the daemon does it."""
        events = (self.session_event("session.ended"),)
        self.sync(self.store.sessions.end(session_id, None, events, SessionEnding.ORPHANED))
        self.writes.session_ended(session_id)

    def next_session(self, session_id: str = "session-2", **more: Any) -> None:
        """Open another session of the agent."""
        session = evolve(self.session("session-1"), id=session_id, ended_at=None, ending=None, **more)
        token, gateway = (sha256(f"{kind}{session_id}".encode()).digest() for kind in ("token", "gateway"))
        self.sync(self.store.sessions.open(session, token, gateway, [self.session_event("session.started")]))

    def test_approved_later(self) -> None:
        """What is approved after the agent has ended is sent once, and the next session's command gets the answer."""
        self.parked()
        self.end()
        self.approve(self.runs()[0])
        self.assertEqual(1, self.sent())
        self.next_session()
        answer = self.answered(caller=TWO, session_id="session-2")
        self.assertEqual((201, 1, 1), (answer.status, self.sent(), len(self.runs())))
        (told,) = self.payloads("own_tools.answered")
        self.assertEqual((True, "session-1"), (told["repeated"], told["asked_in"]))
        self.parked(caller=THREE, session_id="session-2")
        self.assertEqual((2, 1), (len(self.runs()), self.sent()))

    def test_undecided(self) -> None:
        """If it is not decided yet, the next session's command waits for the same run, also after a restart."""
        self.parked()
        self.end()
        self.next_session()
        self.parked(caller=TWO, session_id="session-2")
        self.next_life()
        asked = self.ask(caller=THREE, session_id="session-2")
        self.approve(self.runs()[0])
        self.assertEqual((201, 1, 1), (self.delivered(asked).status, self.sent(), len(self.runs())))

    def test_once(self) -> None:
        """Of two next sessions one gets the answer, and the other asks for itself."""
        self.parked()
        self.end()
        self.approve(self.runs()[0])
        for name in ("session-2", "session-3"):
            self.next_session(name)
        self.assertEqual(201, self.answered(caller=TWO, session_id="session-3").status)
        self.parked(caller=THREE, session_id="session-2")
        self.end("session-3")
        self.parked(caller=ToolCaller(4, 4), session_id="session-2")
        self.assertEqual((2, 1), (len(self.runs()), self.sent()))

    def test_had_its_answer(self) -> None:
        """If a command of the ended session got the answer, the same command later is meant once more."""
        self.parked()
        self.approve(self.runs()[0])
        self.assertEqual(201, self.answered(caller=TWO).status)
        self.end()
        self.next_session()
        self.parked(caller=THREE, session_id="session-2")
        self.assertEqual((2, 1), (len(self.runs()), self.sent()))

    def test_other_project(self) -> None:
        """Another project, and another agent in the same one, ask for themselves."""
        self.parked()
        self.end()
        self.approve(self.runs()[0])
        self.next_session(working_dir="/home/me/another")
        self.next_session("session-3", agent="another")
        for number, name in enumerate(("session-2", "session-3"), 2):
            self.parked(caller=ToolCaller(number, 1), session_id=name)
        self.assertEqual((3, 1), (len(self.runs()), self.sent()))

    def test_unknown(self) -> None:
        """A run of unknown outcome is unknown to the next session too, and is never sent again."""
        self.service.script.append(Outcome(fault=Fault("network_error", "lost", "network"), classified=False))
        self.parked()
        self.end()
        self.approve(self.runs()[0])
        self.next_session()
        answer = self.answered(caller=TWO, session_id="session-2")
        self.assertIn("unknown", self.say(answer).lower())
        self.assertEqual((1, 1), (self.sent(), len(self.runs())))

    def test_profile(self) -> None:
        """A next session whose profile leaves the action out gets no answer of it."""
        self.parked()
        self.end()
        self.approve(self.runs()[0])
        self.next_session(profile="small")
        answer = self.answered(caller=TWO, session_id="session-2")
        self.assertEqual((403, 1), (answer.status, self.sent()))
        self.assertEqual("", header(answer, "Aileron-Run"))
        self.assertEqual([], self.payloads("own_tools.answered"))


class EndTests(DoorCase):
    """What a run that did not succeed comes to."""

    def test_refused_by_the_service(self) -> None:
        """The service's own refusal is handed on whole, later too, and after that the command is meant again."""
        text = json.dumps({"status": 422, "reason": "No", "headers": ["X-A: b"], "body": '{"message": "bad"}'})
        fault = ExternalApiError("refused", {"status": 422}).fault()
        notes = {"answer": {"type": "application/json", "text": text}}
        self.service.script.append(Outcome(fault=fault, status=422, notes=notes))
        self.parked()
        self.approve(self.runs()[0])
        answer = self.answered(caller=TWO)
        self.assertEqual((422, b'{"message": "bad"}', "b"), (answer.status, answer.body, header(answer, "X-A")))
        self.parked(caller=THREE)
        self.assertEqual(2, len(self.runs()))

    def test_denied(self) -> None:
        """The reason of a denial is told once to each command that was told that it waits."""
        self.parked()
        self.approve(self.runs()[0], False, "use the other repository")
        answer = self.answered(caller=TWO)
        self.assertEqual(403, answer.status)
        self.assertIn("use the other repository", self.say(answer))
        self.assertEqual((0, 1), (self.sent(), len(self.runs())))

    def test_denied_again(self) -> None:
        """A denied write that is sent once more is refused for a while, as any denied call is."""
        self.parked()
        self.approve(self.runs()[0], False, "no")
        self.answered(caller=TWO)
        self.assertEqual(403, self.answered(caller=THREE).status)
        self.assertEqual((0, 1), (self.sent(), len(self.runs())))

    def test_cancelled(self) -> None:
        """A run that was withdrawn says so."""
        self.parked()
        (run,) = self.runs()
        self.sync(self.runner.submission.withdraw(run.id, self.call().actor, "not needed"))
        self.assertEqual(403, self.answered(caller=TWO).status)
        self.assertEqual(0, self.sent())

    def test_unknown(self) -> None:
        """A run of unknown outcome says so to everyone, and is never sent again."""
        self.service.script.append(Outcome(fault=Fault("network_error", "lost", "network"), classified=False))
        self.parked()
        self.approve(self.runs()[0])
        for number in range(2, 5):
            answer = self.answered(caller=ToolCaller(number, 1))
            self.assertEqual(403, answer.status)
            self.assertIn("unknown", self.say(answer).lower())
        self.assertEqual((1, 1), (self.sent(), len(self.runs())))

    def test_run_again(self) -> None:
        """If a person has it sent once more, the next command gets the answer of that run."""
        self.service.script += [Outcome(fault=Fault("network_error", "lost", "network"), classified=False), whole()]
        self.parked()
        self.approve(self.runs()[0])
        again = self.sync(self.runner.reconciliation.run_again(self.runs()[0].id, "not there", OPERATOR))
        self.assertEqual(403, self.answered(caller=TWO).status)
        self.approve(again)
        answer = self.answered(caller=TWO)
        self.assertEqual((201, again.id, 2), (answer.status, header(answer, "Aileron-Run"), self.sent()))

    def test_killed_while_sending(self) -> None:
        """If the daemon dies while it sends, the repetition is told that the outcome is unknown; nothing is sent."""
        self.service.script.append(Deferred())
        self.parked()
        self.approve(self.runs()[0])
        self.assertIs(self.runs()[0].state, RunState.EXECUTING)
        self.restart()
        self.assertIs(self.runs()[0].state, RunState.UNKNOWN)
        self.assertEqual(403, self.answered(caller=TWO).status)
        self.assertEqual((1, 1), (self.sent(), len(self.runs())))

    def test_killed_anywhere(self) -> None:
        """Wherever the daemon dies between the decision and the end, nothing is sent twice, and nothing is made up."""
        for number, (point, sent) in enumerate({"opened": 0, "executing": 0, "answered": 1}.items(), 1):
            before, target = self.sent(), f"/items/{number}"
            self.die_at(point)
            self.parked(target=target, caller=ToolCaller(number, 1))
            run = self.runs()[-1]
            decided = self.later(self.runner.decisions.decide(run.id, self.yes(run)))
            decided.addErrback(lambda failure: failure.trap(Killed))
            self.flushLoggedErrors(Killed)
            self.restart()
            answer = self.answered(target=target, caller=ToolCaller(number, 2))
            self.assertEqual((403, sent), (answer.status, self.sent() - before), point)
            self.assertIs(self.state(run), RunState.UNKNOWN, point)

    def die_at(self, point: str) -> None:
        """Have this life end when it comes there."""

        def probe(reached: str) -> None:
            if reached == point:
                raise Killed

        self.runner = self.build(probe)
        self.sync(self.runner.start())
        self.open_door()

    def test_not_sent(self) -> None:
        """A run that failed before anything was sent says why, once."""
        self.service.script.append(BindingRequired("No credential is bound."))
        self.parked()
        self.approve(self.runs()[0])
        self.assertIn("No credential is bound", self.say(self.answered(caller=TWO)))
        self.parked(caller=THREE)
        self.assertEqual(2, len(self.runs()))

    def test_login_refused(self) -> None:
        """A 401 of the service is not handed on: tools would ask for a login."""
        text = json.dumps({"status": 401, "reason": "No", "headers": [], "body": "{}"})
        notes = {"answer": {"type": "application/json", "text": text}}
        fault = ExternalApiError("refused", {"status": 401}).fault()
        self.service.script.append(Outcome(fault=fault, status=401, notes=notes))
        self.parked()
        self.approve(self.runs()[0])
        answer = self.answered(caller=TWO)
        self.assertEqual(403, answer.status)
        self.assertIn("aileron credential", self.say(answer))


class GraphqlTests(DoorCase):
    """GraphQL, in whose form refusals are."""

    def query(self, text: str, **more: Any) -> Deferred[ToolAnswer]:
        """Send a GraphQL request."""
        return self.ask("POST", "/graphql", json.dumps({"query": text}).encode(), **more)

    def test_mutation(self) -> None:
        """A mutation waits as any write; the refusal is one of GraphQL."""
        asked = self.query("mutation { close(id: 1) { id } }")
        self.clock.advance(HOLD)
        answer = self.delivered(asked)
        self.assertEqual(200, answer.status)
        self.assertIn("same command again", json.loads(answer.body)["errors"][0]["message"])
        self.service.script.append(whole(200, '{"data": {}}'))
        self.approve(self.runs()[0])
        self.assertEqual(
            b'{"data": {}}', self.delivered(self.query("mutation { close(id: 1) { id } }", caller=TWO)).body
        )
        self.assertEqual(1, self.sent())

    def test_query(self) -> None:
        """A query is a read."""
        self.service.script.append(whole(200, '{"data": {}}'))
        self.assertEqual(b'{"data": {}}', self.delivered(self.query("query { viewer { login } }")).body)
        self.assertEqual([], self.runs())


class OwedTests(DoorCase):
    """A command that is owed an answer asks for nothing further."""

    def test_clean_up(self) -> None:
        """A clean-up after a parked write is refused: it would undo what is not done yet. Its answer opens the way."""
        self.parked()
        answer = self.answered("DELETE", "/items/1", b"")
        self.assertEqual((403, 1), (answer.status, len(self.runs())))
        self.ask("DELETE", "/items/1", b"", caller=TWO)
        self.assertEqual(2, len(self.runs()))

    def test_decided(self) -> None:
        """Once the first request is decided, a program that stays may go on, though it never asked for its answer."""
        self.service.usual = whole()
        self.parked()
        self.assertEqual(403, self.answered("DELETE", "/items/1", b"").status)
        self.approve(self.runs()[0])
        self.parked("DELETE", "/items/1", b"")
        self.assertEqual(2, len(self.runs()))
        self.assertEqual(403, self.answered("DELETE", "/items/2", b"").status)
        self.assertEqual(2, len(self.runs()))

    def test_shown(self) -> None:
        """The run has the command line as claimed; it makes no other request of it, and a connection without one none.

        The audit log has its first words alone.
        """
        self.service.usual = whole()
        self.parked(caller=ToolCaller(7, 1, "gh issue create -t Secret"))
        (run,) = self.runs()
        recognised: Any = run.arguments["recognised"]
        self.assertEqual("gh issue create -t Secret", recognised["claimed_command"])
        self.approve(run)
        self.assertEqual(201, self.answered(caller=ToolCaller(8, 1, "curl -d x")).status)
        self.assertEqual(["curl"], [each["command"] for each in self.payloads("own_tools.answered")])
        self.parked(target="/other", caller=NO_CALLER)
        other: Any = self.runs()[-1].arguments["recognised"]
        self.assertNotIn("claimed_command", other)

    def test_given(self) -> None:
        """Once it has its answer, the command may go on."""
        self.service.usual = whole()
        self.parked()
        self.approve(self.runs()[0])
        self.answered()
        self.ask("DELETE", "/items/1", b"")
        self.assertEqual(2, len(self.runs()))


class StuckRecorder(ToolRecorder):
    """A recorder that is stuck until the test says what becomes of it."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.stuck: Deferred[None] = Deferred()

    async def record_read(self, *args: object) -> None:
        """Wait."""
        await self.stuck


class ReadTests(DoorCase):
    """Reads, which are no runs."""

    def test_read(self) -> None:
        """A read is sent at once and recorded without its content; the answer is handed on whole."""
        self.service.script.append(whole(200, "body", reason="OK"))
        answer = self.answered("GET", "/items?page=2", b"")
        self.assertEqual((200, "OK", b"body"), (answer.status, answer.reason, answer.body))
        self.assertEqual([FORWARD_READ], [each.request.operation for each in self.service.sendings])
        self.assertEqual([], self.runs())
        (event,) = self.payloads("own_tools.read")
        self.assertEqual(
            ("GET", "/items?page=2", 200, 4), tuple(event[k] for k in ("method", "target", "status", "bytes"))
        )
        self.assertNotIn("body", event)

    def test_withheld(self) -> None:
        """Content that is withheld, because it is compressed, is not handed on as if it were empty."""
        self.service.script.append(whole(200, "", withheld="encoded"))
        answer = self.answered("GET", "/items", b"")
        self.assertEqual((403, "Failed"), (answer.status, answer.reason))

    def test_long(self) -> None:
        """A long answer is on record before any of it is passed on, with the bytes that are announced, and its end."""
        body = Body()
        asked = self.answer_long(body, 7)
        answer = self.successResultOf(asked)
        self.assertEqual(
            (200, 7, [7]), (answer.status, answer.length, [e["bytes"] for e in self.payloads("own_tools.read")])
        )
        assert answer.stream is not None
        self.assertFalse(body.is_closed)
        answer.ended(5, True)
        (event,) = self.payloads("own_tools.read_ended")
        self.assertEqual((5, False, "/items"), (event["bytes"], event["complete"], event["target"]))

    def test_long_not_recorded(self) -> None:
        """If a long answer cannot be recorded, or its tool leaves meanwhile, the body is closed."""
        for leaves in (True, False):
            body = Body()
            recorder = StuckRecorder(self.store.audit, self.clock, self.fresh_id)
            self.door._recorder = recorder
            asked = self.answer_long(body, None)
            self.assertFalse(body.is_closed)
            if leaves:
                asked.cancel()
                self.failureResultOf(asked, CancelledError)
            else:
                recorder.stuck.errback(StoreUnavailable("The database cannot be written."))
                self.assertEqual(403, self.successResultOf(asked).status)
            self.assertTrue(body.is_closed)

    def answer_long(self, body: Body, length: int | None) -> Deferred[ToolAnswer]:
        """Read something whose answer is long."""

        async def read(*_: object) -> StreamedAnswer:
            return StreamedAnswer(whole(200, ""), length, body)

        self.door._reads = cast(Any, SimpleNamespace(read=read))
        return self.ask("GET", "/items", b"")

    def test_login_refused(self) -> None:
        """A 401 becomes our 403, which says what to do."""
        self.service.script.append(Outcome(fault=ExternalApiError("no", {"status": 401}).fault(), status=401))
        answer = self.answered("GET", "/items", b"")
        self.assertEqual(403, answer.status)
        self.assertIn("aileron credential", self.say(answer))

    def test_unreachable(self) -> None:
        """A service that cannot be reached is a refusal that says so."""
        self.service.script.append(Outcome(fault=Fault("network_error", "It could not be reached.", "network")))
        answer = self.answered("GET", "/items", b"")
        self.assertIn("could not be reached", self.say(answer))
        self.assertNotEqual(401, answer.status)

    def test_gone(self) -> None:
        """A tool that leaves ends its read."""
        self.service.script.append(Deferred())
        asked = self.ask("GET", "/items", b"")
        asked.cancel()
        self.failureResultOf(asked, CancelledError)


class RefusedTests(DoorCase):
    """What is refused, and leaves nothing."""

    def refused(self, *args: object, **kwargs: object) -> str:
        """Check that a request is refused, sends nothing and makes no run, and return the message."""
        answer = self.answered(*args, **kwargs)
        self.assertEqual((403, 0), (answer.status, len(self.service.sendings)))
        self.assertEqual([], self.runs())
        return answer.body.decode()

    def both(self) -> None:
        """Check that a write and a read are refused."""
        self.refused()
        self.refused("GET", "/items", b"")

    def test_session_ended(self) -> None:
        """A session that has ended reads and writes nothing, and one that is unknown neither."""
        ended = (self.session_event("session.ended"),)
        self.sync(self.store.sessions.end("session-1", None, ended, SessionEnding.ORPHANED))
        self.both()
        self.refused(session_id="none")

    def test_away(self) -> None:
        """While the database is away, nothing is read or asked for, and the tool gets that in its service's form."""
        self.sync(self.store.close())
        for given in ((), ("GET", "/items", b"")):
            self.assertEqual("store_unavailable", json.loads(self.refused_away(*given))["code"])

    def refused_away(self, *args: object) -> str:
        """Check that a request is refused and sends nothing, and return the answer."""
        answer = self.answered(*args)
        self.assertEqual((403, 0), (answer.status, len(self.service.sendings)))
        return answer.body.decode()

    def test_flood(self) -> None:
        """A session that sends very many requests is refused before they are looked at."""
        for _ in range(MOST_REQUESTS_A_MINUTE):
            self.recorder.admit_request(self.request())
        self.assertIn("too many requests", self.refused("POST", "/graphql", b"{"))
        self.both()

    def test_paused(self) -> None:
        """While the session is paused, nothing is read or asked for."""
        self.sync(self.runner.limits.pause("session-1", "wait", self.call().actor))
        self.both()

    def test_locked(self) -> None:
        """While the vault is locked, nothing is read."""
        self.vault.lock()
        self.refused("GET", "/items", b"")

    def test_disabled(self) -> None:
        """A service whose action is switched off, or gone, is closed."""
        self.write("tracker-tools", "+++\n+++\n")
        self.runner.check_changes()
        self.both()

    def test_other_host(self) -> None:
        """A host that no service covers is refused."""
        self.refused(host="other.invalid")

    def test_foreign_credential(self) -> None:
        """A credential that is not the placeholder is refused and recorded, without its value."""
        for headers in ((("X-Key", "mine"),), (("Authorization", "Bearer mine"),), (("Cookie", "a=mine"),)):
            self.refused(headers=headers)
            self.refused("GET", "/items", b"", headers=headers)
        events = self.payloads("own_tools.refused")
        self.assertEqual(6, len(events))
        self.assertNotIn("mine", json.dumps(events))

    def test_too_long(self) -> None:
        """A body of more than a mebibyte is refused in words."""
        self.refused(body=b"x" * (1024 * 1024 + 1), headers=())

    def test_profile(self) -> None:
        """A session whose profile leaves the action out is refused."""
        session = evolve(self.session("session-1"), id="session-3", profile="small")
        self.sync(self.store.sessions.open(session, b"3" * 32, b"4" * 32, [self.session_event("session.started")]))
        self.refused(session_id="session-3")
        self.refused("GET", "/items", b"", session_id="session-3")


class FloodTests(DoorCase):
    """Bounds."""

    def test_pending(self) -> None:
        """Of very many writes, the rest is refused."""
        for number in range(self.limits.per_session):
            self.ask(target=f"/items/{number}", caller=ToolCaller(number + 1, 1))
        answer = self.answered(target="/more", caller=ToolCaller(99, 1))
        self.assertEqual((403, self.limits.per_session), (answer.status, len(self.runs())))

    def test_bytes(self) -> None:
        """Writes that wait have a limit together; once they are decided, there is room again."""
        body, most = b"x" * 1024 * 1024, MOST_BYTES_OF_SESSION // (1024 * 1024)
        for number in range(most - 1):
            self.ask(target=f"/{number}", body=body, headers=(), caller=ToolCaller(number + 1, 1))
        self.assertEqual(most - 1, self.count())
        answer = self.answered(target="/more", body=body, headers=(), caller=ToolCaller(99, 1))
        self.assertEqual((403, most - 1), (answer.status, self.count()))
        self.approve(self.runs()[0], False)
        self.ask(target="/more", body=body, headers=(), caller=ToolCaller(99, 1))
        self.assertEqual(most, self.count())

    def count(self) -> int:
        """Return the number of runs."""
        return self.sync(self.runner.submission.count(RunQuery()))


class ServiceTests(DoorCase):
    """What launchers are told of services."""

    def bind(self) -> None:
        """Bind a credential to the service."""
        scope = Scope(("scripted.invalid:443",), "https://scripted.invalid", "X-Key", "{key}")
        self.bindings.add(NewBinding("api_key", "tools", "me", FQN, b"secret", scope=scope))

    def test_find(self) -> None:
        """A service has its hosts and placeholders, once its action is trusted and a credential is bound."""
        self.assertRaises(BindingRequired, self.door.find_services, ("tracker",))
        self.bind()
        (found,) = self.door.find_services(("tracker", "tracker"))
        self.assertEqual(("tracker", FQN, frozenset({HOST})), (found.name, found.connector, found.hosts))
        self.assertEqual({"TRACKER_TOKEN": "aileron-placeholder"}, found.variables)

    def test_base_url(self) -> None:
        """If the binding has a base URL of its own, the service is at that host, and a request goes there."""
        bindable = evolve(self.service.description, bindable=True)
        self.service.description = bindable
        self.believe_connectors()
        self.runner.check_changes()
        scope = Scope(("my.example:443",), "https://my.example", "X-Key", "{key}")
        given = NewBinding("api_key", "tools", "me", FQN, b"secret", scope=scope, base_url="https://my.example")
        self.bindings.add(given)
        (found,) = self.door.find_services(("tracker",))
        self.assertEqual(frozenset({"my.example"}), found.hosts)
        self.ask("POST", "/items", host="my.example")
        self.assertEqual(["my.example"], [each.arguments["host"] for each in self.runs()])
        self.assertEqual(403, self.answered("POST", "/items", caller=TWO).status)
        self.assertEqual(1, len(self.runs()))

    def test_problems(self) -> None:
        """What keeps tools from a service is told in sentences, for those that were added and any other."""
        services = ToolServices(self.connectors, self.bindings, self.runner.submission)
        self.assertEqual(["tracker"], services.list_names())
        unbound, unknown = services.list_problems(("tracker", "other"))
        self.assertIn("No credential is bound", unbound)
        self.assertIn("No connector declares own tools for other", unknown)
        self.bind()
        self.assertEqual([], list(services.list_problems(("tracker",))))

    def test_missing(self) -> None:
        """A service that no connector declares is an error. One that was not added names the command that helps."""
        self.bind()
        self.assertRaises(NotFound, self.door.find_services, ("other",))
        self.write("tracker-tools", "+++\n+++\n")
        self.runner.check_changes()
        error = self.assertRaises(NotFound, self.door.find_services, ("tracker",))
        self.assertIn("aileron own-tools check tracker", str(error))

    def test_two(self) -> None:
        """If two services are at one host, neither is used: it would not be known whose credential is sent."""
        self.add_twin(DECLARED)
        answer = self.answered()
        self.assertIn("aileron own-tools list", answer.body.decode())
        self.assertEqual([], self.runs())

    def test_paths(self) -> None:
        """Of two services at one host, a request is for the one that declares its path, or else for the other."""
        self.add_twin(evolve(DECLARED, service="twin", paths=frozenset({"/api"})))
        self.service.usual = whole()
        for target, action in (
            ("/api/items", "twin-tools"),
            ("/api?a=/b", "twin-tools"),
            ("/apis", "tracker-tools"),
            ("/%61pi/items", "tracker-tools"),
            ("/x?/api/", "tracker-tools"),
        ):
            self.ask("POST", target, caller=ToolCaller(len(target), 1, "curl"))
            self.assertEqual(action, self.runs()[-1].action, target)

    def test_not_opened(self) -> None:
        """A service that the session did not open is not used, though it is at a host that the session opened."""
        self.add_twin(evolve(DECLARED, service="twin", paths=frozenset({"/api"})))
        self.ask("POST", "/api/items", services=frozenset({"tracker"}))
        self.assertEqual(["tracker-tools"], [each.action for each in self.runs()])
        answer = self.answered("POST", "/items", services=frozenset({"other"}))
        self.assertEqual(403, answer.status)
        self.assertEqual(1, len(self.runs()))

    def add_twin(self, declared: ToolDeclaration) -> None:
        """Add a service at the same host."""
        other = "local://test/twin"
        description = evolve(self.service.description, name=other, content_hash=digest(other), own_tools=declared)
        self.connectors.add(ScriptedConnector(description=description, clock=self.clock))
        self.believe_connectors()
        written = write_action(description, evolve(declared, service="twin"))
        self.write("twin-tools", written)
        self.runner.check_changes()
