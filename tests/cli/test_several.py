"""Several decisions after one login, and sessions that are ended with them."""

from __future__ import annotations

from typing import Any

from aileron.errors import ApprovalStale
from tests.cli.daemon import DIGEST, RUN, SESSION, CommandCase, approval

OTHER = "02RUN"


def path(run_id: str, *more: str) -> str:
    """Of one approval."""
    return "/".join(("/v1/action-approvals", run_id, *more))


class SeveralCase(CommandCase):
    """Two wait."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.site.answer("GET", "/v1/sessions/S", SESSION)
        done = {"status": "completed", "run_id": RUN, "result": {"output": {}, "steps": {}}}
        for run_id in (RUN, OTHER):
            self.site.answer("GET", path(run_id), approval(id=run_id, digest=f"{DIGEST}{run_id}"))
            self.site.answer("POST", path(run_id, "decide"), approval(id=run_id))
            self.site.answer("GET", path(run_id, "result?wait=10"), done)

    def decided(self) -> list[Any]:
        """What each was told."""
        return [self.site.bodies("POST", path(run_id, "decide")) for run_id in (RUN, OTHER)]


class ApproveTests(SeveralCase):
    def test_each(self) -> None:
        """Each is shown and confirmed by itself, and decided by its own digest."""
        code, out, _ = self.as_operator("approval", "approve", RUN, OTHER, RUN, answers=["y", "y"])
        self.assertEqual((code, out.count("What will leave this machine")), (0, 2))
        self.assertIn("All 2 were approved.", out)
        for run_id, bodies in zip((RUN, OTHER), self.decided(), strict=True):
            self.assertEqual(bodies, [{"approved": True, "digest": f"{DIGEST}{run_id}"}])

    def test_not_all(self) -> None:
        """A no to one, or one that changed, leaves that one as it is and not the others; the exit code tells."""
        code, _, err = self.as_operator("approval", "approve", RUN, OTHER, answers=["n", "y"])
        self.assertEqual((code, [len(each) for each in self.decided()]), (1, [0, 1]))
        self.assertIn("1 of 2 were approved", err)
        self.site.answer("POST", path(RUN, "decide"), ApprovalStale("Look again."))
        code, _, err = self.as_operator("approval", "approve", RUN, OTHER, answers=["y", "y"])
        self.assertEqual((code, "1 of 2 were approved" in err), (1, True))

    def test_alone(self) -> None:
        """What is about one alone is refused of several."""
        for option in (("--digest", "x"), ("--grant",), ("--yes", "--json")):
            self.assertEqual(self.command("approval", "approve", RUN, OTHER, *option)[0], 2, option)
        self.assertEqual(self.site.asked, [])


class DenyTests(SeveralCase):
    def setUp(self) -> None:
        super().setUp()
        self.site.answer("POST", "/v1/sessions/S/end", {})
        self.site.answer("POST", "/v1/sessions/S/deny", {"session": {}, "denied": ["03RUN"], "left": []})

    def test_several(self) -> None:
        """Several are denied with one reason."""
        code, out, _ = self.as_operator("approval", "deny", RUN, OTHER, "--reason", "no")
        self.assertEqual((code, "All 2 were denied." in out), (0, True))
        self.assertEqual([each[0]["reason"] for each in self.decided()], ["no", "no"])

    def test_end_session(self) -> None:
        """With its session ended all else that it asks is denied, with the same reason."""
        code, out, _ = self.as_operator("approval", "deny", RUN, "--end-session", "--reason", "flood")
        self.assertEqual(code, 0)
        self.assertIn("The session S is ended; 1 more were denied.", out)
        self.assertEqual(self.site.bodies("POST", "/v1/sessions/S/deny"), [{"reason": "flood"}])

    def test_no_session(self) -> None:
        """Where no session asks nothing is denied."""
        run = {**approval()["run"], "session_id": None}
        self.site.answer("GET", path(OTHER), approval(id=OTHER, run={**run, "id": OTHER}))
        code, _, err = self.as_operator("approval", "deny", RUN, OTHER, "--end-session")
        self.assertEqual((code, self.decided()), (1, [[], []]))
        self.assertIn("nothing was denied", err)

    def test_sessions_end(self) -> None:
        """A session is ended by itself; with --deny what it asks is denied too, and what still waited is counted."""
        self.assertEqual(self.as_operator("sessions", "end", "S")[1], "S is ended.\n")
        self.assertEqual(self.site.bodies("POST", "/v1/sessions/S/deny"), [])
        out = self.as_operator("sessions", "end", "S", "--deny", "--reason", "flood")[1]
        self.assertIn("1 of its requests were denied", out)
        self.assertEqual(self.site.bodies("POST", "/v1/sessions/S/deny"), [{"reason": "flood"}])
        self.assertEqual(self.command("sessions", "end", "S", "--reason", "x")[0], 2)
