"""Requests of agents' own tools are shown as the declared operations that they were recognised as."""

from __future__ import annotations

from attrs import evolve

from aileron.base.json import JSON
from aileron.model.connectors import WRITE, Operation, Presentation
from aileron.model.reviews import Card
from aileron.model.runs import Run
from aileron.model.tool_claims import NewClaim
from aileron.testing import MemoryConnectors

from .tools import ACTION, MANIFEST, WRITES, ToolsCase

_DECLARED = Operation(
    "create",
    WRITE,
    idempotent=False,
    presentation=Presentation("issue", {"title": ("title",), "body": ("target",)}, ("Open issue ${in.title}",)),
)
_TITLES = ("GraphQL mutation ${in.mutation} at ${in.target}", "Send ${in.target}")
_INPUT = """[[inputs]]
name = "recognised"
type = "object"
description = "How"

[[execute]]"""


class ToolCardTests(ToolsCase):
    """Titles and cards of forwarded requests."""

    manifest = MANIFEST.replace("[[execute]]", _INPUT).replace(
        '"${args.target}" }', '"${args.target}", recognised = "${args.recognised}" }'
    )

    def setUp(self) -> None:
        super().setUp()
        shown = evolve(WRITES, presentation=Presentation("request", {}, _TITLES))
        operations = {**self.service.describe().operations, "forward": shown, "create": _DECLARED}
        self.service.description = evolve(self.service.describe(), operations=operations)
        self.connectors = MemoryConnectors.of([self.connector, self.service])
        self.restart()

    def submit(self, **recognised: JSON) -> Run:
        """Request what a tool wrote, recognised so."""
        call = self.call(ACTION, {"target": "/x", "recognised": recognised})
        return self.sync(self.runner.submission.submit(evolve(call, claim=NewClaim("form", 1))))

    def title(self, run: Run) -> str:
        """Return the title of a run's review."""
        return self.shown(run).review.title

    def test_declared(self) -> None:
        """A request that is a declared operation has its title and its card, with the inputs read back alone."""
        run = self.submit(operation="create", inputs={"title": "Crash"})
        self.assertEqual(self.title(run), "Open issue Crash")
        self.assertEqual(
            self.runner.decisions.cards(self.shown(run)), (Card("forward", "issue", (("title", ("Crash",)),)),)
        )

    def test_mutation(self) -> None:
        """A GraphQL mutation is named by its fields, and has no card."""
        run = self.submit(protocol="graphql", fields=["closeIssue", "addStar"])
        self.assertEqual(self.title(run), "GraphQL mutation closeIssue, addStar at /x")
        self.assertEqual(self.runner.decisions.cards(self.shown(run)), ())

    def test_raw(self) -> None:
        """A raw request, and one of an operation that is not declared, is shown as it is sent."""
        for recognised in ({"protocol": "rest"}, {"operation": "gone", "inputs": {"title": "Crash"}}):
            run = self.submit(**recognised)
            self.assertEqual(self.title(run), "Send /x")
            self.assertEqual(self.runner.decisions.cards(self.shown(run)), ())

    def test_incomplete(self) -> None:
        """If the title of the operation lacks an input, the request has the title of any other."""
        self.assertEqual(self.title(self.submit(operation="create", inputs={"body": "Text"})), "Send /x")
