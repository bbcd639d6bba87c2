"""Proofs of connectors: right ones hold, and what is wrong with others is noticed by the check that is for it."""

from __future__ import annotations

import base64
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from twisted.trial.unittest import TestCase

from aileron.cli.errors import CommandError
from aileron.cli.output import capture_lines
from aileron.connectors import HttpConnector, HttpSpec, Specimen, find_specimens
from aileron.features.proving import _bench
from aileron.features.proving._bench import Bench, with_bench
from aileron.features.proving._benches import Make
from aileron.features.proving._prover import CHECKS, FAILS, HOLDS, NOT_APPLICABLE, ProofCard, _sum_up, prove
from aileron.features.proving._trials import Result
from aileron.features.proving.commands import check_operations, show_card
from aileron.model.connectors import Outcome, Request
from aileron.model.interfaces.connectors import IConnector
from aileron.model.interfaces.vault import ICredential
from tests.extent import seldom

from .kinds import FILES
from .wrong import FILE, FIXTURES, LOOK_FIXTURE, WRONG_CODE, WRONG_FILES, maker


def _running_reactor() -> Any:
    """Trial's."""
    from twisted.internet import reactor

    return reactor


class ProofTestCase(TestCase):
    """Proves over loopback, as the command does."""

    timeout = 600  # of all that ships, on a machine that is busy

    async def proved(
        self, *specimens: Specimen, operations: Collection[str] = (), make: Make | None = None
    ) -> list[ProofCard]:
        """The cards of some connectors."""

        async def work(bench: Bench) -> list[ProofCard]:
            return [await prove(bench, each, operations, make) for each in specimens]

        return await with_bench(_running_reactor(), work)

    def written(self, text: str, fixtures: str | None = FIXTURES) -> Specimen:
        """A connector file with its recorded answers, read."""
        file = Path(self.mktemp()).absolute().with_suffix(".toml")
        file.write_text(text)
        if fixtures is not None:
            file.with_suffix(".fixtures.toml").write_text(fixtures)
        [specimen] = find_specimens(file)
        return specimen

    def verdicts(self, card: ProofCard) -> list[str]:
        """What came of each check."""
        self.assertEqual(list(card.checks), list(CHECKS))
        return [each.verdict for each in card.checks.values()]


class RightTests(ProofTestCase):
    """Connectors of which everything holds."""

    async def test_file(self) -> None:
        """All four checks of a right file hold, each with a control that was noticed."""
        (card,) = await self.proved(self.written(FILE))
        self.assertEqual(self.verdicts(card), [HOLDS] * 4, card)
        self.assertTrue(card.holds and all(each.control for each in card.checks.values()))
        self.assertEqual((card.operations, card.remarks), (("create", "close", "list"), {}))

    async def test_without_recorded_answers(self) -> None:
        """Without recorded answers the file is believed, and the card says what could not be tried, and why."""
        (card,) = await self.proved(self.written(FILE, None))
        self.assertEqual(self.verdicts(card), [HOLDS, HOLDS, HOLDS, NOT_APPLICABLE], card)
        self.assertEqual(list(card.remarks), ["create", "close", "list"])
        self.assertIn("shows how its effect is found", card.remarks["create"])

    async def test_without_credential(self) -> None:
        """A connector to this machine that needs no credential has none to lose; the rest is proved."""
        text = FILE.replace("https://tracker.example", "http://localhost:8123").replace('["tracker.example:443"]', "[]")
        text = text.replace("hosts = []\n", "private_network = true\n")
        credential = text[text.index("[credential]") : text.index("[operations.create]")]
        (card,) = await self.proved(self.written(text.replace(credential, "")), operations=("create",))
        self.assertEqual(self.verdicts(card), [HOLDS, HOLDS, NOT_APPLICABLE, HOLDS], card)

    async def test_no_double(self) -> None:
        """Where there is no double for a connector, or no credential can be made, the card says why."""
        key = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
        git = (
            '[connector]\nname = "local://me/site"\nversion = "1.0.0"\nkind = "git"\nhosts = ["github.com:22"]\n'
            'base_url = { default = "ssh://git@github.com/me/site.git", bindable = false }\n[credential]\n'
            'kind = "ssh_key"\n[git]\nrepository = "/home/me/site"\nbranches = ["main"]\n'
            f'host_key = "ssh-ed25519 {key}"\n'
        )
        served = FILES["stdio"].replace('variable = "FILES_TOKEN"', 'header = "Authorization"\nformat = "Bearer {key}"')
        api = 'directory = "/srv"\nsandbox = "required"\n[mcp.environment]\nURL = "${api.url}"\n[mcp.api]\nurl = "https://api.example.org/"'
        for specimen, word in (
            (self.written(git, None), "kind ssh_key"),
            (self.written(served.replace('directory = "/srv"', api), None), "its API only from a sandbox"),
        ):
            self.assertEqual(specimen.problems, ())
            (card,) = await self.proved(specimen)
            self.assertEqual((self.verdicts(card), card.operations), ([NOT_APPLICABLE] * 4, ()))
            self.assertTrue(all(word in each.why for each in card.checks.values()), card)
            lines = list(capture_lines(partial(show_card, card)))
            self.assertEqual([line for line in lines if len(line) > 80], [])

    async def test_refused_token(self) -> None:
        """A service that refuses the token in one trial has another in the next: nothing renews that of a proof."""
        refusal = FIXTURES.replace('status = 200, json = { ok = false, error = "archived" }', "status = 401, json = {}")
        for kind in ('"oauth2"\ntoken_url = "https://login.example/token"', '"github_app"'):
            key = '"api_key"\nheader = "Authorization"\nformat = "Bearer {key}"'
            text = FILE.replace(key, kind)
            (card,) = await self.proved(self.written(text, refusal), operations=("create",))
            self.assertEqual(self.verdicts(card), [HOLDS] * 4, card)

    async def test_one_operation(self) -> None:
        """Only the operations that are asked for are run; a read has no effect that could happen twice."""
        (card,) = await self.proved(self.written(FILE), operations=("list",))
        self.assertEqual(self.verdicts(card), [NOT_APPLICABLE, HOLDS, HOLDS, NOT_APPLICABLE], card)
        self.assertEqual(card.operations, ("list",))

    async def test_builtin(self) -> None:
        """Three that ship with Aileron hold: an effect is found by a search, by a mark, and not at all."""
        specimens = find_specimens(Path("/nonexistent"), ("builtin://gmail", "builtin://notion", "builtin://sns"))
        cards = await self.proved(*specimens, operations=("send", "comment", "publish"))
        self.assertEqual([card.operations for card in cards], [("send",), ("comment",), ("publish",)], cards)
        self.assertTrue(all(card.holds for card in cards), cards)

    @seldom
    async def test_every_builtin(self) -> None:
        """Every connector that ships with Aileron holds."""
        cards = await self.proved(*find_specimens(Path("/nonexistent")))
        self.assertGreater(len(cards), 15)
        for card in cards:
            self.assertTrue(card.holds, card)


class WrongTests(ProofTestCase):
    """Connectors that are wrong on purpose."""

    def assert_noticed(self, card: ProofCard, check: str, what: object) -> None:
        """Assert that a check finds faults."""
        self.assertEqual(card.problems, (), what)
        self.assertFalse(card.holds, what)
        self.assertTrue(card.checks[check].faults, (what, card))
        self.assertEqual(card.checks[check].verdict, FAILS, what)

    async def test_files(self) -> None:
        """A mistake in a file is noticed by the check that is for it."""
        for what, (check, changes) in WRONG_FILES.items():
            text, fixtures = FILE, FIXTURES
            for right, wrong in changes:
                self.assertIn(right, text, what)
                text = text.replace(right, wrong)
            if "reconcile" not in text:
                fixtures = fixtures.replace(LOOK_FIXTURE, "")
            (card,) = await self.proved(self.written(text, fixtures), operations=("create",))
            self.assert_noticed(card, check, what)

    async def test_code(self) -> None:
        """A mistake in the code of a connector is noticed by the check that is for it."""
        specimen = self.written(FILE)

        async def work(bench: Bench) -> list[ProofCard]:
            return [await prove(bench, specimen, ("create",), maker(kind)) for kind in WRONG_CODE]

        cards = await with_bench(_running_reactor(), work)
        for card, (kind, check) in zip(cards, WRONG_CODE.items(), strict=True):
            self.assert_noticed(card, check, kind)

    async def test_kept(self) -> None:
        """A credential that lies in a file of the home, unencrypted, is noticed."""

        def make(spec: HttpSpec, bench: Bench) -> IConnector:
            class Keeps(HttpConnector):
                async def invoke(
                    self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
                ) -> Outcome:
                    (bench.home.root / "kept").write_bytes(b"" if credential is None else await credential.reveal())
                    return await super().invoke(request, credential, seconds, late_seconds)

            connector: IConnector = maker(Keeps)(spec, bench)
            return connector

        (card,) = await self.proved(self.written(FILE), operations=("create",), make=make)
        (fault,) = card.checks["secret"].faults
        self.assertEqual((fault.operation, "the file kept" in fault.message), ("all", True))

    async def test_restless(self) -> None:
        """Where something never comes to rest, the proof goes on, and fails with that."""
        self.patch(_bench, "_MOST_REAL_SECONDS", 0.02)

        def make(spec: HttpSpec, bench: Bench) -> IConnector:
            bench.network.dialing += 1
            return maker(HttpConnector)(spec, bench)

        (card,) = await self.proved(self.written(FILE), operations=("list",), make=make)
        self.assert_noticed(card, "truth", card)
        self.assertTrue(all("still busy after" in each.message for each in card.checks["truth"].faults), card)

    def test_control(self) -> None:
        """A check that does not notice its control fails, though nothing else was found."""
        held = [Result("create", "answers well", "once", "")]
        self.assertEqual([_sum_up("once", held, noticed).verdict for noticed in (True, False)], [HOLDS, FAILS])

    async def test_recorded_otherwise(self) -> None:
        """Where recorded answers say otherwise than the file, nothing is proved, and nothing holds."""
        wrong = FILE.replace('error = { when = "ok == false", message = "error" }\n', "", 1)
        (card,) = await self.proved(self.written(wrong))
        self.assertFalse(card.holds or card.checks)
        self.assertIn("is expected to be", card.problems[0].message)

    def test_operations(self) -> None:
        """An operation that no connector has is refused, unless a file that cannot be read may have it."""
        right, broken = self.written(FILE), self.written("[connector")
        check_operations([right], ("create", "list"))
        check_operations([self.written(FILES["git"], None)], ("log",))
        check_operations([broken], ("create",))
        with self.assertRaisesRegex(CommandError, r"No such operation: nope\."):
            check_operations([right], ("create", "nope"))

    async def test_nothing_run(self) -> None:
        """Where the only operation asks no service, no check applies, and each says so."""
        (card,) = await self.proved(self.written(FILES["git"], None), operations=("log",))
        self.assertEqual(self.verdicts(card), [NOT_APPLICABLE] * 4)
        self.assertEqual(card.checks["truth"].why, "no operation was run")

    async def test_broken(self) -> None:
        """A file that is no connector is a fault where all are proved, and is not looked at where others are."""
        home = Path(self.mktemp())
        home.mkdir()
        (home / "broken.toml").write_text("[connector")
        found = [each for each in find_specimens(home.absolute()) if each.problems]
        (card,) = await self.proved(*found)
        self.assertFalse(card.holds)
        self.assertEqual(list(find_specimens(home.absolute(), ("local://me/other",))), [])
