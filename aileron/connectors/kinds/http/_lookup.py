"""The search for an effect: the declared read, and the rule that finds the effect in its output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from attrs import frozen

from aileron.base.json import JSON
from aileron.base.tables import FileTable
from aileron.connectors import _template
from aileron.connectors._sending import not_understood
from aileron.connectors._template import ReferenceScope, Template
from aileron.model.connectors import Finding, Outcome, Sought
from aileron.redaction import Redactor

from ._pages import MORE
from ._result import Parts, chosen, read_parts
from ._when import PATH, Condition, Steps, at, condition, dotted

SINCE = frozenset({"effect.since", "effect.since_unix"})
"""The references that only a search may use: a moment before the effect was first tried."""

_EARLIER = timedelta(minutes=10)  # the service's clock may be behind ours
_AFTER_SECONDS = 60.0
ABSENCES = ("unknown", "did_not_happen")
LEAST_AFTER_SECONDS, MOST_AFTER_SECONDS = 0.001, 24 * 3600.0
_KEYS = frozenset({"effect.key", "effect.uuid"})
_MATCH = re.compile(rf"({PATH})\s*(==|contains)\s*(.+)")


@frozen
class Match:
    """The rule that finds the effect among the items.

    :ivar relation: C{==} or C{contains}.
    :ivar text: a template that contains the effect key.
    """

    path: Steps
    relation: str
    text: str

    def holds(self, item: JSON, scope: ReferenceScope) -> bool:
        """Return whether C{item} matches the rule.

        :raises InvalidRequest: if the rule refers to an input that was not given.
        """
        found, wanted = at(item, self.path), _template.text(self.text, scope)
        if not isinstance(found, str):
            return False
        return found == wanted if self.relation == "==" else wanted in found


@frozen
class Lookup:
    """The declaration of the search for one operation's effect.

    :ivar operation: the read that searches, of the same connector.
    :ivar items: the path of the candidates in the read's output, or empty if the output itself is the candidate.
    :ivar match: the rule that finds the effect among the candidates, or None if the read returns only the effect.
    :ivar certain: whether finding nothing can prove that the effect did not happen.
    :ivar after_seconds: how long after the last attempt finding nothing becomes a proof.
    :ivar complete: a condition that the output must also meet for this proof, or None.
    :ivar absent_statuses: the statuses by which the service reports that the item does not exist.
    """

    operation: str
    inputs: Mapping[str, Template]
    items: Steps = ()
    match: Match | None = None
    result: Parts | None = None
    certain: bool = False
    after_seconds: float = _AFTER_SECONDS
    complete: Condition | None = None
    absent_statuses: frozenset[int] = frozenset()

    def inputs_for(self, sought: Sought) -> Mapping[str, JSON]:
        """Return the inputs of the read operation that searches for the effect.

        :param sought: the effect to search for, with the inputs of the operation that may have had it.
        :raises InvalidRequest: if a needed input was not given.
        """
        rendered = _template.render(self.inputs, _scope(sought))
        return rendered if isinstance(rendered, Mapping) else {}

    def finding(self, name: str, outcome: Outcome, sought: Sought, now: datetime, echo: Redactor) -> Finding:
        """Return the finding that the read's outcome means.

        If several items match, the first is the result, and the notes have their number. The finding is undecided if
        the read failed, or if finding nothing proves nothing.

        :param name: the connector's name, for messages.
        :param echo: redacts the secret in decoded parts.
        """
        is_all = MORE not in outcome.notes
        if outcome.status in self.absent_statuses and is_all:
            return Finding(self._absent(None, sought, now), notes=outcome.notes)
        if outcome.fault is not None:
            return Finding(None, fault=outcome.fault, notes=outcome.notes)
        items = self._items(outcome.output)
        if items is None:
            return Finding(None, fault=not_understood(name), notes=outcome.notes)
        scope = _scope(sought)
        found = [each for each in items if self.match is None or self.match.holds(each, scope)]
        if not found:
            return Finding(self._absent(outcome.output, sought, now) if is_all else None, notes=outcome.notes)
        more: Mapping[str, JSON] = {"matches": len(found)} if len(found) > 1 else {}
        result = found[0] if self.result is None else chosen(self.result, found[0], echo)
        return Finding(True, result, notes={**outcome.notes, **more})

    def _items(self, output: JSON) -> Sequence[JSON] | None:
        there = at(output, self.items) if self.items else output
        if isinstance(there, Mapping) and not self.items:
            return [there]
        return there if isinstance(there, Sequence) and not isinstance(there, str) else None

    def _absent(self, output: JSON, sought: Sought, now: datetime) -> bool | None:
        """Return the finding if the search found nothing: False if the effect did not happen, or None if unknown."""
        whole = self.complete is None or self.complete.holds(output)
        late_enough = (now - sought.last_at).total_seconds() >= self.after_seconds
        return False if self.certain and whole and late_enough else None


def _scope(sought: Sought) -> ReferenceScope:
    return ReferenceScope(sought.inputs, sought.effect_key, sought.first_at - _EARLIER)


def read_lookup(table: FileTable | None, own_inputs: frozenset[str]) -> Lookup | None:
    """Read the table C{reconcile}, or return None if C{table} is None. Faults are added to the table.

    :param own_inputs: the operation's inputs, to which the table may refer.
    """
    if table is None:
        return None
    lookup = Lookup(
        operation=table.text("op"),
        inputs=_inputs(table.table("inputs"), own_inputs),
        items=table.read("items", dotted, ()),
        match=table.read("match", _match, None),
        result=read_parts(table.optional_table("result")),
        certain=table.choice("absent", ABSENCES, "unknown") == "did_not_happen",
        after_seconds=table.number("after_seconds", LEAST_AFTER_SECONDS, MOST_AFTER_SECONDS) or _AFTER_SECONDS,
        complete=table.read("complete", condition, None),
        absent_statuses=table.integers("absent_statuses", 400, 499),
    )
    if "match" not in table.values and not _KEYS & _template.references(lookup.inputs):
        table.fault("match", "must find it by the effect key, unless an input asks for that")
    table.close()
    return lookup


def _inputs(table: FileTable, own_inputs: frozenset[str]) -> Mapping[str, Template]:
    for name, value in table.values.items():
        _template.check_references(table, name, value, SINCE)
        for unknown in sorted(_template.inputs_of(value) - own_inputs):
            table.fault(name, f"the operation itself is given no {unknown!r}")
    return dict(table.values)


def _match(text: str) -> Match:
    """Parse a rule such as C{id == ${effect.uuid}} or C{body contains "by ${effect.key}"}.

    :raises ValueError: if the rule is invalid.
    """
    found = _MATCH.fullmatch(text.strip())
    if not found:
        raise ValueError("must be: path == text, or path contains text")
    wanted = found[3] if _template.REFERENCE.fullmatch(found[3]) else _read_quoted(found[3])
    for fault in _template.faults(wanted):
        raise ValueError(fault)
    if not _KEYS & _template.references(wanted):
        raise ValueError("must compare with ${effect.key} or ${effect.uuid}")
    return Match(dotted(found[1]), found[2], wanted)


def _read_quoted(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise ValueError("compares with one reference, or with a quoted text that holds one")
    return value
