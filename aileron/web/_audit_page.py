"""The pages of the audit record: the newest events, one whole event, and the state of the hash chain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.json import from_timestamp, timestamp
from aileron.base.text import visible
from aileron.model.audit import Event, Record
from aileron.model.errors import InvalidRequest, NotFound
from aileron.model.queries import AuditQuery

from .blocks import (
    Cell,
    answer,
    back,
    chip,
    choice,
    copied,
    draw_whole,
    empty,
    facts,
    field,
    filters,
    heading,
    link,
    older,
    page,
    quiet,
    table,
)
from .event_names import PERSON, event_names
from .parts import Drawing, Visit
from .texts import count, moment

_MOST = 50
_WORDS = {
    "type": "Type",
    "action": "Action",
    "connector": "Connector",
    "session": "Session",
    "run": "Run",
    "class": "Failure",
}
_SUBJECTS = ("name", "agent", "host")
_TIMES = {"since": "Since", "until": "Until"}
_NOTHING = empty("No matching records", tags.p(link("/audit", "Show all records")))
_LOGINS = [("", "Left out"), ("yes", "Listed")]


async def draw_audit(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the list of audit events, newest first.

    :raises InvalidRequest: if the cursor is not of this list.
    """
    found = await deps.audit.list(_read_wanted(visit))
    kept = {name: value for name, value in visit.query.items() if name != "cursor"}
    fields = [field(name, label, kept.get(name, "")) for name, label in _WORDS.items()]
    fields += [field(name, f"{label} (UTC)", kept.get(name, ""), "datetime-local") for name, label in _TIMES.items()]
    fields.append(choice("logins", "Logins of commands", _LOGINS, kept.get("logins", "")))
    return page(
        "Audit log",
        count(len(found.items), "record", "records"),
        heading("Audit log"),
        _describe_standing(deps),
        quiet("The login and logout of each command are left out: ", link("/audit?logins=yes", "list them too"))
        if _leaves_out_logins(kept)
        else "",
        filters("/audit", *fields, given=any(kept.values())),
        table("Records, newest first", ("Type", "Time", "Actor", "About"), list(_rows(deps, found.items)), _NOTHING),
        older("/audit", kept, found.cursor),
    )


async def draw_record(deps: Dependencies, visit: Visit, audit_id: str) -> Drawing:
    """Draw one audit event with all its fields.

    :raises NotFound: if no record has that ID.
    """
    record = await deps.audit.get(audit_id)
    if record is None:
        raise NotFound("No record has this ID.")
    return Drawing(lambda: _page(record))


def _page(record: Record) -> Tag:
    event = record.event
    contents = (
        quiet("The contents were deleted, as the configuration says. The audit log has recorded the deletion.")
        if record.pruned
        else draw_whole("contents", dict(event.payload), "Contents")
    )
    return page(
        event.type,
        f"Record {record.sequence}",
        back("/audit", "Audit log"),
        heading(event.type, f"record {record.sequence:,}"),
        facts(_about(record)),
        tags.h2("Contents"),
        contents,
        tags.h2("Hash chain"),
        facts(_draw_sealed(record)),
    )


def _leaves_out_logins(given: Mapping[str, str]) -> bool:
    """Return True if the list hides logins of commands: neither the filter of logins nor one of a field is set."""
    return not any(given.get(name) for name in (*_WORDS, "logins"))


def _read_wanted(visit: Visit) -> AuditQuery:
    given = {name: visit.query.get(name) or None for name in _WORDS}
    return AuditQuery(
        since=_moment(visit, "since"),
        until=_moment(visit, "until"),
        type=given["type"],
        action=given["action"],
        connector=given["connector"],
        session_id=given["session"],
        run_id=given["run"],
        failure_class=given["class"],
        commands=not _leaves_out_logins(visit.query),
        limit=_MOST,
        cursor=visit.query.get("cursor"),
    )


def _moment(visit: Visit, name: str) -> datetime | None:
    """Parse a moment from the query, in UTC if it has no time zone. Return None if the query has none.

    :raises InvalidRequest: if the value is not a moment.
    """
    text = visit.query.get(name)
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{_TIMES[name]} is not a valid time. Write it as 2026-01-31T12:00.") from None


def _describe_standing(deps: Dependencies) -> Tag:
    latest = deps.signer.latest
    signed = quiet("No checkpoint has been signed yet.")
    if latest is not None:
        key = f" with the key {deps.signer.fingerprint}."
        signed = quiet(f"Signed up to record {latest.sequence:,} ", moment(from_timestamp(latest.at)), key)
    verify = tags.button("Verify", type="button", disabled="disabled", id="verify", **{"class": "small"})
    export = tags.button("Export", type="button", disabled="disabled", id="export", **{"class": "small"})
    verdict = tags.output(id="verdict")
    return tags.div(signed, tags.p(verify, " ", export, " ", answer(), **{"class": "buttons"}), verdict)


def _rows(deps: Dependencies, records: Iterable[Record]) -> Iterator[tuple[Cell, ...]]:
    names = event_names(deps.features.features)
    for event in (record.event for record in records):
        known = names.get(event.type)
        kind: Tag = link(f"/audit/{event.id}", event.type)
        if known is not None and known.colour == "bad":
            kind = tags.span(kind, " ", chip(known.words, known.colour))
        words = ", ".join(filter(None, (_find_subject(event), event.failure_class, _find_reason(event))))
        yield kind, event.at, _name_actor(event), words


def _find_reason(event: Event) -> str:
    """Return why somebody approved alone, or an empty string for every other event."""
    return visible(str(event.payload.get("reason", ""))) if event.type == "approval.forced" else ""


def _name_actor(event: Event) -> str:
    if event.actor.person is not None:
        return event.actor.person
    return "You" if event.actor.type == PERSON else f"{event.actor.type} {event.actor.id}"


def _find_subject(event: Event) -> str:
    """Return the subject of an event: its action, connector, file, agent or host, or an empty string if it has none."""
    if event.action or event.connector:
        return ", ".join(filter(None, (event.action, event.connector)))
    found = next((event.payload[name] for name in _SUBJECTS if event.payload.get(name)), "")
    return visible(str(found))


def _about(record: Record) -> Iterator[tuple[str, Cell]]:
    event = record.event
    yield "ID", copied(event.id, "ID")
    yield "Time", event.at
    yield "Time (UTC)", timestamp(event.at)
    yield "Actor", _name_actor(event)
    yield "Run", None if event.run_id is None else link(f"/runs/{event.run_id}", event.run_id)
    yield "Session", None if event.session_id is None else link(f"/sessions/{event.session_id}", event.session_id)
    yield "Action", event.action
    yield "Connector", event.connector
    yield "Failure", event.failure_class


def _draw_sealed(record: Record) -> Iterator[tuple[str, Cell]]:
    yield "Hash", copied(record.hash, "hash")
    yield "Previous hash", record.previous_hash
    yield "Contents digest", record.payload_digest
