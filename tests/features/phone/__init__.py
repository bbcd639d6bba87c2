"""Tests of the inbox on a phone."""
