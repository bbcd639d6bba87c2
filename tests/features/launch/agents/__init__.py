"""Tests of what the launcher knows of each agent."""
