"""How an agent that has ended is resumed: with which options, how often, and when that ends."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.converter import to_json
from aileron.client import Daemon, DaemonClient
from aileron.features.launch.agents import find_agents
from aileron.features.launch.resuming import GRACE_SECONDS, WAIT_SECONDS, Resumer, Resumption
from aileron.model.errors import InvalidRequest
from aileron.model.faults import Fault
from tests.scripted_site import ScriptedSite

RESUMPTION = Resumption(
    flags=frozenset(("--loud",)),
    options=frozenset(("--model", "-m")),
    joined=frozenset(("--deny",)),
    flags_replaced=frozenset(("-p",)),
    options_replaced=frozenset(("--resume",)),
    arguments=lambda kept, conversation, message: (*kept, "-p", "--resume", conversation, message),
)
OUTCOME = {"run_id": "R", "action": "ship-update", "state": "completed", "message": "It is done."}


class ResumptionTests(SynchronousTestCase):
    """Which options are kept."""

    def test_kept(self) -> None:
        """What is known is kept in its notation, the prompt and the conversation are replaced."""
        for given, kept in (
            (("-p", "do it"), ()),
            (("--model", "x", "do it", "--loud"), ("--model", "x", "--loud")),
            (("--model=x", "--deny=a,b", "--resume", "c-0"), ("--model=x", "--deny=a,b")),
            (("--resume", "-m", "x", "--resume=c-0"), ("-m", "x")),
            (("--loud", "--", "--unknown"), ("--loud",)),
        ):
            self.assertEqual(RESUMPTION.keep(given), kept, given)

    def test_unknown(self) -> None:
        """An option that is not known, or may have several values, is refused with what to do."""
        for given in (("--readonly",), ("--deny", "a", "b"), ("-x", "do it"), ("--loud=yes",), ("-mx",)):
            error = self.assertRaises(InvalidRequest, RESUMPTION.keep, given)
            self.assertIn("Leave out --wake", str(error))
            self.assertIn("nothing was started", str(error))

    def test_agents(self) -> None:
        """Each agent that can be resumed gets the conversation and the message, and nothing that chooses another."""
        for name, arguments in (
            ("claude", ("-p", "--output-format", "json", "--verbose", "do it")),
            ("opencode", ("run", "--title", "t", "--format", "json", "do it")),
            ("pi", ("--print", "do it")),
        ):
            resumption = find_agents()[name].resumption
            assert resumption is not None
            again = resumption.arguments(resumption.keep(arguments), "c-1", "It is done.")
            self.assertEqual(again[-2:], ("c-1", "It is done."))
            self.assertNotIn("do it", again)
            self.assertEqual(resumption.keep(again[:-2]), resumption.keep(arguments))


class ResumerTests(SynchronousTestCase):
    """Waiting after the agent's end, by hand."""

    def setUp(self) -> None:
        self.site, self.clock = ScriptedSite(), Clock()
        self.said: list[str] = []
        self.ran: list[tuple[str, ...]] = []
        self.goes_on = True
        resumer = Resumer("pi", RESUMPTION, ("--loud",), self.run_agent, self.said.append, self.clock)
        daemon = Daemon(DaemonClient(self.site.agent, "http://127.0.0.1:9", "ail_a_secret", self.clock))
        self.resuming = Deferred.fromCoroutine(resumer.resume(daemon))

    async def run_agent(self, arguments: tuple[str, ...]) -> bool:
        """Run it."""
        self.ran.append(arguments)
        return self.goes_on

    def reply(self, outcome: object = None, *, waiting: bool = False, conversation: str = "c-1", left: int = 2) -> None:
        """Have the daemon reply."""
        said = {"waiting": waiting, "outcome": outcome, "conversation": conversation, "resumes_left": left}
        self.site.answer(200, said)

    def test_resumed(self) -> None:
        """It is said once that the launch goes on; each outcome runs the agent, until nothing can come."""
        self.assertEqual(self.site.asked[-1].body, {"resume": True, "wait": 0.0})
        self.reply(waiting=True)
        self.assertEqual(self.site.asked[-1].body, {"resume": True, "wait": WAIT_SECONDS})
        self.reply(waiting=True)
        self.assertEqual(len(self.said), 1)
        self.assertIn("Ctrl-C", self.said[0])
        self.reply(OUTCOME, waiting=True)
        self.assertEqual(self.ran, [("--loud", "-p", "--resume", "c-1", "It is done.")])
        self.reply()
        self.successResultOf(self.resuming)

    def test_nothing_pending(self) -> None:
        """Where nothing is pending it ends without a word."""
        self.reply()
        self.successResultOf(self.resuming)
        self.assertEqual((self.said, self.ran), ([], []))

    def test_used_up(self) -> None:
        """Where the daemon says that it is enough, so does the launch."""
        self.reply(left=0)
        self.successResultOf(self.resuming)
        self.assertIn("wake.most_resumes", self.said[0])

    def test_unknown_conversation(self) -> None:
        """Without a conversation nothing runs, and the outcome is said to the user."""
        self.reply(OUTCOME, conversation="")
        self.successResultOf(self.resuming)
        self.assertEqual((self.ran, self.said[0]), ([], "It is done."))

    def test_stopped(self) -> None:
        """A resumed agent that a signal ended is the last."""
        self.goes_on = False
        self.reply(OUTCOME, waiting=True)
        self.successResultOf(self.resuming)
        self.assertEqual(len(self.ran), 1)

    def test_refused(self) -> None:
        """A session that has ended ends the wait."""
        self.site.answer(401, {"error": to_json(Fault("unauthorized", "ended", "user"))})
        self.successResultOf(self.resuming)

    def test_daemon_away(self) -> None:
        """A daemon that restarts is waited for, one that stays away is given up."""
        self.site.hang_up()
        self.clock.advance(2)
        self.reply(waiting=True)
        for _ in range(round((GRACE_SECONDS + WAIT_SECONDS) / 2) + 2):
            if self.site.waiting:
                self.site.hang_up()
            self.clock.advance(2)
        self.successResultOf(self.resuming)
        self.assertEqual(self.ran, [])
