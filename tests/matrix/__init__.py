"""What the product promises of runs, tried: C{python -m tests.matrix}."""
