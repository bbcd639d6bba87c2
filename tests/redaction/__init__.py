"""Tests of aileron.redaction."""
