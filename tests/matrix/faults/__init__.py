"""The table of faults: what a running daemon needs goes wrong under it, in the middle of all that may be under way.

Real parts, as in the crash matrix.  A fault strikes from outside: the life's wall clock is set, the files that it may
write may not grow, another process holds its database, another file lies where its vault was.
"""
