"""Benchmarks: C{python -m bench} prints the table."""
