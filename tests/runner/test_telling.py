"""The last event of a run tells of every attempt."""

from __future__ import annotations

from typing import Any, cast

from aileron.values import AuditQuery, Fault, Outcome, Run, compact, digest_of_bytes
from tests.runner.kit import RunnerCase, manifest, step


class ToldTests(RunnerCase):
    """What C{attempts} of the last event holds."""

    def attempts(self, run: Run) -> list[dict[str, Any]]:
        """As they are on record."""
        (newest,) = self.sync(self.store.audit.list(AuditQuery(run_id=run.id, limit=1))).items
        return cast("list[dict[str, Any]]", newest.event.payload["attempts"])

    def test_success(self) -> None:
        """An answer's status, digest and size are on record, not the answer; the planned request stands elsewhere."""
        self.connector.script.append(Outcome({"secret plan": 1}, status=201))
        run = self.submit("open")
        (told,) = self.attempts(run)
        text = compact({"secret plan": 1}).encode()
        self.assertEqual(told["output"], {"digest": digest_of_bytes(text), "bytes": len(text)})
        self.assertEqual((told["step"], told["attempt"], told["state"]), ("only", 1, "succeeded"))
        self.assertEqual((told["status"], told["sent"], "request" in told), (201, True, False))
        self.assertLessEqual(told["started_at"], told["ended_at"])

    def test_failures(self) -> None:
        """Each attempt that failed is on record with its fault."""
        lost = Outcome(fault=Fault("network_error", "refused", "external", True), sent=False)
        self.connector.script.append(lost)
        run = self.submit("open")
        self.clock.advance(1.0)
        first, second = self.attempts(run)
        self.assertEqual((first["state"], first["sent"], first["failure"]["class"]), ("failed", False, "network_error"))
        self.assertEqual((second["state"], second["attempt"]), ("succeeded", 2))

    def test_built_later(self) -> None:
        """A request that was made of an earlier answer is on record as it was sent."""
        found = 'text = "${steps.find.name}", times = "${steps.find.count}"'
        self.write("both", manifest("both", step("look", "find"), step("post", "tell", found), gated=False))
        self.runner.look()
        self.connector.script.append(Outcome({"name": "x", "count": 7}))
        run = self.submit("both")
        find, tell = self.attempts(run)
        self.assertNotIn("request", find)
        self.assertEqual(tell["request"]["body"], '{"text":"x","times":7}')
