"""Proves what a connector keeps of what Aileron promises, against a service of this process that behaves badly."""

from ._bench import Bench, with_bench
from ._network import ProofNetwork
from ._prover import FAILS, HOLDS, NOT_APPLICABLE, Check, Make, ProofCard, prove
from ._trials import LOOK, ONCE, SECRET, TRUTH

__all__ = [
    "FAILS",
    "HOLDS",
    "LOOK",
    "NOT_APPLICABLE",
    "ONCE",
    "SECRET",
    "TRUTH",
    "Bench",
    "Check",
    "Make",
    "ProofCard",
    "ProofNetwork",
    "prove",
    "with_bench",
]
