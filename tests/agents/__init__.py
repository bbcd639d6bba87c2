"""The real agents, each through the same scenarios: C{python -m tests.agents}."""
