"""Proves what a connector keeps of what Aileron promises, against a service of this process that behaves badly."""

from ._bench import Bench, with_bench
from ._prover import Check, ProofCard, prove

__all__ = ["Bench", "Check", "ProofCard", "prove", "with_bench"]
