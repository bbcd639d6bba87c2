"""The crash matrix of several daemons on one database: they are killed wherever they may be, and the server restarts.

Real parts as in L{tests.matrix.crash}, and a real PostgreSQL server. What one daemon leaves the others take.
"""
