"""A server of the SDK's that has whatever the protocol has, actions or not: what a judge of the transport needs."""

from .server import Everything

__all__ = ["Everything"]
