"""A rule is tried on the prompts of the past."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.features.prompts.trying import MOST_TRIED, RuleTrial, try_rule
from aileron.features.prompts.values import HookCall, HookEvent
from tests.features.prompts.case import AsksCase, bash, rule, without_project
from tests.features.prompts.test_calls import SECRET


class TrialTests(AsksCase):
    """What would have been answered."""

    def tried(self, answer: str, words: str, project: str = "") -> RuleTrial:
        """Try a rule."""
        return self.successResultOf(Deferred.fromCoroutine(try_rule(self.store.audit, rule(answer, words, project))))

    def asked(self, *calls: HookCall) -> None:
        """Have an agent ask for these, one after another."""
        for call in calls:
            self.ask(call).addErrback(lambda _: None).cancel()

    def test_answered(self) -> None:
        """The prompts that the rule covers are shown, newest first, with how many it was tried on."""
        self.asked(bash("npm test a"), bash("npm test b; rm x"), bash("ls"), bash("npm test"))
        trial = self.tried("allow", "Bash(npm test *)")
        self.assertEqual((trial.rule, trial.tried, trial.unknown), ("Bash(npm test *)", 4, 0))
        self.assertEqual([each.text for each in trial.answered], ["npm test", "npm test a"])
        self.assertEqual([each.text for each in self.tried("deny", "Bash(rm *)").answered], ["npm test b; rm x"])

    def test_not_whole(self) -> None:
        """What the record has only in part is counted, and not compared."""
        self.asked(bash("npm test " + "a" * 2000), bash(f"npm test --token={SECRET}"), bash("npm test"))
        trial = self.tried("allow", "Bash(npm test*)")
        self.assertEqual((trial.tried, trial.unknown, len(trial.answered)), (3, 2, 1))

    def test_further_input(self) -> None:
        """What the model says of a call is no obstacle; a member that changes the call is."""
        for more in ({"description": "x"}, {"dangerouslyDisableSandbox": True}):
            self.asked(HookCall(HookEvent.ASKS, "Bash", {"command": "npm test", **more}))
        trial = self.tried("allow", "Bash(npm test*)")
        self.assertEqual((trial.tried, trial.unknown, len(trial.answered)), (2, 1, 1))

    def test_files(self) -> None:
        """A change of a file is compared by its path, and another call by its tool."""
        given = {"file_path": "/src/a.py", "content": "x"}
        self.asked(HookCall(HookEvent.ASKS, "Write", given), HookCall(HookEvent.ASKS, "Search", {"query": "x"}))
        self.assertEqual(len(self.tried("allow", "Write(/src/*)").answered), 1)
        self.assertEqual(len(self.tried("allow", "Write(/etc/*)").answered), 0)
        self.assertEqual(len(self.tried("allow", "Search").answered), 1)

    def test_project(self) -> None:
        """A rule of a project is tried on the prompts there."""
        self.asked(bash("a"), without_project(bash("a")))
        self.assertEqual(len(self.tried("allow", "Bash(a)", "/home/me/shop").answered), 1)

    def test_newest(self) -> None:
        """Only the newest are looked at."""
        self.asked(*(bash(f"a {number}") for number in range(MOST_TRIED + 5)))
        self.assertEqual(self.tried("allow", "Bash(a *)").tried, MOST_TRIED)
