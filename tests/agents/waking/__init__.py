"""Agents that are woken by late decisions, with the real programs."""
