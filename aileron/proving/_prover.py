"""Proves connectors: puts every operation through every trial, and sums up what holds on a card."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from attrs import define, field, frozen

from aileron.addresses import Origin, read_origin
from aileron.connectors import HttpConnector, HttpSpec, Sample, Spec, Specimen
from aileron.credentials import CODE, DEFAULT_KIND, OAuth2Document, write
from aileron.errors import AileronError
from aileron.interfaces import IConnector
from aileron.redaction import written_forms
from aileron.values import READ, ConnectorDescription, LoadError, NewBinding, canonical, utc

from ._bench import Bench, Seen
from ._double import ServiceDouble
from ._network import ProofNetwork
from ._trials import CHECKS, LOOK, SECRET, Result, Trial, controls, judge, trials

HOLDS, FAILS, NOT_APPLICABLE = "holds", "fails", "not applicable"

Make = Callable[[HttpSpec, ProofNetwork, Bench], IConnector]
"""Makes the connector that is put to the proof."""

_OTHER_KINDS: Mapping[str, str] = {
    "GitSpec": "it speaks to a git repository, for which a proof has no double yet",
    "MailSpec": "it speaks to a mail server, for which a proof has no double yet",
    "CommandSpec": "it runs a program of this machine, and a proof runs none",
}
_NO_WRITES = "no operation has an effect"


@frozen
class CheckCard:
    """What came of one check.

    :ivar verdict: L{HOLDS}, L{FAILS} or L{NOT_APPLICABLE}.
    :ivar runs: how many runs it rests on.
    :ivar control: whether a service that breaks it on purpose was noticed.
    :ivar why: why it is not applicable.
    :ivar faults: by operation and trial, what did not hold.
    """

    verdict: str
    runs: int = 0
    control: bool = False
    why: str = ""
    faults: tuple[tuple[str, str, str], ...] = ()


@frozen
class Card:
    """What holds of one connector.

    :ivar operations: that were put through trials.
    :ivar derived: those whose answers follow from the file alone.
    :ivar left_out: by operation, or by operation and check, what was not applicable, and why.
    :ivar problems: why nothing was proved.
    """

    name: str
    version: str = ""
    operations: tuple[str, ...] = ()
    derived: tuple[str, ...] = ()
    checks: Mapping[str, CheckCard] = field(factory=dict)
    left_out: Mapping[str, str] = field(factory=dict)
    problems: tuple[LoadError, ...] = ()

    @property
    def holds(self) -> bool:
        """Tell whether nothing failed."""
        return not self.problems and all(each.verdict != FAILS for each in self.checks.values())


async def prove(
    bench: Bench, specimen: Specimen, operations: Collection[str] = (), make: Make | None = None
) -> Card:
    """Prove one connector.

    :param operations: those to prove; empty: all.
    :param make: makes the connector; by default as the daemon does.
    """
    spec = specimen.spec
    if spec is None or specimen.problems:
        return Card(specimen.name, problems=specimen.problems)
    about = spec.description
    why = _why_not(spec)
    if why is not None:
        cards = {check: CheckCard(NOT_APPLICABLE, why=why) for check in CHECKS}
        return Card(about.fqn, about.version, checks=cards)
    assert isinstance(spec, HttpSpec)
    chosen = {name: each for name, each in specimen.samples.items() if not operations or name in operations}
    without = {name: why for name, why in specimen.without.items() if not operations or name in operations}
    proof = _Proof(bench, spec, specimen.base_url, make or _make)
    results, noticed = await proof.run(chosen)
    return Card(
        about.fqn,
        about.version,
        tuple(chosen),
        tuple(name for name, each in chosen.items() if not each.recorded),
        {check: _sum_up(check, results, noticed, chosen) for check in CHECKS},
        {**without, **dict(_left_out(chosen))},
    )


def _why_not(spec: Spec) -> str | None:
    if type(spec) is not HttpSpec:
        return _OTHER_KINDS.get(type(spec).__name__, "a proof has no double for connectors of this kind yet")
    need = spec.description.credential
    if need is not None and need.kind not in _MINTED:
        return f"a proof cannot make a credential of the kind {need.kind}"
    return None


def _sum_up(check: str, results: Sequence[Result], noticed: Collection[str], chosen: Mapping[str, Sample]) -> CheckCard:
    of_check = [each for each in results if check in each.applies]
    if not of_check:
        return CheckCard(NOT_APPLICABLE, why=_why_none(check, chosen))
    faults = tuple((each.operation, each.trial.title, each.faults[check]) for each in of_check if check in each.faults)
    control = check in noticed
    verdict = HOLDS if control and not faults else FAILS
    return CheckCard(verdict, len(of_check), control, faults=faults)


def _why_none(check: str, chosen: Mapping[str, Sample]) -> str:
    if not chosen:
        return "no operation could be run"
    if all(each.operation.operation.effect == READ for each in chosen.values()):
        return _NO_WRITES
    return "no operation declares how its effect is looked for" if check == LOOK else _NO_WRITES


def _left_out(chosen: Mapping[str, Sample]) -> Iterator[tuple[str, str]]:
    for name, each in chosen.items():
        if each.operation.operation.effect == READ:
            continue
        if each.operation.lookup is None and not each.operation.operation.idempotent:
            yield f"{name}, {LOOK}", "no `reconcile` is declared; an unknown outcome stays unknown"
        elif each.operation.lookup is not None and each.found is None:
            yield f"{name}, {LOOK}", "no recorded answer shows what a look finds"


def _make(spec: HttpSpec, network: ProofNetwork, bench: Bench) -> IConnector:
    return HttpConnector(spec, network.transport, bench.clock, lambda: utc(bench.clock.seconds()))


def _mint_oauth(secret: str, about: ConnectorDescription) -> bytes:
    settings = {} if about.credential is None else about.credential.settings
    url = settings.get("token_url", "https://token.example/")
    return write(OAuth2Document(access_token=secret, grant=CODE, client_id="prove", token_url=url))


_MINTED: Mapping[str, Callable[[str, ConnectorDescription], bytes]] = {
    "api_key": lambda secret, _: secret.encode(),
    "basic": lambda secret, _: f"prove:{secret}".encode(),
    "oauth2": _mint_oauth,
    "aws_sigv4": lambda secret, _: canonical(
        {"access_key_id": "PROVE000000000000000", "secret_access_key": secret, "region": "prove", "service": "prove"}
    ),
}
"""By the kinds of credential, what makes one that only this proof knows."""


@define
class _Proof:
    """The proof of one connector."""

    bench: Bench
    spec: HttpSpec
    base_url: str
    make: Make
    secret: str = field(factory=lambda: f"canary:k3y/+x=42~{secrets.token_urlsafe(12)}", repr=False)

    async def run(self, samples: Mapping[str, Sample]) -> tuple[list[Result], set[str]]:
        """Run everything; all results, and the checks whose control was noticed."""
        await self._bind()
        results, noticed = list[Result](), set[str]()
        for name, sample in samples.items():
            results += await self._try_each(name, sample, list(trials(sample, self.secret)))
            decoy = f"decoy-{secrets.token_hex(12)}"
            wanted = [(check, each) for check, each in controls(sample, decoy) if check not in noticed]
            found = await self._try_each(name, sample, [each for _, each in wanted])
            noticed |= {check for (check, _), each in zip(wanted, found, strict=True) if check in each.faults}
        if (leaked := self._on_disk()) is not None:
            results.append(Result("", Trial("does all of this"), {SECRET: leaked}, frozenset({SECRET})))
        return results, noticed

    async def _try_each(self, name: str, sample: Sample, listed: Sequence[Trial]) -> list[Result]:
        about, found = self.spec.description, []
        origin = read_origin(about.url_of(sample.operation.place, self.base_url))
        origins: list[Origin] = [origin, *(read_origin(about.url_of(each, self.base_url)) for each in about.places)]
        network = ProofNetwork(self.bench.reactor, origins)
        double = ServiceDouble(self.bench.clock, sample)
        network.listen(double)
        connector = self.make(self.spec, network, self.bench)
        self.bench.offer(connector, name, sample.inputs)
        try:
            for trial in listed:
                double.begin(trial.moves, trial.shows)
                network.begin(refusing=trial.refusing)
                try:
                    seen = await self.bench.run(sample.inputs, double, network)
                except AileronError as error:
                    seen = Seen((), "", "", error.message)
                found.append(judge(name, trial, double, network, seen, self.secret))
        finally:
            await network.close()
        return found

    async def _bind(self) -> None:
        about = self.spec.description
        kind = about.credential.kind if about.credential else DEFAULT_KIND
        unplaced = about.template.unplaced if about.template is not None else ()
        variables = {each.name: each.default or each.example for each in unplaced}
        await self.bench.bind(
            NewBinding(
                kind=kind,
                service="proof",
                identity="prove",
                connector=about.fqn,
                secret=_MINTED[kind](self.secret, about),
                base_url=None if about.base_url == self.base_url else self.base_url,
                scope=about.scope(self.base_url, variables),
            )
        )

    def _on_disk(self) -> str | None:
        """Tell whether the secret lies in a file of the home that it was used in."""
        forms = [each.text.encode("utf-8") for each in written_forms(self.secret)]
        for path in self.bench.home.root.rglob("*"):
            if path.is_file() and any(form in path.read_bytes() for form in forms):
                return f"the secret is in the file {path.name}"
        return None
