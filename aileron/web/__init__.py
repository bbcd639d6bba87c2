"""The operator's pages."""

from __future__ import annotations

from twisted.web.resource import IResource, NoResource

from aileron.interfaces import IOperators

__all__ = ["pages"]


def pages(operators: IOperators) -> IResource:
    """What the operator site serves to a browser."""
    return NoResource()
