"""What an earlier version wrote and every later one must read: homes, digests, signatures, and the API's documents.

None of these files is ever made anew.  ``python -m tests.golden`` adds what is missing, for the present version.
"""
