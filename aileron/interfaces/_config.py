"""The home's configuration file, as the operator is asked about it."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import Candidate, LoadError


class IConfigFile(Interface):
    """C{config.yaml}: what lies there now, and whether it is what this life of the daemon goes by."""

    def candidate() -> Candidate | None:
        """The file as it lies there now, or L{None}: there is none, or it is not sound."""

    def problems() -> tuple[LoadError, ...]:
        """Why what lies there is not in force: unsound, untrusted, or trusted only since this life began."""
