"""The counts since the daemon's start: numbers alone, nothing of what was said."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from ._gateway import Ending, Usage


@frozen
class Histogram:
    """A histogram of waits.

    :ivar bounds: in seconds, rising; a wait is counted at the first bound that it does not exceed.
    :ivar counts: of each bound, and last of those beyond them all.
    :ivar seconds: all of them together.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    seconds: float = 0.0


NO_WAITS = Histogram((), (0,))


@frozen
class Traffic:
    """Exchanges of one provider.

    :ivar begun: how many, those under way included.
    :ivar answers: how many ended with an answer of which class: C{2xx} …; C{none} where none came.
    :ivar endings: how many ended how.
    :ivar sent_bytes: of requests' bodies.
    :ivar received_bytes: of answers' bodies, framing included.
    :ivar usage: what was told of tokens.
    :ivar told: answers that told their tokens.
    :ivar untold: answers that did not, or in a way that is not read.
    :ivar first_byte: from a request's head to its answer's, both at our door.
    :ivar added: of that, what passed between a head's arrival here and its leaving, there and back.
    :ivar whole: from a request's head to the end of the exchange.
    """

    begun: int = 0
    answers: Mapping[str, int] = field(factory=dict)
    endings: Mapping[Ending, int] = field(factory=dict)
    sent_bytes: int = 0
    received_bytes: int = 0
    usage: Usage = field(factory=Usage)
    told: int = 0
    untold: int = 0
    first_byte: Histogram = NO_WAITS
    added: Histogram = NO_WAITS
    whole: Histogram = NO_WAITS

    @property
    def under_way(self) -> int:
        """The number that have begun and not ended."""
        return self.begun - sum(self.endings.values())


@frozen
class GatewayTotals:
    """All of it.

    :ivar providers: by name; those that were called.
    """

    providers: Mapping[str, Traffic] = field(factory=dict)


@frozen
class LongTurns:
    """Turns of the reactor that took longer than they may.

    :ivar busy: in which its own thread computed for too long.
    :ivar blocked: in which it was kept from it.
    :ivar longest_seconds: of them.
    """

    busy: int = 0
    blocked: int = 0
    longest_seconds: float = 0.0
