"""The state directory: where its files lie, who may read them, which daemon owns it, and how to find that daemon.

All of it is small and local, so reading and writing are synchronous.
"""
