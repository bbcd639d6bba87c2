"""The sandbox's way out: a proxy to hosts that the operator allows, each connection checked, counted and on record."""

from ._file import NAME, EgressFile
from ._listener import ProxyListener, build
from ._sessions import EgressSessions

__all__ = ["NAME", "EgressFile", "EgressSessions", "ProxyListener", "build"]
