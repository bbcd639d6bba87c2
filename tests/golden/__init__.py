"""What an earlier version wrote and every later one must read: homes, digests, signatures, and the API's documents.

A home is never made anew; each version adds its own (see L{tests.golden.make}).
"""
