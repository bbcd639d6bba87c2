"""Tests of the chokepoint."""
