"""Tests of an agent's own command-line tools."""
