"""The crash matrix: a daemon that is killed wherever it may be, a thousand times, on homes that must not notice.

Real parts, all of them: the daemon's own composition, its database and vault files, its HTTP connector, and a service
that counts what happened and outlives every kill. It shows what a process's sudden end does. It does not show what a
power cut does: what was handed to the system is not taken back.
"""
