"""Reads what an attempt came to: what became of the effect, whether to try again, and what the record tells of it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from attrs import frozen

from aileron.values import (
    JSON,
    READ,
    AttemptRow,
    BindingFlag,
    Event,
    Finding,
    Outcome,
    Request,
    Run,
    compact,
    digest_of_bytes,
    timestamp,
)

from .plan import PlannedStep
from .transitions import EventFactory

MAX_RETRIES = 3
_FIRST_DELAY_SECONDS = 1.0
_JITTER = 0.2
_RETRIED_KINDS = frozenset({"network_error", "external_api_error"})


class Meaning(Enum):
    """Says what became of the effect.  C{IN_DOUBT}: it may have happened, and nobody here can say."""

    DONE = "done"
    NOT_DONE = "not done"
    IN_DOUBT = "in doubt"


def classify(outcome: Outcome, effect: str) -> Meaning:
    """Read one attempt's outcome.

    A write whose request left and whose answer the connector does not classify is in doubt, whatever the answer was.
    """
    if outcome.fault is None:
        return Meaning.DONE
    if effect == READ or outcome.classified or not outcome.sent:
        return Meaning.NOT_DONE
    return Meaning.IN_DOUBT


@frozen
class RetryPolicy:
    """Allows at most three retries, after 1, 2 and 4 seconds, each stretched at random by up to a fifth.

    :param chance: uniform in [0, 1) at each call.
    """

    _chance: Callable[[], float]

    def delay(self, outcome: Outcome, idempotent: bool, attempts: int, remaining_seconds: float) -> float | None:
        """Seconds to wait before the next attempt, or L{None}: there is none.

        Only failures that may pass (of the network or the service), and only where a second request can do no harm:
        the operation is idempotent, or not a byte of the first one left.  C{Retry-After} is honoured.

        :param attempts: how many were made.
        :param remaining_seconds: of the action's wall clock; a retry that would not begin within it is none.
        """
        fault = outcome.fault
        if fault is None or not fault.retriable or fault.kind not in _RETRIED_KINDS or attempts > MAX_RETRIES:
            return None
        if outcome.sent and not idempotent:
            return None
        backoff = _FIRST_DELAY_SECONDS * 2 ** (attempts - 1) * (1 + _JITTER * self._chance())
        delay = max(backoff, outcome.retry_after_seconds or 0.0)
        return delay if delay < remaining_seconds else None


def describe_attempt(ended: AttemptRow, outcome: Outcome, built: Request | None) -> dict[str, JSON]:
    """Describe how one attempt went, with digest and size of what it answered; the run's own row has the answer.

    :param built: the request, if it could be built only from earlier answers; others are pinned by
        C{execution.started}.
    """
    return {
        "step": ended.step_id,
        "attempt": ended.number,
        "state": ended.state,
        "started_at": timestamp(ended.started_at),
        "ended_at": None if ended.ended_at is None else timestamp(ended.ended_at),
        "sent": outcome.sent,
        "status": outcome.status,
        **({"output": _measured(outcome.output)} if outcome.fault is None else {"failure": outcome.fault.as_json()}),
        **({} if built is None else {"request": built.as_json()}),
    }


def _measured(output: JSON) -> JSON:
    text = compact(output).encode("ascii")
    return {"digest": digest_of_bytes(text), "bytes": len(text)}


@frozen
class Echoes:
    """Holds events and flags to be written with whatever comes next; both empty where nothing came back."""

    events: tuple[Event, ...] = ()
    flags: tuple[BindingFlag, ...] = ()


def find_echoes(pen: EventFactory, run: Run, planned: PlannedStep, outcome: Outcome | Finding) -> Echoes:
    """Find what C{outcome} of a step of C{run} has to say of echoes of the credential."""
    if not outcome.notes.get("echoed"):
        return Echoes()
    binding, fqn = planned.binding, planned.description.fqn
    name, forms = None if binding is None else binding.name, outcome.notes["echoed"]
    event = pen.of_run("secret.echoed", run, connector=fqn, step=planned.step.id, binding=name, forms=forms)
    if binding is None:
        return Echoes((event,))
    reason = f"An answer to {fqn} held this credential."
    return Echoes((event,), (BindingFlag(binding.name, binding.revision, event.at, reason),))
