"""Tests of action files."""
