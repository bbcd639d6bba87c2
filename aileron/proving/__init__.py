"""Proves that a connector keeps Aileron's promises, against a double of its service that behaves badly."""

from ._actions import list_actions
from ._bench import Bench, with_bench
from ._prover import Check, ProofCard, prove

__all__ = ["Bench", "Check", "ProofCard", "list_actions", "prove", "with_bench"]
