"""The home page: what waits and runs, outcomes of the last day, what needs attention, and the steps of the setup."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.audit import CommitObserver, KeyFile
from aileron.base.json import JSON, utc
from aileron.base.load_error import LoadError
from aileron.base.text import visible
from aileron.features import FeatureSet, RunningFeatures
from aileron.model.audit import Actor, Event
from aileron.model.runs import RunState
from aileron.model.trust import TrustKind
from aileron.model.vault import BindingFlag
from aileron.testing import MemoryBindings, MemoryConnectors, example_signer, memory_store, new_binding, scripted_offer
from tests.api.case import NOW
from tests.web.case import Reading, WebCase, notifying, read

HOSTILE = "<b onclick=x>\u202e</b>"
OPERATOR = Actor("human", "operator-1")


class HomeCase(WebCase):
    """C{/home}."""

    def home(self) -> Reading:
        """The page, read."""
        heard = self.fragment("/home")
        self.assertEqual(heard.status, 200, heard.text)
        return read(heard.text)

    def links(self) -> list[str]:
        """Where it leads."""
        return [attributes["href"] for tag, attributes in self.home().tags if tag == "a"]

    def wait_for(self, coroutine: Any) -> Any:
        """What it comes to, which it must at once."""
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def record(self, run_id: str, kind: str, hours: float = 1, **payload: JSON) -> None:
        """Put it on record, some hours ago."""
        at = utc(NOW) - timedelta(hours=hours)
        self.wait_for(self.store.audit.append(Event(self.fresh_id(), kind, at, OPERATOR, payload, run_id)))


class WorkTests(HomeCase):
    """What waits, and what runs."""

    def test_empty(self) -> None:
        """Where nothing waits and nothing runs, sentences say so."""
        text = self.home().text
        self.assertIn("/history", self.links())
        for words in ("Nothing is waiting for you.", "Nothing is running.", "No active sessions", "Last 24 hours"):
            self.assertIn(words, text)

    def test_pending(self) -> None:
        """All that wait are counted, and the first few lead to their pages, each with who asks."""
        session = self.agent(agent=HOSTILE)
        runs = [self.ask(session=session) for _ in range(6)] + [self.ask()]
        shown = self.home()
        self.assertEqual(self.sessions.asked, [session.id])
        self.assertIn("7 pending approvals", shown.text)
        self.assertIn(f"Requested by {visible(HOSTILE)}", shown.text)
        self.assertIn("Requested by you", shown.text)
        listed = [each for each in self.links() if each.startswith("/approvals/")]
        self.assertEqual(len(listed), 5)
        self.assertLessEqual(set(listed), {f"/approvals/{run.id}" for run in runs})
        self.assertEqual(shown.tags[0][1]["data-said"], "Pending approvals: 7.")

    def test_snoozed(self) -> None:
        """Neither the page nor the badge counts what is snoozed, and the page lists only what is not, by its title."""
        first, second = self.ask("Dark mode"), self.ask("Light mode")
        self.runner.finish(second.id, RunState.PENDING, title="Post to #general: Light mode")
        self.wait_for(self.store.snoozes.put(first.id, utc(NOW) + timedelta(hours=1), ()))
        heard = self.fragment("/home")
        self.assertEqual(heard.headers["x-aileron-waiting"], "1")
        shown = read(heard.text)
        self.assertIn("1 pending approval", shown.text)
        self.assertIn("Post to #general: Light mode", shown.text)
        self.assertEqual([each for each in self.links() if each.startswith("/approvals/")], [f"/approvals/{second.id}"])

    def test_running(self) -> None:
        """What was approved and has not ended is listed with its state; active sessions are counted."""
        self.agent()
        runs = [self.runner.finish(self.ask().id, state) for state in (RunState.EXECUTING, RunState.APPROVED)]
        self.runner.finish(self.ask().id, RunState.COMPLETED)
        shown = self.home()
        self.assertEqual({each for each in self.links() if each.startswith("/runs/")}, {f"/runs/{r.id}" for r in runs})
        for words in ("Running", "Approved, not started", "1 active session"):
            self.assertIn(words, shown.text)


class OutcomeTests(HomeCase):
    """The counts of the last day."""

    def counts(self) -> dict[str, str]:
        """The number of each state, by where it leads."""
        numbers, here = {}, ""
        for part in self.fragment("/home").text.split("<a ")[1:]:
            here = part.partition('href="')[2].partition('"')[0]
            if here.startswith("/runs?state=") and "<strong>" in part:
                numbers[here.removeprefix("/runs?state=")] = part.partition("<strong>")[2].partition("<")[0]
        return numbers

    def test_counted(self) -> None:
        """Runs that ended within a day are counted by how, and what is older is not."""
        self.assertEqual(set(self.counts().values()), {"0"})
        for number, kind in enumerate(("execution.succeeded", "execution.succeeded", "approval.denied")):
            self.record(f"run-{number}", kind)
        self.record("run-3", "execution.failed", 23)
        self.record("run-4", "execution.failed", 25)
        self.assertEqual(self.counts(), {"completed": "2", "failed": "1", "denied": "1", "unknown": "0"})

    def test_found_out(self) -> None:
        """A run counts once, as what is known of it last; what an answer left open is unknown still."""
        for number in range(5):
            self.record(f"run-{number}", "execution.unknown", 3)
        self.record("run-0", "run.settled", 2, happened=True)
        self.record("run-1", "execution.reconciled", 2, happened=False, last=True)
        self.record("run-2", "execution.late_answer", 2, happened=True, last=False)
        self.record("run-3", "execution.reconciled", 2, happened=None)
        self.assertEqual(self.counts(), {"completed": "1", "failed": "1", "denied": "0", "unknown": "3"})


class AttentionTests(HomeCase):
    """What needs the operator."""

    def test_nothing(self) -> None:
        """Where nothing does, nothing is said."""
        self.assertNotIn("Needs attention", self.home().text)

    def test_tampering(self) -> None:
        """Signs of tampering lead to their records."""
        observer = CommitObserver(KeyFile(Path(self.mktemp())))
        self.store = memory_store(self, self.clock, observer=observer)
        signer = example_signer(self.store, self.record_keys, self.control, self.clock, observer)
        self.build(signer=signer, audit=self.store.audit)
        self.assertNotIn("tampering", self.home().text)
        self.record("run-1", "tamper.detected")
        self.assertIn("Signs of tampering were found.", self.home().text)
        self.assertIn("/audit?type=tamper.detected", self.links())

    def test_credentials(self) -> None:
        """A credential with a warning, or that fits nothing, leads to where it is told, until it is bound anew."""
        bindings = cast("MemoryBindings", self.deps.bindings)
        bindings.add(new_binding())
        self.assertIn("1 credential needs your attention.", self.home().text)
        self.wait_for(bindings.revoke(bindings.list()[0].name))
        bound = bindings.add(evolve(new_binding(), connector="local://test/scripted", scope=None))
        self.wait_for(self.deps.flags.put(BindingFlag(bound.name, bound.revision, utc(NOW), "It came back."), ()))
        self.assertIn("1 credential needs your attention.", self.home().text)
        self.assertIn("/connectors", self.links())
        self.wait_for(self.deps.flags.put(BindingFlag(bound.name, bound.revision + 1, utc(NOW), "It came back."), ()))
        self.assertNotIn("attention", self.home().text)

    def test_paused(self) -> None:
        """That everything is paused, or a session, is said."""
        self.wait_for(self.runner.pause(None, None, OPERATOR))
        self.assertIn("Everything is paused. Nothing starts until you resume.", self.home().text)
        self.wait_for(self.runner.pause("session-1", None, OPERATOR))
        self.assertIn("1 session is paused.", self.home().text)
        self.assertIn("/sessions?live=yes", self.links())

    def test_unknown(self) -> None:
        """Runs whose outcome nobody knows are counted, as far as one looks."""
        for _ in range(2):
            self.runner.finish(self.ask().id, RunState.UNKNOWN)
        self.assertIn("2 runs have an unknown outcome.", self.home().text)
        self.assertIn("/runs?state=unknown", self.links())
        for _ in range(4):
            self.runner.finish(self.ask().id, RunState.UNKNOWN)
        self.assertIn("More than 5 runs have an unknown outcome.", self.home().text)

    def test_files(self) -> None:
        """New and changed files lead to where they are trusted; one with errors, to these, and is told once."""
        new = self.runner.put_file(TrustKind.ACTION, "new", "x")
        known = self.runner.put_file(TrustKind.ACTION, "known", "x")
        self.wait_for(self.runner.trust([(known.kind, known.name, known.digest)], OPERATOR))
        self.runner.put_file(TrustKind.ACTION, "known", "y")
        errors = [
            LoadError("untrusted", "x", new.path),
            LoadError("parse_error", "x", "bad.md"),
            LoadError("x", "y", "bad.md"),
        ]
        self.runner.offer(scripted_offer(), load_errors=errors)
        text = self.home().text
        for words in (
            "1 file changed since you trusted it. Not active until you trust it again.",
            "1 new file is not active until you trust it.",
            "1 file could not be loaded.",
        ):
            self.assertIn(words, text)
        self.assertLessEqual({"/trust", "/actions"}, set(self.links()))

    def test_notifications(self) -> None:
        """A channel that fails is named."""
        self.build(features=notifying(HOSTILE))
        self.assertIn(f"Notifications are failing: {visible(HOSTILE)}.", self.home().text)


class SetupTests(HomeCase):
    """The steps of a new user."""

    def done(self) -> int:
        """How many steps are done."""
        return sum(attributes.get("class") == "done" for tag, attributes in self.home().tags if tag == "li")

    def test_new(self) -> None:
        """Each step that is not done names its command or page, and is done as soon as it is."""
        self.runner.offer()
        self.build(connectors=MemoryConnectors.of([]))
        text = self.home().text
        for command in ("aileron setup", "aileron launch claude"):
            self.assertIn(command, text)
        self.build(connectors=MemoryConnectors.of([]), features=RunningFeatures(FeatureSet().without("setup")))
        without = self.home().text
        self.assertEqual(("aileron setup" in without, "aileron action add FILE" in without), (False, True))
        self.build(connectors=MemoryConnectors.of([]), features=RunningFeatures(FeatureSet().without("launch")))
        without = self.home().text
        self.assertEqual(("aileron launch" in without, "aileron mcp config CLIENT" in without), (False, True))
        self.build(connectors=MemoryConnectors.of([]))
        self.assertIn("/connectors", self.links())
        self.assertNotIn("vault init", text)
        self.assertEqual(self.done(), 1)
        self.build(connectors=MemoryConnectors.of([self.connector]))
        self.assertEqual(self.done(), 2)
        cast("MemoryBindings", self.deps.bindings).add(new_binding())
        self.assertEqual(self.done(), 3)
        self.runner.offer(scripted_offer())
        self.assertEqual(self.done(), 4)
        session = self.agent()
        self.assertEqual(self.done(), 5)
        run = self.ask(session=session)
        self.assertEqual(self.done(), 5)
        self.runner.finish(run.id, RunState.DENIED)
        self.assertIn("Get started", self.home().text)

    def test_over(self) -> None:
        """Once a call was approved the steps are gone."""
        self.assertIn("Get started", self.home().text)
        self.runner.finish(self.ask().id, RunState.EXECUTING)
        self.assertNotIn("Get started", self.home().text)
