"""Every way to an effect is known, found in the code itself, and leads through the one gate."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase
from zope.interface import Interface

from aileron.api._sites import agent_routes
from aileron.client import Daemon, InProcessClient
from aileron.mcp import plain_tools
from aileron.model.interfaces.governance import IReconciliation
from aileron.model.interfaces.runner import IDecisions, ISubmission
from aileron.model.queries import RunQuery
from aileron.model.runs import Run, RunState
from tests.rules import Source, read_tree

from .doors import DoorCase

_PACKAGE = [each for each in read_tree(Path(__file__).parents[2], "aileron") if ".testing" not in each.name]
_OUTSIDE = [each for each in _PACKAGE if not each.name.startswith("aileron.runner")]

LEADS_TO_EFFECTS: Mapping[str, set[str]] = {
    "submit": {
        "api.routes.run.run_action",
        "features.own_tools._writes.Writes._submit",
        "features.proving._bench.Bench.run",
    },
    "undo": {"api.routes.runs.undo_run"},
    "decide": {
        "api.routes.grants.take_decision",
        "api.routes.sessions._deny_one",
        "features.proving._bench.Bench._approve",
        "features.portable.routes.import_decision",
    },
    "approve_and_grant": {"api.routes.grants.take_decision", "api.routes.grants.make_grant"},
    "run_again": {"api.routes.runs.resolve_run"},
}
"""The runner's methods that can lead to an effect, each with all that call it outside the runner.

A proof has a runner of its own, whose connectors reach nothing but doubles of its own.
"""

LEADS_TO_NONE = {
    "offering", "offering_after", "dry_run", "wait", "run", "runs", "count", "most_used", "history", "withdraw",
    "approval", "approvals", "pending", "precedents", "cards", "suggested", "edit", "settle", "find_out",
    "is_reconcilable", "progress",
}  # fmt: skip
"""The others: they read, they end, or they put up for decision."""

WAYS: Mapping[str, Mapping[str, str]] = {
    # what serves requests
    "agent_site": {"daemon._sites": "HTTP, for agents"},
    "operator_site": {"daemon._sites": "HTTP, for the operator: the command line and the pages"},
    "InBandHandler": {"features.inband.running": "in-band mode, before the gateway"},
    "HttpEndpoint": {"features.mcp_http.running": "MCP over HTTP"},
    "plain_tools": {"features.inband.running": "the tools of in-band mode"},
    "in_band": {"features.inband.running": "the agent site's routes, by an in-band key"},
    "Door": {"features.own_tools.running": "the requests of agents' own tools, which are calls like others"},
    # what asks the agent site's routes
    "InProcessClient": {"features.mcp_http._http_endpoint": "MCP over HTTP", "mcp.plain": "in-band mode"},
    "Connections": {
        "mcp._stdio": "MCP on standard streams",
        "cli.drive": "the command line",
        "client._connections": "the same, by HTTPS",
    },
}
"""What makes a way to the runner, each with all that make it."""

REVIEWED = {
    "api.routes.approvals",
    "features.notices.running",
    "features.portable.routes",
    "web.approvals.listing",
    "web.approvals.page",
}
"""Who hands the decisions to the room C{review}, which calls no method that leads to effects."""

HANDED_ON = {"daemon._sites", "features.own_tools.running", "features.phone.running", *REVIEWED}
"""Who hands a part of the runner on, instead of calling it."""


@cache
def mentions(source: Source) -> tuple[tuple[str, ast.Attribute, ast.AST], ...]:
    """List each attribute with the function in which it stands, and what it stands in."""

    def walk(node: ast.AST, where: str) -> Iterator[tuple[str, ast.Attribute, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from walk(child, f"{where}.{child.name}")
                continue
            if isinstance(child, ast.Attribute):
                yield where, child, node
            yield from walk(child, where)

    return tuple(walk(source.tree, source.name.removeprefix("aileron.")))


def calls(sources: list[Source], name: str) -> set[str]:
    """The modules that call a function or method of this name."""
    found = set()
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.Call) and name == getattr(node.func, "attr", getattr(node.func, "id", None)):
                found.add(source.name.removeprefix("aileron."))
    return found


class CodeTests(SynchronousTestCase):
    """What the code says."""

    def test_runner(self) -> None:
        """Each method of the runner's doors is one that leads to effects, or none, and who calls those is known."""
        methods = {name for each in (ISubmission, IDecisions, IReconciliation) for name in _names(each)}
        self.assertEqual(methods, LEADS_TO_EFFECTS.keys() | LEADS_TO_NONE)
        parts = {"submission", "decisions", "reconciliation"}
        found: defaultdict[str, set[str]] = defaultdict(set)
        handed_on = set()
        for source in _OUTSIDE:
            for where, node, around in mentions(source):
                if node.attr in parts and not isinstance(around, ast.Attribute):
                    handed_on.add(source.name.removeprefix("aileron."))
                if node.attr in LEADS_TO_EFFECTS and getattr(node.value, "attr", "") in parts:
                    found[node.attr].add(where)
        self.assertEqual(dict(found), dict(LEADS_TO_EFFECTS))
        self.assertEqual(handed_on, HANDED_ON)
        reviewing = [each for each in _OUTSIDE if each.name.startswith("aileron.review")]
        asked = {node.attr for source in reviewing for _, node, _ in mentions(source)}
        self.assertEqual(asked & LEADS_TO_EFFECTS.keys(), set())

    def test_ways(self) -> None:
        """Whatever makes a way to these doors is made where it is known to be."""
        for name, makers in WAYS.items():
            self.assertEqual(calls(_OUTSIDE, name), makers.keys(), name)

    def test_agent_site(self) -> None:
        """Of the agent site's routes one alone leads to effects, and none decides."""
        leading = {where.rpartition(".")[2] for sites in LEADS_TO_EFFECTS.values() for where in sites}
        served = {endpoint.route.__name__ for endpoint, _ in agent_routes().endpoints}
        self.assertEqual(served & leading, {"run_action"})

    def test_executor(self) -> None:
        """Two methods have the executor act: for what needs no decision, and past the gate's last word."""
        found = {where for source in _PACKAGE for where, node, _ in mentions(source) if node.attr == "carry_out"}
        gated, ungated = "runner.scheduler.RunScheduler", "runner.submission.Submission"
        self.assertEqual(found, {f"{gated}._carry_out", f"{ungated}._keep_and_finish"})
        (scheduler,) = (each for each in _PACKAGE if each.name == "aileron.runner.scheduler")
        asked = {(where, node.attr) for where, node, _ in mentions(scheduler) if "_gate" in ast.unparse(node.value)}
        chain = {
            ("_begin", "seen_before_effect"),
            ("_open", "ready"),
            ("_open", "verification"),
            ("_carry_out", "spend"),
        }
        self.assertEqual({(f"{gated}.{method}", name) for method, name in chain} - asked, set())


def _names(interface: type[Interface]) -> list[str]:
    return [str(name) for name in interface.names()]


class GateTests(DoorCase):
    """The same, tried: each way asks for the gated action, and nothing leaves before a decision."""

    def by_http(self, action: str) -> None:
        """A program that speaks HTTP, as C{aileron-mcp} does."""
        self.agents.ask("POST", f"/v1/actions/{action}/run", self.TOKEN, {"args": {"text": "hello"}})

    def by_mcp_over_http(self, action: str) -> None:
        """The daemon's own MCP server."""
        daemon = Daemon(InProcessClient(self.routes, self.TOKEN, self.clock))
        self.sync(daemon.run(action, {"text": "hello"}, "mcp", 0))

    def in_band(self, action: str) -> None:
        """In-band mode."""
        tools = plain_tools(self.routes.in_band(), self.clock, lambda: 1, 300)
        self.sync(tools.offered(self.KEY))
        self.sync(tools.call(self.KEY, action, {"text": "hello"}, "in-band", 0))

    def by_command_line(self, action: str) -> None:
        """The operator, who runs an action and has not decided with that."""
        token = self.operators.log_in()[0]
        self.operator.ask("POST", f"/v1/actions/{action}/run", token, {"args": {"text": "hello"}})

    def by_dry_run(self, action: str) -> None:
        """A plan that is only shown."""
        token = self.operators.log_in()[0]
        self.operator.ask("POST", f"/v1/actions/{action}/dry-run", token, {"args": {"text": "hello"}})

    def test_gated(self) -> None:
        """By no way is anything sent before the decision; after it that call is, once."""
        for number, way in enumerate((self.by_http, self.by_mcp_over_http, self.in_band, self.by_command_line)):
            way("gated")
            self.clock.advance(10)
            (run,) = self.pending()
            self.assertEqual((self.state(run), self.sent), ("pending_approval", number), way.__doc__)
            self.approve(run)
            self.assertEqual(self.sent, number + 1, way.__doc__)

    def test_ungated(self) -> None:
        """What needs no decision is sent at once by each of them, and by the plan that is shown never."""
        for number, way in enumerate((self.by_http, self.by_mcp_over_http, self.in_band, self.by_command_line), 1):
            way("open")
            self.assertEqual(self.sent, number, way.__doc__)
        for action in ("open", "gated"):
            self.by_dry_run(action)
        self.assertEqual((self.sent, self.pending()), (4, ()))

    def pending(self) -> tuple[Run, ...]:
        """What waits for a decision."""
        return tuple(
            each.run for each in self.sync(self.runner.decisions.approvals(RunQuery(states=(RunState.PENDING,)))).items
        )
