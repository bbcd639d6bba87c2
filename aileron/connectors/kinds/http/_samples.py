"""Makes sample calls of operations with their answers, for C{aileron connector prove}.

They come from recorded answers or, without any, from the connector file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from aileron.base.json import JSON, canonical
from aileron.base.tables import FileFaults, FileTable
from aileron.connectors._answer import ServiceAnswer
from aileron.connectors._template import ReferenceScope
from aileron.model.errors import InvalidRequest

from ._fixtures import read_answer
from ._prepare import prepare
from ._spec import HttpOperation, HttpSpec
from ._when import put

Answers = Callable[[str], Sequence[ServiceAnswer]]
"""Returns a service's responses for an effect key, one for each page."""

_KEY = "sample"
_NOT_THERE = ServiceAnswer(404, {}, b"{}")


@frozen
class Sample:
    """A sample call of one operation, and the responses of its service. C{aileron connector prove} tests with it.

    :ivar done: the answer to a request that the service carries out.
    :ivar refusals: the answers to requests that the service refuses.
    :ivar again: the answer to the same request sent again, if the service then does nothing; None if unknown.
    :ivar found: the answer to a search that finds the effect of a key, or None if there is no search or it is unknown.
    :ivar nothing: the answer to a search that finds nothing.
    :ivar keyed: whether the connector finds the effect by comparing the candidates in C{found} with the key. If false,
        its search requests the effect of one key.
    :ivar recorded: whether the responses were recorded. If not, they are derived from the file.
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
class SampleMaker:
    """Makes the sample calls of one connector, with which C{aileron connector prove} tests the connector."""

    spec: HttpSpec
    base_url: str
    recorded: FileFaults

    def make(self) -> tuple[Mapping[str, Sample], Mapping[str, str]]:
        """Return a sample call of each operation, and the reason for each one without, by the operation's name."""
        samples, without, recorded = {}, {}, self.recorded.find_table("operations")
        for name, operation in self.spec.operations.items():
            sample = self._sample(operation, recorded.get(name, ()))
            try:
                prepare(self.spec, operation, self.base_url, ReferenceScope(sample.inputs, _KEY))
            except InvalidRequest as error:
                without[name] = f"no recorded answer gives its inputs ({error.message})"
            else:
                samples[name] = sample
        return samples, without

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
    """Return the sample with the response to a repeated PUT or DELETE (RFC 9110, 9.2.2), unless one was recorded."""
    if sample.again is not None or sample.operation.method not in ("PUT", "DELETE"):
        return sample
    gone = sample.operation.method == "DELETE"
    return evolve(sample, again=_NOT_THERE if gone else sample.done(_KEY)[0])


def _in_answer(read: HttpOperation, path: Sequence[str]) -> Sequence[str]:
    """Return the path in the response of the value that is at C{path} in the output of C{read}.

    The two differ if the operation's C{result} selects parts of the response.
    """
    part = None if read.result is None else read.result.get(path[0])
    return path if part is None else (*part.path, *path[1:])


def derive_answer(operation: HttpOperation, *more: tuple[Sequence[str], JSON]) -> ServiceAnswer:
    """Return a successful response that has each declared part, and C{more} at its paths."""
    if operation.answer == "none":
        return ServiceAnswer(204, {}, b"")
    if operation.answer in ("text", "file"):
        return ServiceAnswer(200, {"content-type": "text/plain"}, b"sample")
    content: JSON = {}
    for part in (operation.result or {}).values():  # an index in the path becomes a name here
        content = put(content, part.path, "c2FtcGxl" if part.encoded else "sample")
    when = operation.error.when
    if when is not None and when.holds(content):
        shown = {"==": not when.literal, "!=": when.literal}.get(when.relation, "sample")
        content = put(content, when.path, shown)
    for path, value in more:
        content = put(content, path, value)
    return ServiceAnswer(200, {}, canonical(content))
