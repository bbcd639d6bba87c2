"""The guards of the promises that are made of runs, each disabled in turn: a test must turn red.

A guard is marked by a comment where it stands (L{tests.mutants.marks}).  C{python -m tests.mutants} disables each in a
copy of the tree and prints a table; it fails if a guard can be disabled and its test still passes.  C{--attacks} does
the same with the guards that stop the attackers of doc/attacks.md, in an installed package.
"""
