"""Sample requests and answers of a service, from recorded answers or, without any, from the connector file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from aileron.base.files import Unreadable
from aileron.base.json import JSON, canonical
from aileron.base.load_error import LoadError
from aileron.base.tables import FileFaults, FileTable
from aileron.base.toml import NotToml, read_toml
from aileron.model.errors import InvalidRequest

from ._answer import ServiceAnswer
from ._files import BOUNDARY, ConnectorFile, all_files, one_file, read_fixtures
from ._fixtures import read_answer, replay_file
from ._schema import Spec, read_connector
from ._template import ReferenceScope
from .kinds.http._prepare import prepare
from .kinds.http._spec import HttpOperation, HttpSpec
from .kinds.http._when import put

Answers = Callable[[str], Sequence[ServiceAnswer]]
"""From an effect key to what a service answers, one answer for each page."""

_KEY = "sample"
_NOT_THERE = ServiceAnswer(404, {}, b"{}")


@frozen
class Sample:
    """One operation with inputs, and the answers of its service.

    :ivar done: to a request that it carries out.
    :ivar refusals: to requests that it does not carry out.
    :ivar again: to the same request once more, of which it makes nothing more; L{None}: nobody says.
    :ivar found: to a look that finds the effect of a key; L{None}: there is no look, or nobody says.
    :ivar nothing: to a look that finds nothing.
    :ivar keyed: whether the connector tells the effect by what is in L{found}; else it asks for it by the key.
    :ivar recorded: whether the answers were recorded; else they follow from the file.
    """

    operation: HttpOperation
    inputs: Mapping[str, JSON]
    done: Answers = field(repr=False)
    refusals: Sequence[ServiceAnswer] = field(default=(), repr=False)
    again: ServiceAnswer | None = field(default=None, repr=False)
    found: Answers | None = field(default=None, repr=False)
    nothing: Sequence[ServiceAnswer] = field(default=(_NOT_THERE,), repr=False)
    keyed: bool = False
    recorded: bool = True


@frozen
class Specimen:
    """A connector file with a sample of each operation that has one.

    :ivar base_url: where it talks to; an example where a binding says.
    :ivar without: by operation, why there is no sample.
    :ivar problems: of the file and of its recorded answers; then there is no sample.
    """

    name: str
    spec: Spec | None
    base_url: str = ""
    samples: Mapping[str, Sample] = field(factory=dict)
    without: Mapping[str, str] = field(factory=dict)
    problems: tuple[LoadError, ...] = ()


def find_specimens(place: Path, wanted: Collection[str] = ()) -> Iterator[Specimen]:
    """Yield one connector file, or those of the package and of a directory; where names are C{wanted}, only those."""
    for file in all_files(place) if place.is_dir() or not place.exists() else (one_file(str(place)),):
        found = _specimen(file, wanted)
        if found is not None:
            yield found


def _specimen(file: ConnectorFile, wanted: Collection[str]) -> Specimen | None:
    reading = read_connector(file)
    if reading.spec is None:
        return None if wanted else Specimen(file.name, None, problems=reading.problems)
    about = reading.spec.description
    if wanted and about.fqn not in wanted:
        return None
    usual = (about.base_url if about.template is None else about.template.example) or "https://service.example"
    if type(reading.spec) is not HttpSpec:
        return Specimen(about.fqn, reading.spec, usual)
    toml, has_fixtures = read_toml(""), True
    try:
        toml = read_toml(read_fixtures(file))
    except (Unreadable, NotToml) as fault:  # what is wrong with them, replaying tells
        has_fixtures = isinstance(fault, NotToml)
    replayed = replay_file(file) if has_fixtures else None
    if replayed is not None and replayed.problems:
        return Specimen(about.fqn, reading.spec, problems=replayed.problems)
    base_url = str(toml.values.get("base_url") or usual)
    return _Maker(reading.spec, base_url, FileFaults(file.name, toml, BOUNDARY)).specimen()


@frozen
class _Maker:
    """Makes the samples of one connector."""

    spec: HttpSpec
    base_url: str
    recorded: FileFaults

    def specimen(self) -> Specimen:
        """Make all samples."""
        samples, without, recorded = {}, {}, self.recorded.toml.values.get("operations", {})
        for name, operation in self.spec.operations.items():
            sample = self._sample(operation, recorded.get(name, ()))
            try:
                prepare(self.spec, operation, self.base_url, ReferenceScope(sample.inputs, _KEY))
            except InvalidRequest as error:
                without[name] = f"no recorded answer gives its inputs ({error.message})"
            else:
                samples[name] = sample
        return Specimen(self.spec.description.fqn, self.spec, self.base_url, samples, without)

    def _sample(self, operation: HttpOperation, given: Sequence[Mapping[str, Any]]) -> Sample:
        first = next((each for each in given if each.get("outcome", "done") == "done"), None)
        refusals = [self._read(each, {})(_KEY)[0] for each in given if each.get("outcome") == "refused"]
        if first is None:
            derived, inputs = derive_answer(operation), dict.fromkeys(sorted(operation.inputs), _KEY)
            return _with_repeat(Sample(operation, inputs, lambda _: [derived], refusals, recorded=False))
        inputs, look, lookup = first.get("inputs", {}), first.get("reconcile"), operation.lookup
        again = None if "again" not in first else self._read({"answer": first["again"]}, inputs)(_KEY)[0]
        sample = Sample(operation, inputs, self._read(first, inputs), refusals, again)
        if lookup is not None and look is not None and look.get("finding", "happened") == "happened":
            read = self.spec.operations[lookup.operation]
            empty = derive_answer(read, (_in_answer(read, lookup.items), [])) if lookup.items else _NOT_THERE
            sample = evolve(sample, found=self._read(look, inputs), nothing=[empty], keyed=lookup.match is not None)
        return _with_repeat(sample)

    def _read(self, recorded: Mapping[str, Any], inputs: Mapping[str, JSON]) -> Answers:
        tables = [
            FileTable(each, (), self.recorded) for each in (recorded["answer"], *recorded.get("more_answers", ()))
        ]
        return lambda key: [read_answer(each, ReferenceScope(inputs, key)) for each in tables]


def _with_repeat(sample: Sample) -> Sample:
    """Add what a PUT or DELETE is answered the second time (RFC 9110, 9.2.2), unless that was recorded."""
    if sample.again is not None or sample.operation.method not in ("PUT", "DELETE"):
        return sample
    gone = sample.operation.method == "DELETE"
    return evolve(sample, again=_NOT_THERE if gone else sample.done(_KEY)[0])


def keys_of(effect_key: str) -> tuple[str, str]:
    """Return the forms in which a request may carry an effect key."""
    return effect_key, str(ReferenceScope({}, effect_key).value("effect.uuid"))


def _in_answer(read: HttpOperation, path: Sequence[str]) -> Sequence[str]:
    """Return where in the answer that part is which is at C{path} of the output."""
    part = None if read.result is None else read.result.get(path[0])
    return path if part is None else (*part.path, *path[1:])


def derive_answer(operation: HttpOperation, *more: tuple[Sequence[str], JSON]) -> ServiceAnswer:
    """Make an answer of success that has each part that the file names, and C{more} at its paths."""
    if operation.answer == "none":
        return ServiceAnswer(204, {}, b"")
    if operation.answer in ("text", "file"):
        return ServiceAnswer(200, {"content-type": "text/plain"}, b"sample")
    content: JSON = {}
    for part in (operation.result or {}).values():  # an index in its path is a name here, which is read alike
        content = put(content, part.path, "c2FtcGxl" if part.encoded else "sample")
    when = operation.error.when
    if when is not None and when.holds(content):
        shown = {"==": not when.literal, "!=": when.literal}.get(when.relation, "sample")
        content = put(content, when.path, shown)
    for path, value in more:
        content = put(content, path, value)
    return ServiceAnswer(200, {}, canonical(content))
