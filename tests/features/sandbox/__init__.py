"""Tests of the sandbox for an agent."""
