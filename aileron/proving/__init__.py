"""Proves what a connector keeps of what Aileron promises, against a service of this process that behaves badly."""

from ._bench import Bench, with_bench
from ._network import ProofNetwork
from ._prover import FAILS, HOLDS, NOT_APPLICABLE, Card, CheckCard, Make, prove
from ._trials import CHECKS

__all__ = [
    "CHECKS",
    "FAILS",
    "HOLDS",
    "NOT_APPLICABLE",
    "Bench",
    "Card",
    "CheckCard",
    "Make",
    "ProofNetwork",
    "prove",
    "with_bench",
]
