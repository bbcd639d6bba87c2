"""Tests of the walls around an agent."""
