"""What a step would send, as what its connector says that it is, and only of what was asked for."""

from __future__ import annotations

from attrs import evolve

from aileron.base.json import digest
from aileron.model.connectors import WRITE, ConnectorDescription, Operation, Presentation
from aileron.model.reviews import Card
from aileron.testing import scripted_description

from .kit import RunnerCase, step

HINT = Presentation("issue", {"repository": ("text", "times"), "number": ("times",), "title": ("text",)})


class CardsTests(RunnerCase):
    """The cards of an approval."""

    def setUp(self) -> None:
        """A connector that says what is what, and an action that writes words around its argument."""
        super().setUp()
        self.connector = evolve(self.connector, description=self.described(HINT))
        self.connectors.add(self.connector)
        self.believe_connectors()
        self.offer("gated", step("post", inputs='text = "Say: ${args.text}", times = "${args.times}"'))

    def described(self, hint: Presentation | None, content: str = "one") -> ConnectorDescription:
        """The connector's description, with this hint for its one operation that writes."""
        names = [Operation("look", "read", idempotent=True), Operation("put", WRITE, idempotent=True)]
        description = scripted_description(Operation("post", WRITE, idempotent=False, presentation=hint), *names)
        return evolve(description, content_hash=digest(content))

    def test_parts(self) -> None:
        """Parts hold what the operation is given, of its type; what was left out is left out."""
        run = self.submit(arguments={"text": "hi", "times": 3})
        parts = (("repository", ("Say: hi", 3)), ("number", (3,)), ("title", ("Say: hi",)))
        self.assertEqual(self.runner.decisions.cards(self.shown(run)), (Card("only", "issue", parts),))
        run = self.submit(arguments={"text": "hi"})
        fewer = (("repository", ("Say: hi",)), ("title", ("Say: hi",)))
        self.assertEqual(self.runner.decisions.cards(self.shown(run)), (Card("only", "issue", fewer),))

    def test_other_question(self) -> None:
        """What would be asked now is another question than the one that is shown: nothing is said of that."""
        approval = self.shown(self.submit())
        self.assertEqual(len(self.runner.decisions.cards(approval)), 1)
        self.assertEqual(self.runner.decisions.cards(evolve(approval, digest="sha256:other")), ())
        tampered = evolve(approval, run=evolve(approval.run, arguments={"text": "something else"}))
        self.assertEqual(self.runner.decisions.cards(tampered), ())
        self.connectors.remove(self.connector.describe().name)
        self.runner.check_changes()
        self.assertEqual(self.runner.decisions.cards(approval), ())

    def test_hint_binds_nothing(self) -> None:
        """The hint itself is under no digest but that of the connector's content."""
        approval = self.shown(self.submit())
        self.connectors.add(evolve(self.connector, description=self.described(None)))
        self.assertEqual(self.shown(approval.run).digest, approval.digest)
        self.assertEqual(self.runner.decisions.cards(approval), ())
