"""A proof of a connector whose kind comes from another package: the kind puts it on the bench itself."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import mkdtemp

from aileron.connectors import ConnectorKind, KindTable, Specimen, find_specimens, load_kinds
from aileron.connectors.kinds import BUILT_IN
from aileron.features.proving._prover import HOLDS, NOT_APPLICABLE
from tests.connectors.foreign.install import FILE, NAME, install
from tests.connectors.foreign.json_rpc import RpcKind, RpcSpec

from .test_prove import ProofTestCase


class _Benchless(RpcKind):
    """The same without a double."""

    def bench(self, specimen: Specimen, bench: object) -> object:
        """Do as the contract does."""
        return ConnectorKind[RpcSpec].bench(self, specimen, bench)


class ForeignTests(ProofTestCase):
    """The kind C{json_rpc}."""

    def specimen(self, kinds: KindTable) -> Specimen:
        """Its file."""
        file = Path(self.mktemp()).absolute().with_suffix(".toml")
        file.write_text(FILE.format(port=8080), "utf-8")
        (found,) = find_specimens(file, kinds=kinds)
        return found

    async def test_installed(self) -> None:
        """What another package brings is proved as the kinds that ship are: all that applies holds."""
        root = Path(mkdtemp(prefix="aileron-kinds-"))
        self.addCleanup(shutil.rmtree, root)
        install(root, package="acme_proved")
        self.patch(sys, "path", [str(root), *sys.path])
        loaded = load_kinds(("acme_proved",))
        self.assertEqual((loaded.problems, loaded.kinds.names[-1]), ((), NAME))
        (card,) = await self.proved(self.specimen(loaded.kinds))
        self.assertEqual(self.verdicts(card), [HOLDS, HOLDS, HOLDS, NOT_APPLICABLE], card)
        self.assertEqual(card.operations, ("add_note", "list_notes"))

    async def test_without_double(self) -> None:
        """A kind without a bench is told to have none, and nothing is said to hold."""
        (card,) = await self.proved(self.specimen(KindTable((*BUILT_IN, _Benchless()))))
        self.assertEqual(self.verdicts(card), [NOT_APPLICABLE] * 4)
        self.assertIn("no double of a service for connectors of the kind json_rpc", card.checks["once"].why)
