"""Draws what a run sent and what the services answered: one entry for each step, with its attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen
from twisted.web.template import Tag, tags

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.reviews import ReviewedStep
from aileron.model.runs import AttemptRow, Run, StepRow

from ._runs_page import SENT, took
from .approvals.requests import draw_request
from .blocks import Cell, Part, chip, draw_whole, quiet, table

_KINDS = {"succeeded": "good", "failed": "bad", "unknown": "bad", "started": "moves"}
_WORDS = {"succeeded": "Succeeded", "failed": "Failed", "unknown": "Outcome unknown", "started": "Running"}


@frozen
class StepExchange:
    """One step of a run with everything that is stored about it.

    :ivar reviewed: the step as it was approved, or None if the run needed no approval.
    :ivar step: the end of the step, or None if it did not end.
    :ivar output: the output of the step without its attachments.
    """

    step_id: str
    reviewed: ReviewedStep | None
    step: StepRow | None
    output: JSON
    attempts: Sequence[AttemptRow]


def list_exchanges(
    reviewed: Sequence[ReviewedStep], steps: Sequence[StepRow], outputs: Sequence[JSON], attempts: Sequence[AttemptRow]
) -> list[StepExchange]:
    """Return the steps of a run in order: those that were approved first, then the others that were attempted.

    :param outputs: the output of each of C{steps}, without its attachments.
    """
    ended = {step.step_id: step for step in steps}
    told = {step.step_id: output for step, output in zip(steps, outputs, strict=True)}
    approved = {each.id: each for each in reviewed}
    order = dict.fromkeys((*approved, *ended, *(each.step_id for each in attempts)))
    return [
        StepExchange(
            each,
            approved.get(each),
            ended.get(each),
            told.get(each),
            [attempt for attempt in attempts if attempt.step_id == each],
        )
        for each in order
    ]


def draw_exchanges(run: Run, exchanges: Sequence[StepExchange]) -> Iterator[Part]:
    """Draw each step with its request and its responses, folded, and a table of attempts if one did not succeed."""
    if not exchanges:
        return
    sent = run.state in SENT
    yield tags.h2("Requests and responses" if sent else "Requests that were not sent")
    if not run.gated:
        yield quiet("The requests are not stored, because the run needed no approval.")
    yield tags.ol(*(_draw_exchange(number, run, each) for number, each in enumerate(exchanges, 1)), id="steps")
    attempts = [attempt for each in exchanges for attempt in each.attempts]
    if any(each.number > 1 or each.state != "succeeded" for each in attempts):
        heads = ("Step, attempt", "State", "Started", "Duration", "Sent", "Reason")
        yield table("Attempts", heads, map(_describe_attempt, attempts), "")


def _draw_exchange(number: int, run: Run, exchange: StepExchange) -> Tag:
    if exchange.reviewed is None:
        return tags.li(
            tags.p(tags.strong(visible(exchange.step_id)), *_draw_end(run, exchange)), *_draw_received(number, exchange)
        )
    drawn = draw_request(number, exchange.reviewed, None, None, run.effect_key)
    words = tags.strong(drawn["operation"]), " of ", tags.strong(drawn["connector"]), ", ", drawn["account"]
    head = tags.p(*words, *_draw_end(run, exchange))
    return tags.li(head, drawn["request"], *_draw_received(number, exchange))


def _draw_end(run: Run, exchange: StepExchange) -> Iterator[Part]:
    """Draw the state of the last attempt, and how long it took."""
    last = exchange.attempts[-1] if exchange.attempts else None
    if last is None:
        yield from (" ", chip("Not sent", "quiet")) if run.state in SENT else ()
        return
    yield from (" ", chip(_WORDS.get(last.state, last.state), _KINDS.get(last.state, "quiet")))
    lasted = took(last.started_at, last.ended_at)
    yield from (" ", tags.small(lasted, **{"class": "quiet"})) if lasted else ()


def _draw_received(number: int, exchange: StepExchange) -> Iterator[Part]:
    """Draw the response to each failed attempt, and the response to the step, folded."""
    for place, each in enumerate(exchange.attempts):
        if each.answer is not None:
            name = f"Response to {each.step_id}, attempt {each.number}"
            kind = f" ({each.answer_type})" if each.answer_type else ""
            whole = draw_whole(f"answer-{number}-{place}", each.answer, name)
            yield tags.details(tags.summary(visible(name + kind)), whole, id=f"answered-{number}-{place}")
    if exchange.step is not None:
        whole = draw_whole(f"step-{exchange.step.position}", exchange.output, "Response")
        yield tags.details(tags.summary("Response"), whole, id=f"response-{exchange.step.position}")


def _describe_attempt(attempt: AttemptRow) -> tuple[Cell, ...]:
    sent = {None: "", True: "Yes", False: "No"}[attempt.sent]
    why = "" if attempt.fault is None else attempt.fault.message
    name, lasted = f"{attempt.step_id}, {attempt.number}", took(attempt.started_at, attempt.ended_at)
    return name, _WORDS.get(attempt.state, attempt.state), attempt.started_at, lasted, sent, why
