"""The usage of language models: tokens and costs, as providers report them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from operator import add
from typing import TypeAlias

from attrs import astuple, field, frozen


@frozen
class Usage:
    """The tokens that a provider counted, as far as it reported them.

    :ivar input: all input tokens, cached or not.
    :ivar cached: the input tokens from the provider's cache.
    :ivar cost_microdollars: millionths of a US dollar as reported by the provider, or None.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cost_microdollars: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """Return the sum. Its cost is the sum of the reported costs."""
        costs = [each.cost_microdollars for each in (self, other) if each.cost_microdollars is not None]
        cost = sum(costs) if costs else None
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached, cost)


@frozen
class UsageSum:
    """The usage of a number of calls.

    :ivar calls: the number of calls.
    """

    usage: Usage = field(factory=Usage)
    calls: int = 0


@frozen
class SpendKey:
    """The key by which the use of language models is summed up.

    :ivar day: the day on which the requests began, in the daemon's time zone.
    :ivar session_id: the session, or empty for requests without one.
    :ivar model: the model as the request names it, or the response if the request was not read; empty if unknown.
    """

    day: date
    session_id: str
    provider: str
    model: str


@frozen
class Spent:
    """The use of language models by a number of requests: tokens and cost.

    :ivar input: the input tokens, cached or not.
    :ivar cached: the input tokens from the provider's cache.
    :ivar microdollars: what is known of the cost: as reported by the provider, else estimated from prices.
    :ivar estimated: the number of requests whose tokens are estimated, because the response reported none.
    :ivar unpriced: the number of requests whose cost is unknown, and not in C{microdollars}.
    """

    requests: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    microdollars: int = 0
    estimated: int = 0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """The input and output tokens together."""
        return self.input + self.output

    def __add__(self, other: Spent) -> Spent:
        """Return the sum."""
        return Spent(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: Spent) -> Spent:
        """Return the difference, at least 0 in each number."""
        return Spent(*(max(0, one - another) for one, another in zip(astuple(self), astuple(other), strict=True)))


HeldUse: TypeAlias = Mapping[tuple[str, str], int]
"""What requests in progress reserve, by the ID of a limit, and its session or day."""


@frozen
class LimitKey:
    """One state of a limit, of which the operator is told once.

    :ivar place: the session, or the day, in which the limit counts; empty if it counts in all.
    :ivar most: the limit with what was added to it. One that was raised is told of again.
    """

    limit_id: str
    place: str
    most: int


@frozen
class SharedUse:
    """The use of language models at all daemons on a database, as one of them reads it.

    :ivar totals: the use by ended requests at all daemons.
    :ivar held: what requests in progress at the other daemons reserve.
    :ivar daemons: how many daemons there are, with this one.
    """

    totals: Mapping[SpendKey, Spent]
    held: HeldUse
    daemons: int
