"""The usage of language models: tokens and costs, as providers report them."""

from __future__ import annotations

from attrs import field, frozen


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
