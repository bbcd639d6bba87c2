"""Tests of aileron.addresses."""
