"""Replays the recorded responses of a service through the code of a real call, without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs

from attrs import evolve, frozen
from twisted.internet.defer import Deferred

from aileron.base.json import JSON, canonical
from aileron.base.schemas import fits
from aileron.base.tables import FileTable
from aileron.connectors._answer import ServiceAnswer
from aileron.connectors._template import Omitted, ReferenceScope, render
from aileron.model.connectors import Outcome, Request, Sought
from aileron.model.errors import AileronError
from aileron.redaction import Redactor

from ._classify import Reader
from ._pages import FetchedPage, PageReader
from ._prepare import prepare
from ._spec import HttpOperation, HttpSpec

_KEY = "fixture"  # the value of ${effect.key}
_NOW = datetime(2030, 1, 1, tzinfo=UTC)
_LATER = _NOW + timedelta(days=2)  # late enough that a missing effect did not happen
_FINDINGS = {True: "happened", False: "did_not_happen", None: "unknown"}
_OUTCOMES = ("done", "refused", "unknown")


def replay_all(spec: HttpSpec, document: FileTable) -> Mapping[str, Sequence[str]]:
    """Replay a whole file of recorded responses, and return the outcomes that occurred, by operation.

    Differences from the recorded results are added to the document as faults.
    """
    template = spec.description.template
    usual = spec.description.base_url if template is None else template.example
    base_url = document.text("base_url", required=usual is None) or usual or ""
    operations = document.table("operations", required=True)
    seen = {}
    for name in operations.values:
        if name not in spec.operations:
            operations.skip(name)
            operations.fault(name, "is not an operation of the connector")
            continue
        each = _Replay(spec, name, base_url)
        seen[name] = [outcome for table in operations.tables(name, 20) for outcome in each.run(table)]
    document.close()
    return {name: seen.get(name, []) for name in spec.operations}


@frozen
class _Replay:
    """Checks one operation against its fixtures, which are recorded requests and responses, without a network."""

    spec: HttpSpec
    name: str
    base_url: str

    def run(self, table: FileTable) -> list[str]:
        """Replay one fixture, and return the outcomes that occurred.

        Differences from the recorded result are added to the table as faults.
        """
        operation, inputs = self.spec.operations[self.name], table.object("inputs") or {}
        outcome = self._ask(operation, inputs, table)
        seen = [table.choice("outcome", _OUTCOMES, "done")]
        message = table.text("message", required=False)
        if outcome is not None:
            _compare(table, "outcome", seen[0], _name_outcome(outcome))
            self._compare_output(table, operation, outcome)
            if message and message not in (outcome.fault.message if outcome.fault else ""):
                table.fault("message", f"is not in: {outcome.fault.message if outcome.fault else None}")
        looked = table.optional_table("reconcile")
        if looked is not None and outcome is not None:
            self._look(looked, operation, inputs)
            seen.append("reconcile")
        table.close()
        return seen

    def _ask(self, operation: HttpOperation, inputs: Mapping[str, JSON], table: FileTable) -> Outcome | None:
        """Build the request, compare it with the recorded one, and return the outcome of the recorded responses.

        :return: None if no request can be built or a recorded response is not valid. A fault is then added.
        """
        scope = ReferenceScope(inputs, _KEY)
        expected = table.optional_table("request")
        try:
            more = table.tables("more_answers", 20, required=False)
            again = table.optional_table("again")
            if again is not None:
                read_answer(again, scope)
            answers = [read_answer(each, scope) for each in (table.table("answer", required=True), *more)]
            request = prepare(self.spec, operation, self.base_url, scope)
            if expected is not None:
                base_url = self.spec.description.url_of(operation.place, self.base_url)
                _compare_request(expected, request, base_url, scope)
        except AileronError as error:
            table.fault("inputs", f"make no request: {error.fault().message}")
            return None
        outcome, asked = _read_all(self.spec.description.name, operation, request, answers)
        if asked != len(answers):
            table.fault("more_answers", f"must hold the answers of all pages: {asked} are asked for")
        return outcome

    def _compare_output(self, table: FileTable, operation: HttpOperation, outcome: Outcome) -> None:
        _compare(table, "output", table.json("output"), outcome.output)
        schema = operation.operation.output_schema
        if schema is not None and outcome.fault is None and not fits(outcome.output, schema):
            table.fault("output", "is not what the operation's own `output` declares")

    def _look(self, table: FileTable, operation: HttpOperation, inputs: Mapping[str, JSON]) -> None:
        """Replay a recorded search for the operation's effect, and add a fault for each difference."""
        if operation.lookup is None:
            table.faults.add(table.path, f"{self.name} declares no `reconcile`")
            return
        sought = Sought(self.name, inputs, self.base_url, _KEY, _NOW, _NOW)
        read = self.spec.operations[operation.lookup.operation]
        outcome = self._ask(read, operation.lookup.inputs_for(sought), table)
        finding, expected = None, table.choice("finding", tuple(_FINDINGS.values()), "happened")
        if outcome is not None:
            finding = operation.lookup.finding(self.spec.description.name, outcome, sought, _LATER, Redactor.of())
            _compare(table, "finding", expected, _FINDINGS[finding.happened])
            _compare(table, "output", table.json("output"), finding.output)
        table.close()


def _read_all(
    fqn: str, operation: HttpOperation, request: Request, answers: Sequence[ServiceAnswer]
) -> tuple[Outcome, int]:
    """Read the recorded responses of all pages. Return the outcome and the number of pages requested."""
    if operation.pages is None:
        return Reader(fqn, operation, Redactor.of()).outcome(answers[0], _NOW), 1
    one, left, asked = Reader(fqn, evolve(operation, result=None), Redactor.of()), iter(answers), list[Request]()

    async def ask(following: Request, _most_bytes: int) -> FetchedPage:
        asked.append(following)
        answer = next(left, ServiceAnswer(200, {}, b""))
        return FetchedPage(one.outcome(answer, _NOW), answer.headers)

    reader, found = (
        PageReader(fqn, operation.pages, operation.result, operation.max_response_bytes, ask),
        list[Outcome](),
    )
    Deferred.fromCoroutine(reader.read(request)).addCallback(found.append)
    return found[0], len(asked)


def _name_outcome(outcome: Outcome) -> str:
    if outcome.fault is None:
        return "done"
    return "refused" if outcome.classified else "unknown"


def _compare_request(table: FileTable, request: Request, base_url: str, scope: ReferenceScope) -> None:
    path, _, query = request.url.removeprefix(base_url).partition("?")
    body = "" if request.parts else (request.body or b"").decode("utf-8")
    _compare(table, "method", table.text("method"), request.method)
    _compare(table, "path", table.text("path"), path)
    _compare(table, "query", _listed(render(table.object("query") or {}, scope)), _parsed(query))
    sent = {name.lower(): text for name, text in request.headers}
    for name, text in (table.object("headers") or {}).items():
        _compare(table, "headers", render(text, scope), sent.get(name.lower()))
    if request.parts:
        _compare(table, "parts", render(table.json("parts"), scope), [each.review() for each in request.parts])
    elif "json" in table.values:
        _compare(table, "json", _rendered(table, scope).decode("utf-8"), body)
    elif "form" in table.values:
        _compare(table, "form", _listed(render(table.object("form") or {}, scope)), _parsed(body))
    else:
        _compare(table, "text", render(table.text("text", required=False), scope), body)
    table.close()


def _listed(given: object) -> JSON:
    """Return a table in which each name has a list of values, as in a parsed query. A single value becomes a list."""
    pairs = given.items() if isinstance(given, Mapping) else ()
    return {name: list(value) if isinstance(value, list) else [value] for name, value in pairs}


def _parsed(query: str) -> JSON:
    return {name: list(values) for name, values in parse_qs(query, keep_blank_values=True).items()}


def _rendered(table: FileTable, scope: ReferenceScope) -> bytes:
    value = render(table.json("json"), scope)
    return canonical(None if isinstance(value, Omitted) else value)


def read_answer(table: FileTable, scope: ReferenceScope) -> ServiceAnswer:
    """Read a recorded response, which may refer to the effect key. The keys C{json} and C{text} contain its body."""
    status, headers = table.integer("status", 100, 599), table.object("headers") or {}
    body = table.text("text", required=False).encode("utf-8")
    if "json" in table.values:
        body = _rendered(table, scope)
    table.close()
    return ServiceAnswer(status or 200, {name.lower(): str(text) for name, text in headers.items()}, body)


def _compare(table: FileTable, key: str, expected: object, found: object) -> None:
    if expected != found:
        wanted, there = (json.dumps(value, ensure_ascii=False, default=str) for value in (expected, found))
        table.fault(key, f"is expected to be {wanted}, and is {there}")
