"""The totals of use: what the requests of one day, session, provider and model used together."""

from __future__ import annotations

from attrs import define, field

from aileron.model.usage import SpendKey, Spent, Usage

from .values import Price, Unit

MOST_MODELS = 256
"""The most models that are told apart on one day. Requests to further ones are counted together."""

OTHER_MODELS = "(other models)"


@define(eq=False)
class Total:
    """The use of all requests of one day, session, provider and model.

    :ivar written: the part of the use that is stored.
    :ivar dirty: whether the use has changed since it was last stored.
    """

    key: SpendKey
    requests: int = field(default=0, init=False)
    input: int = field(default=0, init=False)
    output: int = field(default=0, init=False)
    cached: int = field(default=0, init=False)
    microdollars: int = field(default=0, init=False)
    estimated: int = field(default=0, init=False)
    unpriced: int = field(default=0, init=False)
    written: Spent = field(factory=Spent, init=False)
    dirty: bool = field(default=False, init=False)

    def read(self) -> Spent:
        """Return the present use as an immutable value."""
        return Spent(
            self.requests, self.input, self.output, self.cached, self.microdollars, self.estimated, self.unpriced
        )

    def add(self, usage: Usage, price: Price | None) -> int:
        """Add the tokens and the cost of a request that is counted already.

        :param price: the price if the response reports no cost, or None if it is unknown.
        :return: the cost in millionths of a dollar, or 0 if it is unknown.
        """
        self.input += usage.input
        self.output += usage.output
        self.cached += usage.cached
        cost = usage.cost_microdollars
        if cost is None and price is not None:
            cost = price.cost(usage.input, usage.output, usage.cached)
        if cost is None:
            self.unpriced += 1
            return 0
        self.microdollars += cost
        return cost

    def take_unwritten(self) -> Spent:
        """Return the use since the last call, for the caller to store, and mark the total as stored."""
        before, now = self.written, self.read()
        self.written, self.dirty = now, False
        return Spent(
            now.requests - before.requests,
            now.input - before.input,
            now.output - before.output,
            now.cached - before.cached,
            now.microdollars - before.microdollars,
            now.estimated - before.estimated,
            now.unpriced - before.unpriced,
        )

    def learn(self, stored: Spent) -> Spent:
        """Add the use at other daemons, which is what is stored beyond what is known to be, and return it.

        If this daemon's own last use is not stored yet, that much of the others' use is added later.
        """
        added = stored - self.written
        self.add_stored(added)
        return added

    def add_stored(self, added: Spent) -> None:
        """Add use that is stored already."""
        self.written = self.written + added
        self.requests += added.requests
        self.input += added.input
        self.output += added.output
        self.cached += added.cached
        self.microdollars += added.microdollars
        self.estimated += added.estimated
        self.unpriced += added.unpriced


def use_in_unit(unit: Unit, spent: Spent) -> int:
    """Return the use in a limit's unit: tokens, requests, or millionths of a dollar."""
    if unit is Unit.TOKENS:
        return spent.tokens
    return spent.requests if unit is Unit.REQUESTS else spent.microdollars
