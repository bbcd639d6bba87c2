"""The straight way from a plain path to its endpoint: what Klein would do, without its generality.

Klein stays the one that knows all routes; whatever is not plainly one of them here is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from attrs import field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.iweb import IRequest

from ._endpoint import Endpoint
from ._serving import routing_failed

Handler: TypeAlias = Callable[..., Deferred[bytes]]
Found: TypeAlias = tuple[Handler, Mapping[str, str]]

_log = Logger()
_plain = re.compile(rb"(?:/[A-Za-z0-9_.~-]+)+").fullmatch  # what every router reads in the same way
_template = re.compile(r"(?:/(?:[a-z0-9_.-]+|<[a-z_]+>))+").fullmatch


@frozen
class _Pattern:
    """A path with names in it.

    :ivar fixed: what must stand where, counted from the path's first slash.
    :ivar named: which parts have which names.
    """

    fixed: tuple[tuple[int, str], ...]
    named: tuple[tuple[int, str], ...]
    handler: Handler

    def match(self, given: list[str]) -> Found | None:
        """C{given} has as many parts as the pattern."""
        for position, text in self.fixed:
            if given[position] != text:
                return None
        return self.handler, {name: given[position] for position, name in self.named}


@frozen
class Straight:
    """Endpoints by plain paths."""

    _whole: dict[tuple[bytes, bytes], Found] = field(factory=dict)
    _patterns: dict[tuple[bytes, int], list[_Pattern]] = field(factory=dict)

    @classmethod
    def to(cls, handlers: Iterable[tuple[Endpoint, Handler]]) -> Straight:
        """To all of C{handlers} whose paths are plain."""
        made = cls()
        for endpoint, handler in handlers:
            if _template(endpoint.path):
                made._add(endpoint.method.encode("ascii"), endpoint.path, handler)
        return made

    def _add(self, method: bytes, path: str, handler: Handler) -> None:
        parts = path.split("/")
        named = tuple((at, part[1:-1]) for at, part in enumerate(parts) if part.startswith("<"))
        if not named:
            self._whole[method, path.encode("ascii")] = handler, {}
            return
        fixed = tuple((at, part) for at, part in enumerate(parts) if part and not part.startswith("<"))
        self._patterns.setdefault((method, len(parts)), []).append(_Pattern(fixed, named, handler))

    def find(self, method: bytes, path: bytes) -> Found | None:
        """The handler of a request, and what its path names; L{None}: Klein knows what to make of it."""
        found = self._whole.get((method, path))
        if found is not None or not _plain(path):
            return found
        given = path.decode("ascii").split("/")
        for pattern in self._patterns.get((method, len(given)), ()):
            found = pattern.match(given)
            if found is not None:
                return found
        return None


def finish(request: IRequest, handling: Deferred[bytes]) -> None:
    """Have what C{handling} brings be the end of the answer.  A client that leaves cancels it."""
    gone: list[Failure] = []

    def leave(reason: Failure) -> None:
        gone.append(reason)
        handling.cancel()

    def fail(failure: Failure) -> bytes:
        if not gone:
            return routing_failed(request, failure)
        if not failure.check(CancelledError):
            _log.failure("a request failed whose client had left", failure)
        return b""

    def end(body: bytes) -> None:
        if not gone:
            request.write(body)
            request.finish()

    request.notifyFinish().addErrback(leave)  # type: ignore[attr-defined]  # the interface leaves it out
    handling.addErrback(fail).addCallback(end).addErrback(_not_written)


def _not_written(failure: Failure) -> None:
    _log.failure("an answer could not be written", failure)
