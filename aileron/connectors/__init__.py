"""Talks to one service each; found by registry, declared by interface or by file."""

from ._answer import Answer, Flight, Message, Refused, Terms, TooLarge, Transport, Unreachable
from ._http import HttpConnector
from ._line import IConnectingReactor, Lines
from ._registry import Make, Registry, check
from ._spec import HttpSpec
from ._transport import HttpTransport, system_resolver, system_transport

__all__ = [
    "Answer",
    "Flight",
    "HttpConnector",
    "HttpSpec",
    "HttpTransport",
    "IConnectingReactor",
    "Lines",
    "Make",
    "Message",
    "Refused",
    "Registry",
    "Terms",
    "TooLarge",
    "Transport",
    "Unreachable",
    "check",
    "system_resolver",
    "system_transport",
]
