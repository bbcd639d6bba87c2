"""A runner with an action by which agents' own tools use a service."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from aileron.base.json import JSON, digest
from aileron.model.connectors import FORWARD, FORWARD_READ, READ, WRITE, Operation
from aileron.model.own_tools import ToolDeclaration
from aileron.testing import MemoryConnectors, ScriptedConnector
from aileron.testing._connectors import scripted_description

from .kit import RunnerCase

FQN = "local://test/tools"
ACTION = "tracker-tools"
MANIFEST = f"""+++
name = "{ACTION}"
version = "1.0.0"

[[requires.connectors]]
name = "{FQN}"
version = "1.0.0"
capabilities = ["forward"]

[[inputs]]
name = "target"
type = "string"
description = "Where"

[[execute]]
id = "forward"
connector = "{FQN}"
op = "forward"
inputs = {{ target = "${{args.target}}" }}

[approval]
required = true
+++
Forwards what a tool wrote.
"""
WRITES = Operation(FORWARD, WRITE, idempotent=False, needs_approval="it is a tool's", tools_only=True)
READS = Operation(FORWARD_READ, READ, idempotent=True, needs_approval="it is a tool's", tools_only=True)
DECLARED = ToolDeclaration(
    "tracker",
    ("scripted.invalid",),
    {"TRACKER_TOKEN": "aileron-placeholder"},
    frozenset({"x-key"}),
    frozenset({"/graphql"}),
    errors="message",
    raw="ask",
)


class ToolsCase(RunnerCase):
    """The action C{tracker-tools} beside those of every runner."""

    manifest = MANIFEST

    def setUp(self) -> None:
        super().setUp()
        described = evolve(
            scripted_description(WRITES, READS, fqn=FQN), content_hash=digest(FQN), own_tools=self.declared()
        )
        self.service = ScriptedConnector(description=described, clock=self.clock)
        self.connectors = MemoryConnectors.of([self.connector, self.service])
        self.believe_connectors()
        self.write(ACTION, self.manifest)
        self.restart()

    def declared(self) -> ToolDeclaration:
        """Return what the connector declares of tools."""
        return DECLARED

    def inputs(self) -> Mapping[str, JSON]:
        """Return the arguments of a run."""
        return {"target": "/x"}
