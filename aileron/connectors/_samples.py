"""Samples of what a service is asked and answers: from recorded answers, or, where there are none, from the file alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from aileron.errors import InvalidRequest
from aileron.files import Unreadable
from aileron.tables import FileFaults, FileTable
from aileron.toml import NotToml, read_toml
from aileron.values import JSON, LoadError, canonical

from ._answer import ServiceAnswer
from ._files import BOUNDARY, ConnectorFile, of_directory, one_file, read_fixtures, shipped
from ._fixtures import read_answer, replay_file
from ._schema import Spec, read_file
from ._template import ReferenceScope, text
from .http._prepare import prepare
from .http._spec import HttpOperation, HttpSpec

Answers = Callable[[str], Sequence[ServiceAnswer]]
"""From an effect key to what a service answers, one answer for each request of a read in pages."""

_REPEATABLE = ("PUT", "DELETE")
_PLAIN = {"Content-Type": "text/plain"}


@frozen
class Sample:
    """One operation with inputs, and the answers of its service.

    :ivar recorded: whether the answers were recorded; else they follow from the file.
    :ivar done: to a request that it carries out.
    :ivar refusals: to requests that it does not carry out.
    :ivar again: to the same request once more, of which the service makes nothing more; L{None}: nobody says.
    :ivar found: to a look, where the effect of this key is there; L{None}: there is no look, or nobody says.
    :ivar nothing: to a look, where no effect is there at all.
    :ivar keyed: whether the connector finds the effect by what is in L{found}; else the service is asked by the key.
    """

    operation: HttpOperation
    inputs: Mapping[str, JSON]
    recorded: bool
    done: Answers = field(repr=False)
    refusals: Sequence[ServiceAnswer] = field(default=(), repr=False)
    again: ServiceAnswer | None = field(default=None, repr=False)
    found: Answers | None = field(default=None, repr=False)
    nothing: Sequence[ServiceAnswer] = field(default=(), repr=False)
    keyed: bool = False


@frozen
class Specimen:
    """A connector file with a sample of each operation that has one.

    :ivar base_url: where it talks to; one of an example where a binding says.
    :ivar without: by operation, why there is no sample.
    :ivar problems: of the file and of its recorded answers; then there are no samples.
    """

    name: str
    spec: Spec | None
    base_url: str = ""
    samples: Mapping[str, Sample] = field(factory=dict)
    without: Mapping[str, str] = field(factory=dict)
    problems: tuple[LoadError, ...] = ()


def find_specimens(directory: Path | None, file: Path | None = None, fixtures: Path | None = None) -> Iterator[Specimen]:
    """Yield each connector file of the package and of C{directory}; or C{file} alone.

    :param fixtures: the file's recorded answers; L{None}: those beside it.
    """
    files = (*shipped(), *(() if directory is None else of_directory(directory)))
    for each in files if file is None else (one_file(str(file)),):
        yield _specimen(each if fixtures is None else evolve(each, fixtures=str(fixtures)))


def _specimen(file: ConnectorFile) -> Specimen:
    if file.data is None:
        return Specimen(file.name, None, problems=(file.problem,) if file.problem else ())
    reading = read_file(file.data, file.name, file.scheme)
    if reading.spec is None:
        return Specimen(file.name, None, problems=reading.problems)
    name = reading.spec.description.fqn
    if type(reading.spec) is not HttpSpec:
        return Specimen(name, reading.spec)
    try:
        toml = read_toml(read_fixtures(file))
    except (Unreadable, NotToml):
        recorded: Mapping[str, Any] = {}
        faults = FileFaults(file.name, read_toml(""), BOUNDARY)
    else:
        replayed = replay_file(file)
        if replayed.problems:
            return Specimen(name, reading.spec, problems=replayed.problems)
        recorded, faults = toml.values, FileFaults(file.name, toml, BOUNDARY)
    about = reading.spec.description
    usual = about.base_url if about.template is None else about.template.example
    maker = _Maker(reading.spec, str(recorded.get("base_url") or usual or "https://service.example"), faults)
    return maker.specimen(recorded.get("operations", {}))


@frozen
class _Maker:
    """Makes the samples of one connector."""

    spec: HttpSpec
    base_url: str
    faults: FileFaults

    def specimen(self, recorded: Mapping[str, Sequence[Mapping[str, Any]]]) -> Specimen:
        """Make all."""
        samples, without = {}, {}
        for name, operation in self.spec.operations.items():
            given = recorded.get(name, ())
            first = next((each for each in given if each.get("outcome", "done") == "done"), None)
            sample = self._derived(operation) if first is None else self._recorded(operation, first)
            try:
                prepare(self.spec, operation, self.base_url, ReferenceScope(sample.inputs, "sample"))
            except InvalidRequest as error:
                without[name] = f"no recorded answer gives its inputs ({error.message})"
                continue
            scope = ReferenceScope(sample.inputs, "sample")
            refused = [self._read(each["answer"], scope) for each in given if each.get("outcome") == "refused"]
            samples[name] = evolve(sample, refusals=refused)
        return Specimen(self.spec.description.fqn, self.spec, self.base_url, samples, without)

    def _recorded(self, operation: HttpOperation, first: Mapping[str, Any]) -> Sample:
        inputs, pages = first.get("inputs", {}), (first["answer"], *first.get("more_answers", ()))
        sample = Sample(
            operation,
            inputs,
            recorded=True,
            done=self._rendered(inputs, pages),
            again=self._read(first["again"], ReferenceScope(inputs, "sample")) if "again" in first else None,
        )
        look = first.get("reconcile")
        if operation.lookup is None or look is None:
            return self._with_repeat(sample)
        answers = (look["answer"], *look.get("more_answers", ()))
        return self._with_repeat(self._with_look(sample, self._rendered(inputs, answers)))

    def _with_repeat(self, sample: Sample) -> Sample:
        """Add what a request by PUT or DELETE is answered once more (RFC 9110, 9.2.2), unless that was recorded."""
        method = sample.operation.method
        if sample.again is not None or method not in _REPEATABLE:
            return sample
        return evolve(sample, again=ServiceAnswer(404, {}, b"{}") if method == "DELETE" else sample.done("sample")[0])

    def _rendered(self, inputs: Mapping[str, JSON], answers: Sequence[Mapping[str, Any]]) -> Answers:
        return lambda key: [self._read(each, ReferenceScope(inputs, key)) for each in answers]

    def _read(self, answer: Mapping[str, Any], scope: ReferenceScope) -> ServiceAnswer:
        return read_answer(FileTable(answer, (), self.faults), scope)

    def _derived(self, operation: HttpOperation) -> Sample:
        """Make one of the file alone."""
        inputs = {name: "sample" for name in operation.inputs}
        sample = Sample(operation, inputs, recorded=False, done=lambda _: [_answer(operation, _content(operation))])
        if operation.lookup is not None:
            sample = self._with_look(sample, lambda key: [self._shown(operation, inputs, key)])
        return self._with_repeat(sample)

    def _with_look(self, sample: Sample, found: Answers) -> Sample:
        lookup = sample.operation.lookup
        keyed = lookup is not None and lookup.match is not None
        return evolve(sample, found=found, nothing=self._nothing(sample.operation), keyed=keyed)

    def _shown(self, operation: HttpOperation, inputs: Mapping[str, JSON], key: str) -> ServiceAnswer:
        """Make the answer to a look that finds the effect."""
        assert operation.lookup is not None
        lookup, read = operation.lookup, self.spec.operations[operation.lookup.operation]
        content = _content(read)
        item: dict[str, JSON] = {}
        for part in (lookup.result or {}).values():
            _put(item, part.path, "sample")
        if lookup.match is not None:
            _put(item, lookup.match.path, text(lookup.match.text, ReferenceScope(inputs, key)))
        if lookup.items:
            _put(content, _in_answer(read, lookup.items), [item])
        else:
            for name, value in item.items():
                _put(content, _in_answer(read, (name,)), value)
        return _answer(read, content)

    def _nothing(self, operation: HttpOperation) -> Sequence[ServiceAnswer]:
        """Make the answer to a look that finds nothing: an empty list, or the status that says so."""
        assert operation.lookup is not None
        lookup, read = operation.lookup, self.spec.operations[operation.lookup.operation]
        if not lookup.items:
            return [ServiceAnswer(next(iter(sorted(lookup.absent_statuses)), 404), {}, b"{}")]
        content = _content(read)
        _put(content, _in_answer(read, lookup.items), [])
        return [_answer(read, content)]


def keys_of(effect_key: str) -> tuple[str, str]:
    """Return the forms in which a request may carry an effect key."""
    return effect_key, str(ReferenceScope({}, effect_key).value("effect.uuid"))


def _in_answer(read: HttpOperation, path: Sequence[str]) -> Sequence[str]:
    """Return where in the answer the part is that stands at C{path} of the output."""
    part = None if read.result is None else read.result.get(path[0])
    return path if part is None else (*part.path, *path[1:])


def _content(operation: HttpOperation) -> dict[str, JSON]:
    """Make what an operation answers that succeeds: each part that it names, and no failure."""
    content: dict[str, JSON] = {}
    for part in (operation.result or {}).values():
        _put(content, part.path, "c2FtcGxl" if part.encoded else "sample")
    when = operation.error.when
    if when is not None and when.holds(content):
        _put(content, when.path, {"==": not when.literal, "!=": when.literal}.get(when.relation, "sample"))
    return content


def _put(content: dict[str, JSON], path: Sequence[str], value: JSON) -> None:
    """Put a value where C{path} leads; an index is a name here, which reads alike."""
    *above, last = path
    for step in above:
        inside = content.get(step)
        if not isinstance(inside, dict):
            inside = content[step] = {}
        content = inside
    content[last] = value


def _answer(operation: HttpOperation, content: JSON) -> ServiceAnswer:
    if operation.answer == "none":
        return ServiceAnswer(204, {}, b"")
    if operation.answer in ("text", "file"):
        return ServiceAnswer(200, _PLAIN, b"sample")
    return ServiceAnswer(200, {}, canonical(content))
