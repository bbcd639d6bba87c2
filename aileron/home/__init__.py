"""The state directory: the paths of its files, their permissions, the daemon's lock and its discovery file.

All files are small and local, so reading and writing are synchronous.
"""
