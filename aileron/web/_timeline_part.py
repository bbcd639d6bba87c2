"""Draws the timeline of a run: its audit records in order, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from twisted.web.template import Tag, tags

from aileron.base.json import timestamp
from aileron.base.text import visible
from aileron.model.audit import Event, EventName, Record

from ._runs_page import took
from .blocks import Part, chip, link
from .event_names import PERSON
from .texts import moment


def draw_timeline(records: Sequence[Record], names: Mapping[str, EventName]) -> Iterator[Part]:
    """Draw what happened in order: the first event with its time, the others with the time since the one before."""
    if not records:
        return
    yield tags.h2("Timeline")
    first, *_ = records
    times = [moment(first.event.at)(**{"data-clock": "yes"})]
    times += [_draw_later(before.event, after.event) for before, after in pairwise(records)]
    events = (_draw_event(each, time, names) for each, time in zip(records, times, strict=True))
    yield tags.ol(*events, **{"class": "history"})


def _draw_later(before: Event, after: Event) -> Tag:
    return tags.span(f"{took(before.at, after.at)} later", title=timestamp(after.at))


def _draw_event(record: Record, time: Tag, names: Mapping[str, EventName]) -> Tag:
    event = record.event
    known = names.get(event.type) or EventName(event.type)
    return tags.li(
        tags.div(chip(known.words, known.colour), *_describe_event(event)),
        tags.small(
            time,
            f", by {visible(event.actor.person or 'you')}" if event.actor.type == PERSON else "",
            ", ",
            link(f"/audit/{event.id}", f"record {record.sequence:,}"),
            **{"class": "quiet"},
        ),
    )


def _describe_event(event: Event) -> Iterator[Part]:
    """Draw the step, the connector, the grant, the reason or the failure of an event, as far as it has one."""
    failure = event.payload.get("failure")
    if isinstance(failure, Mapping):
        failure = failure.get("message")
    said = (event.payload.get("step"), event.connector, event.payload.get("reason"), failure)
    yield "".join(f" {visible(each)}" for each in said if isinstance(each, str) and each)
    if isinstance(event.payload.get("grant"), str):
        yield from (" ", link("/grants", str(event.payload["grant"])))
