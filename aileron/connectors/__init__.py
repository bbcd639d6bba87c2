"""Talks to one service each; found by registry, declared by interface or by file."""

from ._answer import Answer, Message, Refused, Unreachable
from ._http import HttpConnector
from ._line import IConnectingReactor, Lines
from ._registry import Make, Registry, check
from ._spec import HttpSpec
from ._transport import HttpTransport, system_resolver, system_transport

__all__ = [
    "Answer",
    "HttpConnector",
    "HttpSpec",
    "HttpTransport",
    "IConnectingReactor",
    "Lines",
    "Make",
    "Message",
    "Refused",
    "Registry",
    "Unreachable",
    "check",
    "system_resolver",
    "system_transport",
]
