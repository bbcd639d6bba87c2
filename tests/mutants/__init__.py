"""The guards of the promises that are made of runs, each disabled in turn: a test must turn red.

C{python -m tests.mutants} does it in a copy of the tree and prints the table; it fails where a guard can be removed
without a test that notices, and where a guard is no longer where the table says.  C{--attacks} does the same with the
guards that stop the attackers of doc/attacks.md, in an installed package.
"""
