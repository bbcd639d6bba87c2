"""Asks: recorded, listed, answered and closed."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred

from aileron.features.prompts._asks import MOST_BYTES, MOST_PER_MINUTE, MOST_WAITING, MOST_WAITING_OF_SESSION
from aileron.features.prompts.values import NO_DECISION, AskAnswer, AskState, HookCall, HookEvent, HookReply, ReplyKind
from aileron.model.audit import Event
from aileron.model.errors import Conflict, InvalidRequest, NotFound, StoreUnavailable
from tests.features.prompts.case import OPERATOR, URL, AsksCase, bash, rule, without_project
from tests.features.prompts.test_calls import SECRET

_ALLOWED = HookReply(ReplyKind.ALLOW)


class SlowAudit:
    """An audit log whose writes end when a test says so."""

    def __init__(self) -> None:
        self.writes: list[Deferred[None]] = []
        self.types: list[str] = []

    async def append(self, *events: Event) -> None:
        """Write later."""
        self.types += [each.type for each in events]
        write: Deferred[None] = Deferred()
        self.writes.append(write)
        await write


class FailingAudit:
    """An audit log that cannot be written."""

    async def append(self, *events: Event) -> None:
        """Fail."""
        raise StoreUnavailable("The disk is full.")


class AnswerTests(AsksCase):
    """What the operator answers."""

    def test_once(self) -> None:
        """A call waits until it is allowed, and is on record before and after; the next waits again."""
        reply = self.ask(bash("npm test"))
        self.assertNoResult(reply)
        ask = self.only()
        self.assertEqual((ask.state, ask.tool, ask.text), (AskState.WAITING, "Bash", "npm test"))
        self.assertEqual(self.asks.count_waiting(), 1)
        self.assertEqual(self.answer(ask.id, AskAnswer.ONCE).state, AskState.ALLOWED)
        self.assertEqual(self.successResultOf(reply), _ALLOWED)
        self.assertEqual(self.types(), ["ask.requested", "ask.allowed"])
        self.assertEqual(self.records()[1][1]["text"], "npm test")
        self.assertEqual(self.asks.count_waiting(), 0)
        self.assertNoResult(self.ask(bash("npm test")))

    def test_deny(self) -> None:
        """A denial reaches the agent with its reason."""
        reply = self.ask(bash("rm x"))
        self.answer(self.only().id, AskAnswer.DENY, reason="Use git rm.")
        self.assertEqual(self.successResultOf(reply), HookReply(ReplyKind.DENY, "Use git rm."))
        self.assertEqual(self.records()[-1][1]["reason"], "Use git rm.")

    def test_session(self) -> None:
        """What is allowed for a session is allowed there alone, by the pattern that was chosen."""
        reply = self.ask(bash("npm test a"))
        self.answer(self.only().id, AskAnswer.SESSION, pattern="Bash(npm test *)")
        self.assertEqual(self.successResultOf(reply), _ALLOWED)
        self.assertEqual(self.replied(bash("npm test b")), _ALLOWED)
        self.assertEqual(self.records()[-1][1]["pattern"], "Bash(npm test *)")
        self.assertNoResult(self.ask(bash("npm test b; rm x")))
        self.assertNoResult(self.ask(bash("npm test b"), "session-2"))
        self.asks.session_ended("session-1")
        self.assertNoResult(self.ask(bash("npm test b")))

    def test_wrong_pattern(self) -> None:
        """A pattern that does not cover the call allows nothing, and the call still waits."""
        reply = self.ask(bash("npm test a"))
        for pattern in ("Bash(npm run *)", "Read", "Bash(", "Bash(npm test)"):
            work = Deferred.fromCoroutine(
                self.asks.answer(self.only().id, AskAnswer.SESSION, OPERATOR, pattern=pattern)
            )
            self.failureResultOf(work, InvalidRequest)
        self.assertNoResult(reply)

    def test_twice(self) -> None:
        """The first answer counts."""
        self.ask(bash("npm test"))
        ask = self.only()
        self.answer(ask.id, AskAnswer.DENY)
        for ask_id, error in ((ask.id, Conflict), ("nobody", NotFound)):
            self.failureResultOf(Deferred.fromCoroutine(self.asks.answer(ask_id, AskAnswer.ONCE, OPERATOR)), error)
        self.assertEqual(self.types(), ["ask.requested", "ask.denied"])

    def test_answered_while_recorded(self) -> None:
        """While an answer is being recorded, no other counts; the agent hears it when it is on record."""
        audit = SlowAudit()
        self.use(audit=audit)
        reply = self.ask(bash("npm test"))
        self.assertEqual(self.asks.list(), ())
        audit.writes[0].callback(None)
        ask = self.only()
        first = Deferred.fromCoroutine(self.asks.answer(ask.id, AskAnswer.ONCE, OPERATOR))
        self.failureResultOf(Deferred.fromCoroutine(self.asks.answer(ask.id, AskAnswer.DENY, OPERATOR)), Conflict)
        self.clock.advance(61)
        self.assertNoResult(reply)
        audit.writes[1].callback(None)
        self.successResultOf(first)
        self.assertEqual(self.successResultOf(reply), _ALLOWED)
        self.assertEqual(audit.types, ["ask.requested", "ask.allowed"])

    def test_not_recorded(self) -> None:
        """An answer that cannot be recorded is not given; if the time is over meanwhile, the agent asks itself."""
        audit = SlowAudit()
        self.use(audit=audit)
        reply = self.ask(bash("npm test"))
        audit.writes[0].callback(None)
        for _ in range(2):
            answered = Deferred.fromCoroutine(self.asks.answer(self.only().id, AskAnswer.ONCE, OPERATOR))
            audit.writes[-1].errback(StoreUnavailable("full"))
            self.failureResultOf(answered, StoreUnavailable)
            self.assertNoResult(reply)
        answered = Deferred.fromCoroutine(self.asks.answer(self.only().id, AskAnswer.ONCE, OPERATOR))
        self.clock.advance(61)
        audit.writes[-1].errback(StoreUnavailable("full"))
        self.failureResultOf(answered, StoreUnavailable)
        self.assertEqual(self.successResultOf(reply), NO_DECISION)

    def test_answer_given_up(self) -> None:
        """If it is unknown whether an answer is on record, the agent asks itself."""
        audit = SlowAudit()
        self.use(audit=audit)
        reply = self.ask(bash("npm test"))
        audit.writes[0].callback(None)
        answered = Deferred.fromCoroutine(self.asks.answer(self.only().id, AskAnswer.ONCE, OPERATOR))
        answered.cancel()
        self.failureResultOf(answered, CancelledError)
        self.assertEqual(self.successResultOf(reply), NO_DECISION)

    def test_no_audit_log(self) -> None:
        """Nothing is asked or allowed that cannot be recorded, and a rule denies all the same."""
        self.use(rule("allow", "Bash(npm test)"), rule("deny", "Bash(rm *)"), audit=FailingAudit())
        self.assertEqual(self.replied(bash("npm test")), NO_DECISION)
        self.assertEqual(self.replied(bash("ls")), NO_DECISION)
        self.assertEqual(self.replied(bash("rm x")).kind, ReplyKind.DENY)
        self.assertEqual(self.asks.count_waiting(), 0)


class CloseTests(AsksCase):
    """Asks that nobody answers here."""

    def test_expired(self) -> None:
        """After its time an ask is left to the terminal."""
        reply = self.ask(bash("npm test"))
        self.clock.advance(59)
        self.assertNoResult(reply)
        self.clock.advance(1)
        self.assertEqual(self.successResultOf(reply), NO_DECISION)
        self.assertEqual((self.only().state, self.types()[-1]), (AskState.EXPIRED, "ask.expired"))

    def test_withdrawn(self) -> None:
        """An agent that hangs up withdraws its ask, also before that is on record."""
        reply = self.ask(bash("npm test"))
        reply.cancel()
        self.failureResultOf(reply, CancelledError)
        self.assertEqual((self.only().state, self.types()[-1]), (AskState.WITHDRAWN, "ask.withdrawn"))
        audit = SlowAudit()
        self.use(audit=audit)
        reply = self.ask(bash("npm test"))
        reply.cancel()
        self.failureResultOf(reply, CancelledError)
        self.assertEqual((audit.types, self.asks.count_waiting()), (["ask.requested", "ask.withdrawn"], 0))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_session_ended(self) -> None:
        """The asks of a session end with it, and those of others stay."""
        reply, other = self.ask(bash("a")), self.ask(bash("b"), "session-2")
        self.asks.session_ended("session-1")
        self.asks.session_ended("session-1")
        self.assertEqual(self.successResultOf(reply), NO_DECISION)
        self.assertNoResult(other)

    def test_ended_while_recorded(self) -> None:
        """A session that ends before its ask is on record waits for nothing."""
        audit = SlowAudit()
        self.use(audit=audit)
        reply = self.ask(bash("a"))
        self.asks.session_ended("session-1")
        audit.writes[0].callback(None)
        self.assertEqual(self.successResultOf(reply), NO_DECISION)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stop(self) -> None:
        """When the daemon stops, agents ask in their terminals."""
        reply = self.ask(bash("a"))
        self.successResultOf(Deferred.fromCoroutine(self.asks.stop()))
        self.assertEqual(self.successResultOf(reply), NO_DECISION)
        self.assertEqual(self.types()[-1], "ask.withdrawn")

    def test_answered_in_terminal(self) -> None:
        """A call that ended was answered in the terminal: the oldest equal ask of that conversation is closed."""
        first, second, other = self.ask(bash("a")), self.ask(bash("a")), self.ask(bash("a", conversation="sub"))
        different = self.ask(bash("b"))
        self.assertEqual(self.replied(bash("a", HookEvent.SETTLED)), NO_DECISION)
        self.assertEqual(self.successResultOf(first), NO_DECISION)
        for each in (second, other, different):
            self.assertNoResult(each)
        self.assertEqual(self.types()[-1], "ask.answered_in_terminal")
        self.replied(HookCall(HookEvent.IDLE, conversation="talk"))
        self.successResultOf(second)
        self.successResultOf(different)
        self.assertNoResult(other)
        self.replied(bash("a", HookEvent.SETTLED, conversation="sub"), "session-2")
        self.assertNoResult(other)

    def test_off(self) -> None:
        """Without the inbox nothing is listed, and no rule answers."""
        self.use(rule("deny", "Bash"), inbox=False)
        self.assertEqual(self.replied(bash("a")), NO_DECISION)
        self.assertEqual(self.records(), [])

    def test_record_of_secrets(self) -> None:
        """A secret in a command is shown to the person, and not recorded."""
        self.ask(bash(f"curl -H 'X: {SECRET}' a.example"))
        self.assertIn(SECRET, self.only().text)
        self.answer(self.only().id, AskAnswer.DENY)
        self.assertNotIn(SECRET, str(self.records()))
        self.assertNotIn(SECRET, str(self.asks.list()))


class FloodTests(AsksCase):
    """More asks than anybody answers."""

    def test_session(self) -> None:
        """One session may have some asks; further calls are left to its terminal at once, which is recorded once."""
        for number in range(MOST_WAITING_OF_SESSION):
            self.assertNoResult(self.ask(bash(f"a {number}")))
        for _ in range(50):
            self.assertEqual(self.replied(bash("b")), NO_DECISION)
        self.assertEqual(self.types().count("ask.overflowed"), 1)
        self.assertEqual(len(self.records()), MOST_WAITING_OF_SESSION + 1)
        self.assertNoResult(self.ask(bash("c"), "session-2"))
        self.answer(self.asks.list()[0].id, AskAnswer.ONCE)
        self.assertNoResult(self.ask(bash("d")))

    def test_all(self) -> None:
        """All sessions together may have some more."""
        for number in range(MOST_WAITING):
            self.assertNoResult(self.ask(bash("a"), f"session-{number // 4}"))
        self.assertEqual(self.replied(bash("b"), "another"), NO_DECISION)

    def test_fast(self) -> None:
        """Calls that are allowed or withdrawn at once fill no audit log either; a minute later it goes on."""
        self.use(rule("allow", "Bash(a)"))
        replies = [self.replied(bash("a")) for _ in range(MOST_PER_MINUTE + 20)]
        self.assertEqual((replies.count(_ALLOWED), replies[-1]), (MOST_PER_MINUTE, NO_DECISION))
        self.clock.advance(61)
        self.assertEqual(self.replied(bash("a")), _ALLOWED)

    def test_large(self) -> None:
        """A call that could not be shown whole is left to the terminal."""
        self.assertEqual(self.replied(bash("a" * (MOST_BYTES + 1))), NO_DECISION)
        self.assertNoResult(self.ask(bash("a" * MOST_BYTES)))


class RulesTests(AsksCase):
    """What rules answer."""

    def test_order(self) -> None:
        """A denial wins over a question, and both over permission."""
        self.use(
            rule("allow", "Bash(git *)"),
            rule("ask", "Bash(git push *)"),
            rule("deny", "Bash(git push --force *)", reason="Never."),
        )
        self.assertEqual(self.replied(bash("git status")), _ALLOWED)
        self.assertEqual(self.records()[-1][1]["pattern"], "Bash(git *)")
        self.assertNoResult(self.ask(bash("git push origin")))
        self.assertEqual(self.replied(bash("git push --force x")), HookReply(ReplyKind.DENY, "Never."))
        self.assertEqual(self.types()[-1], "ask.denied")

    def test_session_after_denial(self) -> None:
        """What is allowed for a session is still denied by a rule."""
        reply = self.ask(bash("git push x"))
        self.answer(self.only().id, AskAnswer.SESSION, pattern="Bash(git push *)")
        self.successResultOf(reply)
        self.asks.settings = evolve(self.asks.settings, rules=(rule("deny", "Bash(git push --force *)"),))
        self.assertEqual(self.replied(bash("git push --force x")).kind, ReplyKind.DENY)

    def test_project(self) -> None:
        """A rule of a project allows where both the session and the call work there, and denies where one does."""
        self.use(rule("allow", "Bash(a)", "/home/me/shop"), rule("deny", "Bash(b)", "/home/me/shop/"))
        self.assertEqual(self.replied(bash("a")), _ALLOWED)
        self.assertNoResult(self.ask(without_project(bash("a"))))
        self.assertNoResult(self.ask(evolve(bash("a"), directory="/home/me/shop/../x")))
        self.assertNoResult(self.ask(evolve(bash("a"), directory="/home/me/shopping")))
        self.assertEqual(self.replied(without_project(bash("b"))).kind, ReplyKind.DENY)


class ChecksTests(AsksCase):
    """Calls for which an agent does not ask."""

    def check(self, command: str, *, dialog: bool = False) -> Any:
        """Begin a call."""
        return self.ask(bash(command, HookEvent.CHECKS, shows_dialog=dialog))

    def setUp(self) -> None:
        super().setUp()
        self.use(rule("allow", "Bash(ls)"), rule("ask", "Bash(git push *)"), rule("deny", "Bash(rm *)"))

    def test_rules(self) -> None:
        """Only rules that ask or deny apply; without one there is no decision and no record."""
        for command in ("ls", "make"):
            self.assertEqual(self.successResultOf(self.check(command)), NO_DECISION)
        self.assertEqual(self.records(), [])
        self.assertEqual(self.successResultOf(self.check("rm x")).kind, ReplyKind.DENY)

    def test_own_dialog(self) -> None:
        """An agent that has a dialog shows it, and asks by its other hook."""
        self.assertEqual(self.successResultOf(self.check("git push x", dialog=True)), HookReply(ReplyKind.ASK))
        self.assertEqual(self.records(), [])

    def test_asked(self) -> None:
        """Of an agent without a dialog the operator is asked."""
        reply = self.check("git push x")
        self.answer(self.only().id, AskAnswer.ONCE)
        self.assertEqual(self.successResultOf(reply), _ALLOWED)

    def test_nobody_answers(self) -> None:
        """If nobody answers, a call that a rule asks about does not run, whatever the reason is."""
        late = self.check("git push x")
        self.clock.advance(60)
        self.assertEqual(self.successResultOf(late), HookReply(ReplyKind.DENY, "Nobody answered in time."))
        for _ in range(MOST_WAITING_OF_SESSION):
            self.check("git push x")
        self.assertEqual(self.successResultOf(self.check("git push x")).kind, ReplyKind.DENY)
        self.use(rule("ask", "Bash(git push *)"), audit=FailingAudit())
        self.assertEqual(self.successResultOf(self.check("git push x")).kind, ReplyKind.DENY)


class QuestionTests(AsksCase):
    """Questions of tool servers."""

    def question(self, server: str = "aileron", **given: str) -> HookReply:
        """The reply to a question."""
        asked = {"mode": "url", "url": f"{URL}/approvals/1", **given}
        return self.replied(HookCall(HookEvent.QUESTION, server, asked))

    def test_own(self) -> None:
        """Our own question for one of our own pages is answered, and nothing else is."""
        self.assertEqual(self.question(), _ALLOWED)
        self.assertEqual(self.question("other"), NO_DECISION)
        self.assertEqual(self.question(mode="form"), NO_DECISION)
        for url in ("https://evil.example/", f"{URL}.evil.example/", f"{URL}evil", ""):
            self.assertEqual(self.question(url=url), NO_DECISION)
        self.assertEqual(self.records(), [])
