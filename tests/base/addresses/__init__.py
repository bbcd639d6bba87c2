"""Tests of aileron.base.addresses."""
