"""Tests of the command line."""

from tests.vault import remember_keys

remember_keys()
