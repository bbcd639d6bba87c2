"""What the pages reach, and where their files lie."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen
from twisted.web.template import XMLString

from aileron.interfaces import IOperators, IRunner, ISessions

STATIC = Path(__file__).with_name("static")
_TEMPLATES = Path(__file__).with_name("templates")


@frozen
class PageParts:
    """What the pages reach.

    :ivar cookie: name of the browser's cookie.
    :ivar page_key_header: the header in which the page proves that it has the page key.
    """

    runner: IRunner
    sessions: ISessions
    operators: IOperators
    cookie: bytes
    page_key_header: str


def template(name: str) -> XMLString:
    """A fragment's template."""
    return XMLString((_TEMPLATES / name).read_text(encoding="utf-8"))
