"""What a digest binds: nothing of a plan can be another without another digest."""

from __future__ import annotations

from attrs import evolve

from aileron.runner.plan import Plan
from aileron.values import Run

from .kit import RunnerCase


class DigestTests(RunnerCase):
    """The digest of a plan that is worked out here, and of others that differ in one thing."""

    def worked_out(self) -> tuple[Run, Plan]:
        """A run, and what it would do."""
        run = self.submit()
        return run, self.runner.decisions._gate.requests.plan(run)

    def test_run(self) -> None:
        """Run, session, action, file and arguments are bound."""
        run, plan = self.worked_out()
        others = (
            plan.digest(evolve(run, id="another")),
            plan.digest(evolve(run, session_id="another")),
            evolve(plan, action=evolve(plan.action, name="another")).digest(run),
            evolve(plan, action=evolve(plan.action, digest="another")).digest(run),
            evolve(plan, arguments={**plan.arguments, "text": "another"}).digest(run),
            evolve(plan, steps=()).digest(run),
        )
        self.assertEqual(len({plan.digest(run), *others}), len(others) + 1)

    def test_step(self) -> None:
        """Of a step are bound its name, connector, operation, address and request."""
        run, plan = self.worked_out()
        (step,) = plan.steps
        others = (
            evolve(step, step=evolve(step.step, id="another")),
            evolve(step, step=evolve(step.step, operation="put")),
            evolve(step, description=evolve(step.description, fqn="local://another")),
            evolve(step, description=evolve(step.description, version="2.0.0")),
            evolve(step, description=evolve(step.description, content_hash="another")),
            evolve(step, base_url="https://another.invalid"),
            evolve(step, request=None),
        )
        digests = {evolve(plan, steps=(each,)).digest(run) for each in others}
        self.assertEqual(len({plan.digest(run), *digests}), len(others) + 1)
