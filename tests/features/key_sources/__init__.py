"""Tests of key sources."""
