"""Agents' own tools while the daemon is killed: at each named point of a write, and again while it is repeated.

The daemon, its database and its connector are real, as in the crash matrix. The tool speaks TLS to the daemon's proxy,
and the service counts what happened.
"""
