"""Tests of the daemon's HTTP contract."""
