"""What the tests of previews share: an action that shows the service's side, and a write that is tied to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.converter import to_json
from aileron.base.json import JSON
from aileron.model.connectors import WRITE, Operation, Outcome
from aileron.model.runs import Run, RunState
from aileron.testing import ScriptedConnector, scripted_description
from aileron.testing._connectors import Answer

from .kit import RunnerCase, manifest, step

PREVIEW = """
[approval.preview]
op = "look"
args = { text = "${args.text}" }
render = { Subject = "subject", To = "headers.To", "The text" = "body" }
multiline = ["The text"]
"""
MAIL: Mapping[str, JSON] = {
    "subject": "Hello",
    "headers": [{"name": "To", "value": "ann@example.org"}],
    "body": "one\ntwo",
    "etag": "v1",
}
TIED = step("tie", inputs='text = "${args.text}", if_match = "${preview.etag}"')


class PreviewedCase(RunnerCase):
    """An action C{gated} whose preview reads a mail; C{tied} writes it only where it is still that one."""

    def setUp(self) -> None:
        """The service shows C{MAIL}."""
        super().setUp()
        tie = Operation("tie", WRITE, idempotent=False, precondition=("if_match",))
        usual = scripted_description().operations
        description = evolve(scripted_description(), operations={**usual, "tie": tie})
        self.connector = ScriptedConnector(description, clock=self.clock)
        self.connectors.add(self.connector)
        self.write("gated", manifest("gated", step("post"), expires=PREVIEW))
        tied = manifest("tied", TIED, expires=PREVIEW).replace('"put"]', '"put", "tie"]')
        self.write("tied", tied)
        self.show()
        self.runner.check_changes()

    def show(self, **changed: JSON) -> None:
        """Have the service show the mail, changed."""
        self.answer(Outcome({**MAIL, **changed}))

    def answer(self, answer: Answer) -> None:
        """Have the service answer so from now on."""
        self.connector.shows["look"] = lambda: answer

    def say_nothing(self) -> None:
        """Have the service answer no more."""
        self.connector.shows["look"] = Deferred

    def between(self) -> tuple[Run, Deferred[Outcome]]:
        """A run that is approved, and the answer that is waited for before it begins."""
        run = self.submit()
        digest, mail, late = self.shown(run).digest, Outcome(MAIL), Deferred[Outcome]()
        del self.connector.shows["look"]
        self.connector.script = [mail, late]
        self.decide(run, digest)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.show()
        return run, late

    def preview(self, run: Run) -> Any:
        """Its preview."""
        preview = self.shown(run).review.preview
        assert preview is not None
        return to_json(preview)

    def looks(self) -> int:
        """How many times the service was asked to show something."""
        return len([each for each in self.connector.sendings if each.request.operation == "look"])

    def effects(self) -> list[str]:
        """The operations that were carried out."""
        return [each.request.operation for each in self.connector.sendings if each.method == "invoke"]
