"""Tests of what a client is offered."""
