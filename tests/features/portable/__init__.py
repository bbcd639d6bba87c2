"""Tests of portable decisions."""
