"""All contenders in one run, in turn, several times."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attrs import field, frozen

from bench.table import ROUNDS

from ._contenders import DIRECT, Contender, Pinned, contenders
from ._figures import IDLE_STREAMS, OF_PROCESS, PLAIN, Bench, Measured
from ._processes import Server, cores, raise_descriptor_limit
from ._table import Round, lines, with_added
from ._tools import Upstream, compiled

Measure = Callable[[Bench, Server], Measured]

_FOR_EACH_STREAM = 2
_SPARE = 100


def report(seconds: float) -> None:
    """Print the table.

    :param seconds: that each figure takes, warming up apart.
    """
    on, descriptors = cores(), raise_descriptor_limit()
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        tools = compiled(Path(directory), on.tools)
        with tools.upstream() as upstream, tools.behind_tls(upstream) as secret:
            pinned = Pinned(Path(directory), on.measured, descriptors)
            course = Course(pinned, Bench(tools, upstream, seconds), secret)
            rounds = [course.round(number) for number in range(ROUNDS)]
    if on.measured == on.tools:
        print("one core: what is measured shares it with what measures, so no figure here says much")
    if descriptors < _FOR_EACH_STREAM * IDLE_STREAMS + _SPARE:
        print(f"a process may have {descriptors} descriptors here: too few for {IDLE_STREAMS} streams")
    for line in lines(rounds, [each.name for each in course.contenders]):
        print(line)
    for line in course.remarks():
        print(line)


@frozen
class Course:
    """What all rounds have in common.

    :ivar secret: where the upstream speaks TLS.
    :ivar errors: requests that went wrong, by contender.
    """

    pinned: Pinned
    bench: Bench
    secret: Upstream
    contenders: list[Contender] = field(factory=contenders)
    errors: Counter[str] = field(factory=Counter)

    def round(self, number: int) -> Round:
        """Each figure of all that are there, one right after the other; first of them another one each time."""
        there = [each for each in self.contenders if not each.missing]
        start = number % len(there)
        found: dict[str, dict[str, float]] = {each.name: {} for each in there[start:] + there[:start]}
        with self._started(found, self.bench.upstream) as servers:
            for measure in PLAIN:
                self._measure(measure, servers, found)
        for figure in OF_PROCESS:
            del found[DIRECT][figure]
        without_direct = {name: figures for name, figures in found.items() if name != DIRECT}
        with self._started(without_direct, self.secret) as servers:
            self._measure(Bench.tls, servers, without_direct)
        return with_added(found)

    def remarks(self) -> list[str]:
        """What one has to know to read the table."""
        about = [f"{each.name}: {each.about}" for each in self.contenders if each.about]
        missing = [f"{each.name} is not here: {each.missing}" for each in self.contenders if each.missing]
        wrong = [f"{name}: {count} requests or streams went wrong" for name, count in self.errors.items() if count]
        return about + missing + wrong

    @contextmanager
    def _started(self, names: Collection[str], upstream: Upstream) -> Iterator[dict[str, Server]]:
        """All at once: those that are not measured at the moment have nothing to do."""
        by_name = {each.name: each for each in self.contenders}
        with ExitStack() as stack:
            yield {name: stack.enter_context(by_name[name].started(self.pinned, upstream)) for name in names}

    def _measure(self, measure: Measure, servers: Mapping[str, Server], found: dict[str, dict[str, float]]) -> None:
        for name, server in servers.items():
            measured = measure(self.bench, server)
            self.errors[name] += measured.errors
            found[name].update(measured.figures)
