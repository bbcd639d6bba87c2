"""How often a call is planned on its way to its effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import define, field
from twisted.internet.defer import Deferred

from aileron.base.json import JSON
from aileron.model.connectors import Request
from aileron.model.queries import RunQuery
from aileron.model.runs import RunState
from aileron.testing import ScriptedConnector

from .kit import RunnerCase, manifest, step
from .previewed import PreviewedCase


@define
class CountingConnector(ScriptedConnector):
    """Counts how often each operation is prepared."""

    prepared: Counter[str] = field(factory=Counter)

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Count it."""
        self.prepared[operation] += 1
        return super().prepare(operation, inputs, base_url, effect_key)


class PlannedTests(RunnerCase):
    """A gated call without a preview."""

    def setUp(self) -> None:
        """An action of two steps, on a connector that counts."""
        super().setUp()
        self.connector = self.counting = CountingConnector(clock=self.clock)
        self.connectors.add(self.counting)
        self.write("gated", manifest("gated", step("post", "first"), step("put", "second")))
        self.runner.check_changes()

    def test_each_moment(self) -> None:
        """Each step is prepared when the call is requested, shown, decided and begun, once each."""
        run = self.submit()
        self.assertEqual(self.counting.prepared, {"post": 1, "put": 1})
        approval = self.shown(run)
        self.runner.decisions.cards(approval)
        self.assertEqual(self.counting.prepared, {"post": 2, "put": 2})
        self.decide(run, approval.digest)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(self.counting.prepared, {"post": 4, "put": 4})

    def test_list(self) -> None:
        """The cards of a list need no further plan, unless a file was changed since."""
        runs = [self.submit(arguments={"text": str(number)}) for number in range(3)]
        approvals = self.sync(self.runner.decisions.approvals(RunQuery((RunState.PENDING,)))).items
        before = self.counting.prepared.total()
        for each in approvals:
            self.runner.decisions.cards(each)
        self.assertEqual((len(runs), self.counting.prepared.total()), (3, before))
        self.write("gated", manifest("gated", step("post", "first")))
        self.runner.check_changes()
        self.runner.decisions.cards(approvals[0])
        self.assertGreater(self.counting.prepared.total(), before)

    def test_denied(self) -> None:
        """A call that is denied is planned when it is requested, shown and denied."""
        run = self.submit()
        self.decide(run, self.shown(run).digest, approved=False)
        self.assertEqual(self.counting.prepared, {"post": 3, "put": 3})

    def test_ungated(self) -> None:
        """A call that needs no approval is planned once."""
        self.write("open", manifest("open", step("post"), gated=False))
        self.submit("open")
        self.assertEqual(self.counting.prepared, {"post": 1})


class PreviewedTests(PreviewedCase):
    """A gated call with a preview."""

    def setUp(self) -> None:
        """A connector that counts."""
        super().setUp()
        self.connector = self.counting = CountingConnector(self.connector.description, clock=self.clock)
        self.connectors.add(self.counting)
        self.show()
        self.runner.check_changes()

    def test_each_moment(self) -> None:
        """A step is also prepared when the preview arrives, and before the preview is fetched for the decision."""
        run = self.submit()
        self.decide(run, self.shown(run).digest)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(self.counting.prepared["post"], 6)

    def test_tied(self) -> None:
        """A step that takes a value from the preview is prepared for each preview."""
        run = self.submit("tied")
        self.decide(run, self.shown(run).digest)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(self.counting.prepared["tie"], 6)


class ChangedTests(RunnerCase):
    """What changes after the run was looked at and before its effect."""

    def test_changed_while_credentials_are_renewed(self) -> None:
        """The plan that runs is made right before the effect: a file that changed meanwhile is asked about again."""
        renewing: Deferred[None] = Deferred()
        self.patch(type(self.runner.submission._executor), "make_ready", lambda executor, outline, owner: renewing)
        run = self.submit()
        self.approve(run)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.write("gated", manifest("gated", step("put")))
        renewing.callback(None)
        self.assertIs(self.state(run), RunState.PENDING)
        self.assertEqual(self.connector.sendings, [])
