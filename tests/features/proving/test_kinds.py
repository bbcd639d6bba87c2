"""Proofs of connectors of each kind beside http: the right ones hold, and each check notices what it is for."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from aileron.features.proving._bench import Bench, with_bench
from aileron.features.proving._benches import set_up
from aileron.features.proving._prover import FAILS, HOLDS, NOT_APPLICABLE, ProofCard, prove
from tests.extent import Turns

from .kinds import FILES, TRIED, WRONG
from .test_prove import ProofTestCase, _running_reactor


class KindTests(ProofTestCase):
    """Each kind against its double."""

    async def check_kind(self, kind: str) -> None:
        """Prove the right connector of a kind, and a wrong one, or all of them: each takes as long as the right one."""
        specimen, operations = self.written(FILES[kind], None), (TRIED[kind],)
        wrong = Turns(kind).of(*WRONG[kind].items())

        async def work(bench: Bench) -> list[ProofCard]:
            makes = (None, *(make for _, (make, _) in wrong))
            return [await prove(bench, specimen, operations, each) for each in makes]

        right, *cards = await with_bench(_running_reactor(), work)
        looks = HOLDS if kind in ("git", "mail") else NOT_APPLICABLE
        self.assertEqual(self.verdicts(right), [HOLDS, HOLDS, HOLDS, looks], right)
        controls = [each.control for each in right.checks.values() if each.verdict == HOLDS]
        self.assertTrue(controls and all(controls))
        for card, (what, (_, check)) in zip(cards, wrong, strict=True):
            self.assertEqual(card.checks[check].verdict, FAILS, (what, card))
            self.assertTrue(card.checks[check].faults, what)

    async def test_git(self) -> None:
        """A push is done once, told truthfully and found by the ref; a wrong connector is noticed."""
        await self.check_kind("git")

    async def test_mail(self) -> None:
        """A message is sent once, told truthfully and found by its identifier; a wrong connector is noticed."""
        await self.check_kind("mail")

    async def test_command(self) -> None:
        """A program runs once and its end is told truthfully; a wrong connector is noticed."""
        await self.check_kind("command")

    async def test_foreign_variables(self) -> None:
        """No value of a variable of the file reaches the program of a proof: it could make the shell run a command."""
        told = "SHELLOPTS = 'xtrace'\nPS4 = '$(touch /tmp/foreign)'\n"
        for kind, table in (("command", "[command.environment]\n"), ("stdio", "[mcp.environment]\n")):
            specimen = self.written(FILES[kind].replace("[credential]", f"{table}{told}[credential]"), None)

            async def work(bench: Bench, specimen: Any = specimen) -> Any:
                rig: Any = set_up(specimen, bench)
                return rig.spec

            spec = await with_bench(_running_reactor(), work)
            environment = spec.environment if kind == "command" else spec.local.environment
            self.assertEqual(environment.variables, {"SHELLOPTS": "sample", "PS4": "sample"})

    async def test_cancelled(self) -> None:
        """A proof that is cancelled within a run, as by Ctrl-C, ends, and its process with it."""
        specimen, benches = self.written(FILES["stdio"], None), list[Bench]()

        async def work(bench: Bench) -> ProofCard:
            benches.append(bench)
            return await prove(bench, specimen)

        under_way = Deferred.fromCoroutine(with_bench(_running_reactor(), work))
        while not (benches and benches[0].processes.running):
            await deferLater(_running_reactor(), 0.01)
        under_way.cancel()
        await self.assertFailure(under_way, CancelledError)
        self.assertEqual(benches[0].processes.running, 0)
        self.assertFalse(benches[0].home.root.exists())

    async def test_mcp(self) -> None:
        """A tool of a server over HTTP is called once, as it was reviewed; a wrong connector is noticed."""
        await self.check_kind("mcp")

    async def test_stdio(self) -> None:
        """A tool of a local server is called once; a wrong connector is noticed."""
        await self.check_kind("stdio")
