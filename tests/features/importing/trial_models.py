"""Imports large Discovery, AWS and GraphQL documents, and calls three operations of each.

``python -m tests.features.importing.trial_models DIRECTORY [NAME=SCHEMA.graphql …]``: fetches GitHub's schema into a
directory, and takes all else from the packages of Google's and AWS's clients.  It prints rows for
``doc/importing-an-api.md``, and fails if a file has a fault, or a request is not what those clients would send, or the
schema allows.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import attrs
from graphql import build_client_schema, build_schema
from twisted.internet.task import Clock

from aileron.actions import KnownValues, check_arguments, parse, resolve
from aileron.connectors import HttpConnector
from aileron.connectors._schema import read_file
from aileron.connectors._streaming import OpeningTransport
from aileron.connectors.kinds.http import HttpSpec
from aileron.features.importing.description import ApiDescription, OperationSummary
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from aileron.model.connectors import READ, WRITE
from aileron.model.errors import AileronError
from tests.connectors.service import NOW
from tests.features.importing import judges
from tests.features.importing.reading import NAME, call
from tests.features.importing.trial import TITLES, Result, _arguments, _marks, find_faults
from tests.functional import npm

PACKAGES = {"@octokit/graphql-schema": "15.26.1"}
GOOGLE = ("calendar.v3", "drive.v3", "sheets.v4", "gmail.v1")
AWS = ("sqs", "dynamodb", "lambda")
NAMES = (*(f"Google {each}" for each in GOOGLE), *(f"AWS {each}" for each in AWS), "GitHub GraphQL", "Linear GraphQL")
_PLACE = "https://double.example"
_REASONS = (
    "cannot upload",
    "uploads a file",
    "stream of events",
    "table of headers",
    "not checked, as there are too many",
    "may be null",
    "nested too deeply",
)

Judge = Callable[[str, list[judges.Given]], judges.Double]


def try_document(data: bytes, judge: Judge) -> Result:
    """Import each operation by itself, and call three that came in full: one that reads, and two that write."""
    reader, found, left = read_api(data, "", _PLACE), Result(len(data)), [READ, WRITE, WRITE]
    for each in reader.list_operations():
        found.operations += 1
        description = reader.describe(NAME, (each,))
        written = write_connector(description)
        kind = "refused" if written.refused else "marked" if _marks(written, each) else "full"
        found.counts[kind] += 1
        reasons = (*written.refused.values(), *_marks(written, each))
        found.reasons.update(next((words for words in _REASONS if words in reason), reason[:40]) for reason in reasons)
        if written.refused:
            continue
        found.faults += [f"{each.name}: {fault}" for fault in find_faults(written)]
        effect = description.operations[0].effect
        if kind == "full" and effect in left and (problem := _call(description, each, judge)) is not None:
            left.remove(effect)
            found.called.append(each.key)
            found.faults += [f"{each.name}: {problem}"] if problem else []
    return found


def _call(description: ApiDescription, chosen: OperationSummary, judge: Judge) -> str | None:
    """Call it at a double; empty: it went well, and L{None}: no sample of its arguments could be made."""
    one = attrs.evolve(description.operations[0], host="", scopes=())
    path = description.base_url.partition("://")[2].partition("/")[2]
    place = f"{_PLACE}/{path}".rstrip("/")
    plain = attrs.evolve(description, base_url=place, variables=(), hosts={}, credential=None, operations=(one,))
    written = write_connector(plain)
    spec = read_file(written.connector.text.encode(), "x.toml").spec
    assert isinstance(spec, HttpSpec)
    action = parse(written.actions[0].text.encode(), "x.md")
    try:
        arguments = check_arguments(action, _arguments(action))
    except AileronError:
        return None
    given = [(each.place, each.steps, arguments[each.name]) for each in one.parameters if each.name in arguments]
    try:
        double = judge(chosen.key, given)
    except judges.NoSample:
        return None
    connector = HttpConnector(spec, cast(OpeningTransport, double), Clock(), lambda: NOW)
    request = connector.prepare(chosen.name, resolve(action.steps[0], KnownValues(arguments)), place, "key")
    outcome = call(spec, double, request)
    return next((each for each in double.judged if each), outcome.fault.message if outcome.fault else "")


def _documents(directory: Path, schemas: dict[str, Path]) -> Iterator[tuple[str, bytes, Judge]]:
    """Yield the name of each document, itself, and who judges requests."""
    cache = Path(import_module("googleapiclient.discovery_cache").__file__ or "").parent / "documents"
    for name in GOOGLE:
        data = (cache / f"{name}.json").read_bytes()
        yield f"Google {name}", data, judges.google(json.loads(data))
    models = Path(import_module("botocore").__file__ or "").parent / "data"
    for name in AWS:
        data = gzip.decompress(max(models.glob(f"{name}/*/service-2.json.gz")).read_bytes())
        yield f"AWS {name}", data, judges.aws(json.loads(data))
    npm.fetch(directory, PACKAGES)
    data = (directory / "node_modules/@octokit/graphql-schema/schema.json").read_bytes()
    yield "GitHub GraphQL", data, judges.graphql(build_client_schema(json.loads(data), assume_valid=True))
    for name, path in schemas.items():
        yield f"{name} GraphQL", path.read_bytes(), judges.graphql(build_schema(path.read_text(), assume_valid=True))


def main(directory: Path, *schemas: str) -> int:
    """Try them all; the number of those with a fault."""
    wrong = 0
    print(f"{TITLES}\n|---|---|---|---|---|---|---|")
    given: Any = dict(each.split("=", 1) for each in schemas)
    for name, data, judge in _documents(directory, {each: Path(path) for each, path in given.items()}):
        began = time.monotonic()
        found = try_document(data, judge)
        print(found.row(name), flush=True)
        print(f"{name}: {time.monotonic() - began:.0f} s; called {', '.join(found.called)}", file=sys.stderr)
        for fault in found.faults:
            print(f"{name}: {fault}", file=sys.stderr)
        wrong += bool(found.faults) or len(found.called) < 3
    return wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
