"""Tests connectors: runs every operation in every trial (a fault of the service), and summarizes the results."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import field, frozen
from twisted.logger import Logger

from aileron.base.load_error import LoadError
from aileron.connectors import Specimen
from aileron.credentials import DEFAULT_KIND, KINDS
from aileron.model.actions import Action
from aileron.model.connectors import READ
from aileron.model.errors import AileronError
from aileron.model.interfaces.connectors import IConnector
from aileron.model.vault import NewBinding
from aileron.redaction import written_forms

from ._bench import Bench, Seen
from ._benches import Make, maker_of, set_up
from ._double import Case
from ._trials import LOOK, ONCE, SECRET, TRUTH, Result, Rig, Trial, judge
from .actions import ProofCall, call_action, make_call

_log = Logger()

CHECKS = (ONCE, TRUTH, SECRET, LOOK)
_WHY_NOT = {ONCE: "no operation with an effect was run", LOOK: "no look for an effect was tried"}
HOLDS, FAILS, NOT_APPLICABLE = "holds", "fails", "not applicable"


@frozen
class Check:
    """The result of one check over all runs of an operation or of an action in a proof.

    :ivar runs: the number of results; for an action, of trials.
    :ivar control: whether the check noticed a service that breaks it on purpose. False for an action, which has no such
        service.
    :ivar why: why the check is not applicable; empty if it is.
    :ivar faults: the results that failed.
    """

    verdict: str
    runs: int = 0
    control: bool = False
    why: str = ""
    faults: tuple[Result, ...] = ()


@frozen
class ProofCard:
    """The results of the proof of one connector, in which it was tested against a double of its service.

    :ivar operations: the operations that were tested.
    :ivar remarks: for each operation: why it was not tested, or what else the reader should know.
    :ivar problems: faults of the connector's file; if there are any, nothing was tested.
    :ivar actions: the results of installed actions that use the connector, by name.
    """

    connector: str
    version: str = ""
    operations: tuple[str, ...] = ()
    checks: Mapping[str, Check] = field(factory=dict)
    remarks: Mapping[str, str] = field(factory=dict)
    problems: tuple[LoadError, ...] = ()
    actions: Mapping[str, Check] = field(factory=dict)

    @property
    def holds(self) -> bool:
        """True if the proof succeeded: no check failed and the file has no faults."""
        found = (*self.checks.values(), *self.actions.values())
        return not self.problems and all(each.verdict != FAILS for each in found)


async def prove(
    bench: Bench,
    specimen: Specimen,
    operations: Collection[str] = (),
    make: Make | None = None,
    actions: Iterable[Action] = (),
) -> ProofCard:
    """Test one connector. If its file has faults, the card has only these.

    :param operations: the operations to test; empty for all.
    :param make: makes the connector; None to make it as the daemon does.
    :param actions: the installed actions. Those that use the connector are tested too.
    """
    spec = specimen.spec
    if specimen.kind is None or specimen.problems:
        return ProofCard(specimen.name, problems=specimen.problems)
    about, need = spec.description, spec.description.credential
    kind, secret = DEFAULT_KIND if need is None else need.kind, f"canary:k3y/+x=42~{secrets.token_urlsafe(12)}"
    kept = KINDS[kind].make_sample(secret)
    none = f"no credential of the kind {kind} can be made for a proof"
    rig = none if kept is None else set_up(specimen, bench)
    if kept is None or isinstance(rig, str):
        checks = {check: Check(NOT_APPLICABLE, why=str(rig)) for check in CHECKS}
        return ProofCard(about.name, about.version, checks=checks)
    cases = {name: each for name, each in rig.cases.items() if not operations or name in operations}
    remarks = {name: why for name, why in rig.without.items() if not operations or name in operations}
    remarks |= {name: remark for name, each in cases.items() if (remark := _remark(each))}
    proof = _Proof(bench, rig, (make or maker_of(specimen.kind))(rig.spec, bench), secret, kept)
    results, noticed = await proof.run(cases)
    checks = {check: _sum_up(check, results, check in noticed) for check in CHECKS}
    if need is None:
        checks[SECRET] = Check(NOT_APPLICABLE, why="the connector needs no credential")
    used = [each for each in actions if any(step.connector == about.name for step in each.steps)]
    tried = {each.name: await proof.run_action(each, cases) for each in used}
    return ProofCard(about.name, about.version, tuple(cases), checks, remarks, actions=tried)


def _sum_up(check: str, results: Sequence[Result], control: bool) -> Check:
    found = [each for each in results if each.check == check]
    if not found:
        return Check(NOT_APPLICABLE, why=_WHY_NOT.get(check, "no operation was run"))
    faults = tuple(each for each in found if each.message)
    return Check(HOLDS if control and not faults else FAILS, len(found), control, faults=faults)


def _remark(case: Case) -> str:
    operation, sample = case.operation, case.sample
    remarks = [] if sample is None or sample.recorded else ["no recorded answers, so they were made up from the file"]
    if operation.effect != READ and not case.looks:
        if operation.reconcilable:
            remarks.append("no recorded answer shows how its effect is found")
        elif not operation.idempotent:
            why = "no `reconcile`" if sample else "its effect cannot be looked for"
            remarks.append(f"{why}, so an unknown outcome stays unknown")
    return "; ".join(remarks)


@frozen
class _Proof:
    """The test of one connector.

    :ivar secret: the secret that must not appear anywhere.
    :ivar kept: the credential that contains the secret.
    """

    bench: Bench
    rig: Rig
    connector: IConnector
    secret: str = field(repr=False)
    kept: bytes = field(repr=False)

    async def run(self, cases: Mapping[str, Case]) -> tuple[list[Result], set[str]]:
        """Run all trials, and all controls, which are trials in which a check must fail.

        Return the results, and the names of the checks that failed in their control, as they should.
        """
        self.bench.network.origins, self.bench.double = self.rig.origins, self.rig.double
        results, noticed = list[Result](), set[str]()
        await self._bind()
        for case in cases.values():
            call = make_call(self.connector.describe(), case)
            self.bench.offer(self.connector, call.name, call.text)
            for trial in self.rig.trials(case, self.secret):
                results += await self._try(call, trial, case)
            for check, trial in self.rig.controls(case, f"decoy-{secrets.token_hex(12)}"):
                if check not in noticed:
                    found = await self._try(call, trial, case)
                    noticed |= {each.check for each in found if each.check == check and each.message}
        return [*results, *self._find_on_disk()], noticed

    async def run_action(self, action: Action, cases: Mapping[str, Case]) -> Check:
        """Run an installed action in each trial for actions, if it can run against the double of the service.

        If it cannot, the returned check is marked as not applicable.
        """
        try:
            call = call_action(action, self.rig.spec.description, cases)
            if isinstance(call, str):
                return Check(NOT_APPLICABLE, why=call)
            self.bench.offer(self.connector, call.name, call.text)
            self.bench.check(call.name, call.arguments)
        except AileronError as error:
            return Check(NOT_APPLICABLE, why=f"its sample arguments are refused: {error.message.rstrip('.')}")
        case, results = cases[action.steps[0].operation], list[Result]()
        for trial in filter(lambda each: each.for_actions, self.rig.trials(case, self.secret)):
            results += await self._try(call, trial, case)
        faults = tuple(each for each in results if each.message)
        return Check(FAILS if faults else HOLDS, len({each.trial for each in results}), faults=faults)

    async def _try(self, call: ProofCall, trial: Trial, case: Case) -> Iterator[Result]:
        if self.bench.needs_binding:
            await self._bind()
        self.bench.double.begin(case, trial.moves, trial.shows, trial.twist)
        self.bench.network.begin(refusing=trial.refusing)
        self.bench.processes.refusing = trial.refusing
        if trial.logged:
            _log.info("the log of a proof repeats {decoy}", decoy=trial.decoy)
        try:
            seen = await self.bench.run(call.name, call.step, call.arguments)
        except AileronError as error:
            seen = Seen((), message=error.message)
        return judge(case.operation.name, trial, self.bench, seen, self.secret)

    async def _bind(self) -> None:
        about, base_url = self.rig.spec.description, self.rig.base_url
        unplaced = about.template.unplaced if about.template is not None else ()
        binding = NewBinding(
            kind=about.credential.kind if about.credential else DEFAULT_KIND,
            service="proof",
            identity="prove",
            connector=about.name,
            secret=self.kept,
            base_url=None if about.base_url == base_url else base_url,
            scope=about.scope(base_url, {each.name: each.default or each.example for each in unplaced}),
        )
        await self.bench.bind(binding)

    def _find_on_disk(self) -> Iterator[Result]:
        """Yield a failed result for each file of the temporary home that contains the secret unencrypted."""
        forms = [each.text.encode("utf-8") for each in written_forms(self.secret)]
        for path in filter(lambda each: each.is_file(), self.bench.home.root.rglob("*")):
            data = path.read_bytes()
            if any(form in data for form in forms):
                yield Result("all", "does all of this", SECRET, f"the secret is in the file {path.name}")
