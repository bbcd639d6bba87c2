"""Proves connectors: runs every operation through every trial, and summarizes the results on a card."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from attrs import field, frozen
from twisted.logger import Logger

from aileron.addresses import read_origin
from aileron.connectors import HttpConnector, HttpSpec, Sample, Specimen
from aileron.credentials import CODE, DEFAULT_KIND, OAuth2Document, write
from aileron.errors import AileronError
from aileron.interfaces import IConnector
from aileron.redaction import written_forms
from aileron.values import READ, LoadError, NewBinding, canonical, utc

from ._bench import Bench, Seen
from ._trials import LOOK, ONCE, SECRET, TRUTH, Result, Trial, judge, list_controls, list_trials

_log = Logger()

CHECKS = (ONCE, TRUTH, SECRET, LOOK)
HOLDS, FAILS, NOT_APPLICABLE = "holds", "fails", "not applicable"

Make = Callable[[HttpSpec, Bench], IConnector]
"""Makes the connector that is put to the proof."""

_MINTED: Mapping[str, Callable[[str], bytes]] = {
    "api_key": str.encode,
    "basic": lambda secret: f"prove:{secret}".encode(),
    "oauth2": lambda secret: write(
        OAuth2Document(access_token=secret, grant=CODE, client_id="prove", token_url="https://token.example/")
    ),
    "aws_sigv4": lambda secret: canonical(
        {"access_key_id": "PROVE000000000000000", "secret_access_key": secret, "region": "prove", "service": "prove"}
    ),
}
"""Makes a credential for a proof, by the kind of credential."""


@frozen
class Check:
    """The result of one check, over all runs.

    :ivar control: whether a service that breaks it on purpose was noticed.
    :ivar why: why it is not applicable.
    :ivar faults: what did not hold.
    """

    verdict: str
    runs: int = 0
    control: bool = False
    why: str = ""
    faults: tuple[Result, ...] = ()


@frozen
class ProofCard:
    """The results for one connector.

    :ivar operations: that were put through trials.
    :ivar remarks: by operation, what was not applicable, or what else a reader should know.
    :ivar problems: why nothing was proved.
    """

    connector: str
    version: str = ""
    operations: tuple[str, ...] = ()
    checks: Mapping[str, Check] = field(factory=dict)
    remarks: Mapping[str, str] = field(factory=dict)
    problems: tuple[LoadError, ...] = ()

    @property
    def holds(self) -> bool:
        """Tell whether nothing failed."""
        return not self.problems and all(each.verdict != FAILS for each in self.checks.values())


async def prove(
    bench: Bench, specimen: Specimen, operations: Collection[str] = (), make: Make | None = None
) -> ProofCard:
    """Prove one connector.

    :param operations: those to prove; empty: all.
    :param make: makes the connector; L{None}: as the daemon does.
    """
    spec = specimen.spec
    if spec is None or specimen.problems:
        return ProofCard(specimen.name, problems=specimen.problems)
    about, need = spec.description, spec.description.credential
    why = "" if type(spec) is HttpSpec else "only connectors of the kind http can be proved"
    if need is not None and need.kind not in _MINTED:
        why = why or f"no credential of the kind {need.kind} can be made for a proof"
    if why or not isinstance(spec, HttpSpec):
        checks = {check: Check(NOT_APPLICABLE, why=why) for check in CHECKS}
        return ProofCard(about.fqn, about.version, checks=checks)
    samples = {name: each for name, each in specimen.samples.items() if not operations or name in operations}
    remarks = {name: why for name, why in specimen.without.items() if not operations or name in operations}
    remarks |= {name: remark for name, each in samples.items() if (remark := _remark(each))}
    results, noticed = await _Proof(bench, spec, specimen.base_url, make or _make).run(samples)
    checks = {check: _sum_up(check, results, check in noticed) for check in CHECKS}
    if need is None:
        checks[SECRET] = Check(NOT_APPLICABLE, why="the connector needs no credential")
    return ProofCard(about.fqn, about.version, tuple(samples), checks, remarks)


def _sum_up(check: str, results: Sequence[Result], control: bool) -> Check:
    found = [each for each in results if each.check == check]
    if not found:
        why = "no operation has an effect" if check == ONCE else "no operation looks for its effect"
        return Check(NOT_APPLICABLE, why=why)
    faults = tuple(each for each in found if each.message)
    return Check(HOLDS if control and not faults else FAILS, len(found), control, faults=faults)


def _remark(sample: Sample) -> str:
    operation = sample.operation.operation
    remarks = [] if sample.recorded else ["no recorded answers, so they were made up from the file"]
    if operation.effect != READ and sample.found is None:
        if operation.reconcilable:
            remarks.append("no recorded answer shows how its effect is found")
        elif not operation.idempotent:
            remarks.append("no `reconcile`, so an unknown outcome stays unknown")
    return "; ".join(remarks)


def _make(spec: HttpSpec, bench: Bench) -> IConnector:
    return HttpConnector(spec, bench.network.transport, bench.clock, lambda: utc(bench.clock.seconds()))


@frozen
class _Proof:
    """The proof of one connector."""

    bench: Bench
    spec: HttpSpec
    base_url: str
    make: Make
    secret: str = field(factory=lambda: f"canary:k3y/+x=42~{secrets.token_urlsafe(12)}", repr=False)

    async def run(self, samples: Mapping[str, Sample]) -> tuple[list[Result], set[str]]:
        """Run everything; all results, and the checks whose control was noticed."""
        urls = (
            self.base_url,
            *(self.spec.description.url_of(each, self.base_url) for each in self.spec.description.places),
        )
        self.bench.network.origins = [read_origin(each) for each in urls]
        connector, results, noticed = self.make(self.spec, self.bench), list[Result](), set[str]()
        await self._bind()
        for name, sample in samples.items():
            self.bench.offer(connector, name, sample.inputs)
            for trial in list_trials(sample, self.secret):
                results += await self._try(name, trial, sample)
            for check, trial in list_controls(sample, f"decoy-{secrets.token_hex(12)}"):
                if check not in noticed:
                    found = await self._try(name, trial, sample)
                    noticed |= {each.check for each in found if each.check == check and each.message}
        return [*results, *self._find_on_disk()], noticed

    async def _try(self, name: str, trial: Trial, sample: Sample) -> Iterator[Result]:
        self.bench.double.begin(sample, trial.moves, trial.shows)
        self.bench.network.begin(refusing=trial.refusing)
        if trial.logged:
            _log.info("the log of a proof repeats {decoy}", decoy=trial.decoy)
        try:
            seen = await self.bench.run(sample.inputs)
        except AileronError as error:
            seen = Seen((), message=error.message)
        return judge(name, trial, self.bench, seen, self.secret)

    async def _bind(self) -> None:
        about = self.spec.description
        kind = about.credential.kind if about.credential else DEFAULT_KIND
        unplaced = about.template.unplaced if about.template is not None else ()
        binding = NewBinding(
            kind=kind,
            service="proof",
            identity="prove",
            connector=about.fqn,
            secret=_MINTED[kind](self.secret),
            base_url=None if about.base_url == self.base_url else self.base_url,
            scope=about.scope(self.base_url, {each.name: each.default or each.example for each in unplaced}),
        )
        await self.bench.bind(binding)

    def _find_on_disk(self) -> Iterator[Result]:
        """Yield a fault for each file of the bench's home in which the secret lies unencrypted."""
        forms = [each.text.encode("utf-8") for each in written_forms(self.secret)]
        for path in filter(lambda each: each.is_file(), self.bench.home.root.rglob("*")):
            data = path.read_bytes()
            if any(form in data for form in forms):
                yield Result("all", "does all of this", SECRET, f"the secret is in the file {path.name}")
