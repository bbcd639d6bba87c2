"""The decisions that need no signature are refusals, and each place that makes one is known (ADR 78)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.model.runs import Run, RunState
from aileron.vault import Approvers

from .doors import DoorCase
from .test_one_door import _OUTSIDE

MAKES_DECISIONS: Mapping[str, str] = {
    "api.routes.approvals.read_decision": "with the signature of the body, if it has one",
    "api.routes.grants.make_grant": "with the signature of the body, if it has one",
    "api.routes.sessions._deny_one": "refusals alone, unsigned",
    "features.portable.routes.export": "a text to sign, which decides nothing",
    "features.portable.routes._read": "with the signature of an SSH key",
    "features.proving._bench.Bench._approve": "in a proof, whose runner reaches nothing",
}
"""Each function outside the runner that makes a decision, and what it is signed with."""

UNSIGNED = {"api.routes.sessions._deny_one"}
"""Those that send no signature along. A constant in the code says that they refuse."""


def made_in(source: Any) -> list[tuple[str, ast.Call]]:
    """List what makes a decision in a module, with the function in which it stands."""
    found: list[tuple[str, ast.Call]] = []

    def walk(node: ast.AST, where: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = (
                f"{where}.{child.name}"
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                else where
            )
            if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id == "Decision":
                found.append((inside, child))
            walk(child, inside)

    walk(source.tree, source.name.removeprefix("aileron."))
    return found


class CodeTests(SynchronousTestCase):
    """What the code says."""

    def test_makers(self) -> None:
        """A decision is made where it is known to be, and one without a signature says no, whatever was asked."""
        found = [each for source in _OUTSIDE for each in made_in(source)]
        self.assertEqual({where for where, _ in found}, MAKES_DECISIONS.keys())
        for where, call in found:
            if where in UNSIGNED:
                self.assertEqual(ast.unparse(call.args[0]), "False", where)


class RouteTests(DoorCase):
    """A login whose requests carry no signed decision, against a runner that needs signatures."""

    def make_approvers(self) -> Approvers:
        """Approvers as a daemon has them."""
        return Approvers(self.passkeys, "life", lambda _: None, self.clock)

    def setUp(self) -> None:
        super().setUp()
        self.token = self.operators.log_in()[0]

    def put_up(self) -> tuple[Run, str]:
        """A request that waits, and its digest."""
        self.agents.ask("POST", "/v1/actions/gated/run", self.TOKEN, {"args": {"text": "hello"}})
        (waiting,) = self.operator.ask("GET", "/v1/action-approvals", self.token).json["items"]
        return self.sync(self.runner.submission.run(waiting["id"])), waiting["digest"]

    def test_approvals(self) -> None:
        """No route takes an approval, with or without a grant, that nobody signed. The request goes on waiting."""
        run, digest = self.put_up()
        path = f"/v1/action-approvals/{run.id}/decide"
        grant = {"uses": 1, "not_after": "2027-01-16T00:00:00Z"}
        for asked, body in (
            (path, {"approved": True, "digest": digest}),
            (path, {"approved": True, "digest": digest, "grant": grant}),
            ("/v1/grants", {"approval_id": run.id, "digest": digest, "grant": grant}),
        ):
            heard = self.operator.ask("POST", asked, self.token, body)
            self.assertEqual((heard.status, heard.json["error"]["details"]), (403, {"signature": True}), asked)
        for unsigned in ({"text": "x\n", "signature": ""}, {"text": "x\n"}):
            self.assertEqual(self.operator.ask("POST", "/v1/signed-decisions", self.token, unsigned).status, 400)
        self.assertEqual((self.state(run), self.sent), (RunState.PENDING, 0))

    def test_denial(self) -> None:
        """A denial of one request is taken without a signature, and nothing is sent."""
        run, digest = self.put_up()
        path = f"/v1/action-approvals/{run.id}/decide"
        heard = self.operator.ask("POST", path, self.token, {"approved": False, "digest": digest})
        self.assertEqual(heard.status, 200, heard.text)
        self.assertEqual((self.state(run), self.sent), (RunState.DENIED, 0))

    def test_deny_all(self) -> None:
        """So is that of all requests of a session, which cannot be made to approve any."""
        run, _digest = self.put_up()
        path = f"/v1/sessions/{run.session_id}/deny"
        for more in ({"approved": True}, {"verdict": "approved"}):
            self.assertEqual(self.operator.ask("POST", path, self.token, more).status, 400, more)
        heard = self.operator.ask("POST", path, self.token, {})
        self.assertEqual((heard.status, heard.json["denied"]), (200, [run.id]), heard.text)
        self.assertEqual((self.state(run), self.sent), (RunState.DENIED, 0))

    def test_withdrawal(self) -> None:
        """A request is withdrawn without a signature, and nothing is sent."""
        run, _digest = self.put_up()
        self.assertEqual(self.operator.ask("POST", f"/v1/action-approvals/{run.id}/withdraw", self.token).status, 200)
        self.assertEqual((self.state(run), self.sent), (RunState.CANCELLED, 0))
