"""The usage of language models: tokens and costs, as providers report them."""

from __future__ import annotations

from datetime import date
from operator import add

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
