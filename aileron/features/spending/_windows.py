"""Limits in force, and what is left of each in one session or on one day."""

from __future__ import annotations

from datetime import datetime

from attrs import field, frozen

from aileron.model.errors import LimitExceeded

from .values import WARNING_PART, LimitSource, Per, SpendLimit, SpendNews, Unit, write_amount

NEVER = 10**30
"""More than is ever used of a limit."""

UNITS = (Unit.TOKENS, Unit.REQUESTS, Unit.MONEY)
"""The order of amounts in tuples: tokens, requests, and money in millionths of a dollar."""

_HOW = "Raise it on Aileron's page LLM traffic, or run: aileron gateway limit raise {id}"
_REACHED = "Aileron's limit of {limit} is reached: {used} of {most}{held}. Nothing was sent. " + _HOW
_TOO_LARGE = (
    "This request may use about {amount}, more than Aileron's limit of {most} ({limit}). Nothing was sent. "
    "The limits: aileron gateway limit list"
)
_SHARE = (
    "Other daemons use Aileron's limit of {limit} too, and this one has used its share of this second. "
    "Nothing was sent. Try again in a second."
)
_NEWS = "{used} of {most} {limit}"


class Window:
    """The state of one limit in one session or on one day.

    :ivar most: the limit with what was added to it.
    :ivar held_elsewhere: what requests in progress at other daemons reserve of it, which C{left} does not contain.
    :ivar room: how much of C{left} this daemon may still reserve before it has read again what the others used.
    :ivar left: the part of the limit that is neither used nor reserved, in the limit's unit. It is negative if the
        limit was exceeded.
    :ivar at: the place of the limit's unit among tokens, requests and money.
    :ivar stir_at: the value of C{left} at which to act next: first to set C{is_near}, then to warn the operator.
    :ivar is_near: whether at least a quarter of the limit is used or reserved. Ended requests are then counted at once.
    :ivar told: whether the operator was told that the limit is reached.
    """

    __slots__ = ("at", "held_elsewhere", "is_near", "key", "left", "limit", "most", "room", "stir_at", "told")

    def __init__(self, limit: SpendLimit, key: str, most: int, used: int = 0) -> None:
        self.limit, self.key, self.most, self.left = limit, key, most, most - used
        self.at = UNITS.index(limit.unit)
        self.told = self.is_near = False
        self.held_elsewhere, self.room = 0, NEVER
        self.stir_at = most * 3 // 4
        while self.stir(self.left):
            pass

    def hold_elsewhere(self, amount: int, daemons: int) -> None:
        """Note what other daemons reserve, and how much of the rest is this daemon's share.

        The share has at least one unit, so that one request is admitted while anything is left.

        :param daemons: how many daemons there are. One that is alone needs no share.
        """
        self.left -= amount - self.held_elsewhere
        self.held_elsewhere = amount
        self.room = NEVER if daemons == 1 else max(1, self.left // daemons)

    def stir(self, left: int) -> bool:
        """Return whether so little is left that something must be done, and lower C{stir_at} to its next value then."""
        if left > self.stir_at:
            return False
        self.stir_at = -NEVER if self.is_near else self.most // WARNING_PART
        self.is_near = True
        return True


@frozen(eq=False)
class SpendRule:
    """A limit on spending that is in force now.

    :ivar name: the limit's id, computed once.
    """

    limit: SpendLimit
    source: LimitSource
    name: str = field(init=False)

    @name.default
    def _read_id(self) -> str:
        return self.limit.id


def check_request(limit: SpendLimit, tokens: int, cost: int) -> None:
    """Check a limit on single requests.

    :raises LimitExceeded: if the request may use more.
    """
    amount = cost if limit.unit is Unit.MONEY else tokens
    # guard of spending: a request beyond the limit of one is not sent -> test_ledger.LedgerTests.test_request
    if amount > limit.most:
        raise LimitExceeded(
            _TOO_LARGE.format(
                amount=write_amount(limit.unit, amount),
                most=write_amount(limit.unit, limit.most),
                limit=limit.describe(),
            )
        )


def refuse_beyond_share(window: Window) -> None:
    """Check that this daemon may reserve more of a limit before it has read again what other daemons used.

    :raises LimitExceeded: if it may not. The client is to try again after a second.
    """
    # guard of spending: several daemons admit no more of a limit at once than is left of it
    #    -> test_several.ShareTests.test_burst
    if window.room <= 0:
        raise LimitExceeded(_SHARE.format(limit=window.limit.describe()), {"retry_after": 1})


def explain_reached(window: Window, held: int) -> str:
    """Return the message that refuses a request because a limit is reached.

    :param held: what requests in progress reserve of the limit, in the limit's unit.
    """
    limit, unit = window.limit, window.limit.unit
    return _REACHED.format(
        limit=limit.describe(),
        used=write_amount(unit, window.most - window.left - held),
        most=write_amount(unit, window.most),
        held=f" and {write_amount(unit, held)} reserved by requests in progress" if held else "",
        id=limit.id,
    )


def make_news(type_: str, window: Window, held: int, session_id: str, now: datetime) -> SpendNews:
    """Return the news that much of a limit is used.

    :param type_: the type of the event in the audit log.
    :param held: what requests in progress reserve of the limit, in the limit's unit.
    :param session_id: the session whose request used the limit. The news names the session only if the limit counts
        each session separately.
    """
    limit, used = window.limit, window.most - window.left - held
    why = _NEWS.format(
        used=write_amount(limit.unit, used),
        most=write_amount(limit.unit, window.most),
        limit=limit.describe().removeprefix(f"{limit.unit.value} "),
    )
    about = session_id if limit.per is Per.SESSION else ""
    return SpendNews(type_, about or None, why, now, limit, used=used, most=window.most, place=window.key)
