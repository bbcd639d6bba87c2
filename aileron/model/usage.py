"""The usage of language models: tokens and costs, as providers report them."""

from __future__ import annotations

from attrs import field, frozen


@frozen
class Usage:
    """Tokens as a provider counted them; best effort.

    :ivar input: all that was read, cached or not.
    :ivar cached: of these, from the provider's cache.
    :ivar cost_microdollars: millionths of a US dollar, as the provider told it; L{None}: it told no cost.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cost_microdollars: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; its cost is that of those that told one."""
        costs = [each.cost_microdollars for each in (self, other) if each.cost_microdollars is not None]
        cost = sum(costs) if costs else None
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached, cost)


@frozen
class UsageSum:
    """The usage of some calls.

    :ivar calls: how many, those included that told no usage; of no session only those that did.
    """

    usage: Usage = field(factory=Usage)
    calls: int = 0
