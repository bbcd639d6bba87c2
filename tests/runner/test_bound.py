"""Whatever changes between review and effect, the old decision is for nothing, and the change is shown."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from aileron.errors import ApprovalStale
from aileron.testing import ScriptedConnector, new_binding, scripted_description
from aileron.values import CredentialNeed, Decision, Run, RunState

from .kit import OPERATOR, RunnerCase, manifest, step

_INPUT = """
[[inputs]]
name = "style"
type = "string"
description = "How"
default = "plain"
"""
_STEP = step("post", inputs='text = "${args.text}", style = "${args.style}"')
_FILE = manifest("gated", _STEP, top="").replace("[[execute]]", f"{_INPUT}\n[[execute]]", 1)
_PLACES = "https://one.invalid", "https://two.invalid"


class BoundCase(RunnerCase):
    """A connector that needs a credential and lets a binding say where it is; an argument with a default.

    A test changes one thing; it is done before the decision, and between decision and effect.
    """

    def setUp(self) -> None:
        """Bind one account at one place."""
        super().setUp()
        need = CredentialNeed("api_key", "Authorization", "Bearer {key}")
        self.put(evolve(scripted_description(), credential=need, bindable=True))
        self.bind("one", _PLACES[0])
        self.write("gated", _FILE)
        self.runner.look()

    def put(self, description: object) -> None:
        """Have the connector be as described, and trusted."""
        self.connector = ScriptedConnector(description, clock=self.clock)  # type: ignore[arg-type]
        self.connectors.add(self.connector)
        self.believe_connectors()

    def bind(self, identity: str, base_url: str) -> None:
        """Have this account bound, there, and no other."""
        for binding in self.bindings.list():
            self.sync(self.bindings.revoke(binding.name))
        new = new_binding(identity=identity, connector="local://test/scripted")
        scope = self.connector.description.scope(base_url)
        self.bindings.add(evolve(new, base_url=base_url, scope=scope))

    def refuses(self, change: Callable[[BoundCase, Run], None], *paths: str) -> None:
        """Assert that a decision of before C{change} has no effect, whenever that comes, and that it is shown."""
        run = self.submit()
        digest = self.shown(run).digest
        change(self, run)
        self.fails(self.runner.decisions.decide(run.id, Decision(True, digest, OPERATOR.id)), ApprovalStale)
        self.asked_anew(run, digest, *paths)

    def asked_anew(self, run: Run, digest: str, *paths: str) -> None:
        """Assert that it waits, with another digest, nothing sent, and with just these differences."""
        self.assertIs(self.state(run), RunState.PENDING)
        shown = self.shown(run)
        self.assertNotEqual(shown.digest, digest)
        self.assertEqual((shown.approved, self.connector.effects()), (None, {}))
        self.assertIsNotNone(shown.stale)
        self.assertEqual({change.path for change in shown.changes}, set(paths))

    def between(self, change: Callable[[BoundCase, Run], None], *paths: str) -> None:
        """The same for a change after the decision."""
        run = self.submit()
        digest = self.shown(run).digest
        self.sync(self.runner.limits.hold())
        self.decide(run, digest)
        change(self, run)
        self.restart()
        self.asked_anew(run, digest, *paths)

    # what changes ----------------------------------------------------------------------------

    def arguments(self, run: Run) -> None:
        """The run's own row is written by somebody."""
        self.sql("UPDATE runs SET arguments = replace(arguments, 'hello', 'other') WHERE id = ?", run.id)

    def default(self, _: Run) -> None:
        """The action's file has another default."""
        self.write("gated", _FILE.replace('"plain"', '"bold"'))

    def file(self, _: Run) -> None:
        """The action's file says the same in other words."""
        self.write("gated", _FILE.replace("Says something.", "Says it."))

    def content(self, _: Run) -> None:
        """The connector has other bytes."""
        self.put(evolve(self.connector.description, content_hash="sha256:other"))

    def account(self, _: Run) -> None:
        """Another account is bound, in the same place."""
        self.bind("two", _PLACES[0])

    def address(self, _: Run) -> None:
        """The same account is bound for another place."""
        self.bind("one", _PLACES[1])


_BINDING = ("/steps/0/binding/name", "/steps/0/binding/revision")
_ADDRESS = ("/steps/0/base_url", "/steps/0/binding/base_url", "/steps/0/request/url", "/steps/0/binding/revision")


_CHANGES: tuple[tuple[Callable[[BoundCase, Run], None], tuple[str, ...]], ...] = (
    (BoundCase.arguments, ("/fields/0/value", "/steps/0/request/body")),
    (BoundCase.default, ("/manifest_digest",)),
    (BoundCase.file, ("/manifest_digest",)),
    (BoundCase.content, ("/steps/0/content_hash",)),
    (BoundCase.account, _BINDING),
    (BoundCase.address, _ADDRESS),
)
"""What may change, and the differences that are shown then."""


class ChangesTests(BoundCase):
    """Each change, in a home of its own."""

    def test_before_the_decision(self) -> None:
        """What changes between review and decision is another question."""
        for change, paths in _CHANGES:
            self.setUp()
            self.refuses(change, *paths)

    def test_before_the_effect(self) -> None:
        """What changes between decision and effect is asked anew."""
        for change, paths in _CHANGES:
            self.setUp()
            self.between(change, *paths)

    def test_nothing(self) -> None:
        """Where nothing changes the decision holds."""
        run = self.held()
        self.restart()
        self.assertIs(self.state(run), RunState.COMPLETED)
