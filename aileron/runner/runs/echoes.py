"""What is put on record where an answer held the credential that was sent."""

from __future__ import annotations

from attrs import frozen

from aileron.values import BindingFlag, Event, Finding, Outcome, Run

from .events import EventFactory
from .plan import PlannedStep


@frozen
class Echoes:
    """Events and flags to be written with whatever comes next; both empty where nothing came back."""

    events: tuple[Event, ...] = ()
    flags: tuple[BindingFlag, ...] = ()


def find_echoes(pen: EventFactory, run: Run, planned: PlannedStep, outcome: Outcome | Finding) -> Echoes:
    """What C{outcome} of a step of C{run} has to say of echoes."""
    if not outcome.notes.get("echoed"):
        return Echoes()
    binding, fqn = planned.binding, planned.description.fqn
    name, forms = None if binding is None else binding.name, outcome.notes["echoed"]
    event = pen.of_run("secret.echoed", run, connector=fqn, step=planned.step.id, binding=name, forms=forms)
    if binding is None:
        return Echoes((event,))
    reason = f"An answer to {fqn} held this credential."
    return Echoes((event,), (BindingFlag(binding.name, binding.revision, event.at, reason),))
