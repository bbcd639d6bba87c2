"""The values of limits on spending: limits, prices, and the use of a limit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from math import ceil

from attrs import field, frozen

from aileron.base.json import compact

MICRODOLLARS = 1_000_000
MOST = 10**15
"""The largest limit, in tokens, requests or millionths of a dollar."""

WARNING_PART = 5
"""The operator is warned when this part of a limit, a fifth, is left."""


class Unit(StrEnum):
    """The units in which a limit on spending is counted. C{MONEY} is counted in millionths of a US dollar."""

    TOKENS = "tokens"
    REQUESTS = "requests"
    MONEY = "money"


class Per(StrEnum):
    """The span of requests that a limit on spending counts together. C{DAY} is a day in the daemon's time zone."""

    REQUEST = "request"
    SESSION = "session"
    DAY = "day"


def matches(pattern: str, model: str) -> bool:
    """Return whether a model's name matches a pattern: the exact name, or its beginning followed by C{*}."""
    return model.startswith(pattern[:-1]) if pattern.endswith("*") else model == pattern


def write_amount(unit: Unit, amount: int) -> str:
    """Return an amount in words, such as C{1,200 tokens} or C{$3.50}."""
    if unit is Unit.MONEY:
        return f"${amount / MICRODOLLARS:,.{2 if amount >= MICRODOLLARS else 4}f}"
    return f"{amount:,} {unit.value if amount != 1 else unit.value[:-1]}"


@frozen
class SpendLimit:
    """A limit on what requests to models may use.

    :ivar most: the limit in its unit.
    :ivar provider: the provider whose requests count, or None for all.
    :ivar model: the pattern of the models whose requests count, or None for all (see L{matches}).
    """

    unit: Unit
    per: Per
    most: int
    provider: str | None = None
    model: str | None = None

    @property
    def id(self) -> str:
        """The ID of the limit. It does not depend on the amount C{most}."""
        told = compact([self.unit.value, self.per.value, self.provider, self.model])
        return hashlib.sha256(told.encode()).hexdigest()[:8]

    def covers(self, provider: str, model: str) -> bool:
        """Return whether the limit counts requests to a model of a provider."""
        return self.provider in (None, provider) and (self.model is None or matches(self.model, model))

    def describe(self) -> str:
        """Return the limit in words, without its amount: C{tokens a day for openai, model gpt-5*}."""
        span = {Per.REQUEST: "in one request", Per.SESSION: "in one session", Per.DAY: "a day"}[self.per]
        provider = "" if self.provider is None else f" for {self.provider}"
        model = "" if self.model is None else f"{',' if provider else ' for'} model {self.model}"
        return f"{self.unit.value} {span}{provider}{model}"


@frozen
class Raise:
    """A decision of the operator to allow more within one session, or on one day.

    :ivar limit_id: the limit.
    :ivar window: the id of the session, or the day.
    :ivar by: the added amount, in the limit's unit.
    """

    limit_id: str
    window: str
    by: int


@frozen
class Price:
    """The price of a model, in US dollars for a million tokens.

    :ivar cached: the price of input from the provider's cache.
    """

    input: float
    output: float
    cached: float

    def cost(self, read: int, written: int, cached: int) -> int:
        """Return the cost of a request's tokens in millionths of a dollar, rounded up.

        :param read: the input tokens, of which C{cached} came from the provider's cache.
        """
        cached = min(cached, read)
        return ceil((read - cached) * self.input + cached * self.cached + written * self.output)


@frozen
class Runaway:
    """The bounds beyond which an agent counts as running away. None means no bound.

    :ivar same_requests: how often one request may follow itself in a session.
    :ivar per_minute: how many requests a session may make within a minute.
    """

    same_requests: int | None = None
    per_minute: int | None = None


@frozen
class SpendSettings:
    """The operator's settings in config.yaml.

    :ivar prices: the prices by pattern of the model's name. The longest pattern that covers a model counts.
    """

    limits: tuple[SpendLimit, ...] = ()
    prices: Mapping[str, Price] = field(factory=dict)
    runaway: Runaway = field(factory=Runaway)

    def find_price(self, model: str) -> Price | None:
        """Return the price of a model, or None if no pattern covers it."""
        found = [each for each in self.prices if matches(each, model)]
        return self.prices[max(found, key=len)] if found else None


class LimitSource(StrEnum):
    """The sources of limits: config.yaml, or the command C{aileron gateway limit set}."""

    CONFIG = "config"
    COMMAND = "command"


@frozen
class LimitState:
    """A limit, and its use in one session or on one day.

    :ivar window: the id of the session, the day, or empty for a limit on each request and for requests of no session.
    :ivar most: the limit with what the operator added to it.
    :ivar used: the use, in the limit's unit.
    :ivar held: the amount reserved by requests in progress, in the limit's unit.
    """

    limit: SpendLimit
    source: LimitSource
    window: str
    most: int
    used: int = 0
    held: int = 0

    @property
    def is_reached(self) -> bool:
        """True if the limit is reached, so that the next request is refused."""
        return self.limit.per is not Per.REQUEST and self.used + self.held >= self.most


@frozen
class SpendNews:
    """News for the operator about a limit or a runaway agent.

    :ivar type: the type of the audit event.
    :ivar session_id: the session concerned, or None if the news is about all sessions.
    :ivar why: a sentence that explains the news.
    :ivar most: the limit with what was added to it.
    :ivar place: the session, or the day, in which the limit counts; empty if it counts in all.
    """

    type: str
    session_id: str | None
    why: str
    at: datetime
    limit: SpendLimit | None = None
    used: int = 0
    most: int = 0
    place: str = ""
    provider: str = ""
