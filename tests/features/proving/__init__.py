"""Tests of proofs of connectors."""
