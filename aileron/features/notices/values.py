"""The notices that the operator is sent without having asked, and the channels by which."""

from __future__ import annotations

from datetime import datetime
from operator import attrgetter
from pathlib import Path

from attrs import frozen
from zope.interface import Interface

from aileron.base.converter import OMITTED, Member, differ
from aileron.model.features import NoticeRule
from aileron.model.vault import Scope

NOTICE = "notice://"
"""Before a channel's name: what a secret is bound to by which this channel is reached."""


@frozen
class Notice:
    """One event that the operator is notified of.

    :ivar reason: the reason in the words of the daemon or the operator, or None if there is none.
    :ivar warnings: the labels of the reasons to look twice at a call that waits for a decision.
    :ivar cautions: their sentences, which quote the call, if the operator wants contents; else empty.
    :ivar arguments: the arguments of the call, cut to a line, or None if messages have no contents.
    """

    rule: NoticeRule
    at: datetime
    action: str | None = None
    session: str | None = None
    run_id: str | None = None
    reason: str | None = None
    agent: str | None = None
    arguments: str | None = None
    warnings: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


differ(
    Notice,
    rule=Member("kind", write=attrgetter("kind")),
    arguments=Member(optional=True),
    warnings=Member(optional=True),
    cautions=Member(optional=True),
)


@frozen
class Message:
    """A message that goes out by every channel: one or many notices in one.

    All of its texts are fit to be shown: visible, and short.

    :ivar id: the same at each attempt, so that who gets it twice can tell.
    :ivar lines: beneath the title; without contents.
    :ivar contents: lines with the calls' arguments, for channels that no other user of this machine can see.
    :ivar url: the page to look at.
    :ivar urgent: something is wrong.
    :ivar more: how many notices are counted in it beyond C{notices}.
    """

    id: str
    at: datetime
    title: str
    lines: tuple[str, ...]
    url: str
    notices: tuple[Notice, ...]
    urgent: bool = False
    contents: tuple[str, ...] = ()
    more: int = 0


differ(
    Message,
    lines=OMITTED,
    contents=OMITTED,
    more=OMITTED,
    computed={
        "text": lambda message: "\n".join((*message.lines, *message.contents)),
        "count": lambda message: len(message.notices) + message.more,
    },
)


@frozen
class ChannelSettings:
    """One way to the operator that needs a name: a webhook, or an address that is a secret.

    :ivar url: of a webhook; L{None}: the address lies in the vault, and C{apprise} knows what to do with it.
    :ivar signed: a key from the vault signs what the webhook is sent.
    """

    name: str
    url: str | None = None
    signed: bool = False

    @property
    def fqn(self) -> str:
        """The name that a secret for this channel is bound to."""
        return NOTICE + self.name

    @property
    def needs_secret(self) -> bool:
        """True if it is of use only with what lies in the vault."""
        return self.url is None or self.signed

    def scope(self) -> Scope | None:
        """Return the scope that its secret is sealed for; L{None}: it needs none."""
        if self.url is None:
            return Scope((), "apprise", "address", "{key}")
        return Scope((), self.url, "Aileron-Signature", "v1=HMAC-SHA256({key})") if self.signed else None


@frozen
class NoticeSettings:
    """The operator's settings of notifications; without a word of theirs nothing is sent anywhere.

    :ivar contents: calls' arguments are told, by channels that no other user of this machine can see.
    :ivar desktop: the desktop is told.
    :ivar desktop_command: the program that tells it; L{None}: where it lies on most machines.
    :ivar channels: by distinct names.
    """

    contents: bool = False
    desktop: bool = False
    desktop_command: Path | None = None
    channels: tuple[ChannelSettings, ...] = ()

    def bound_by(self, fqn: str) -> ChannelSettings | None:
        """Return the channel that C{notice://<name>} binds a secret to; L{None}: there is none that wants one."""
        return next((each for each in self.channels if each.needs_secret and each.fqn == fqn), None)


@frozen
class ChannelState:
    """The state of a channel, in this life of the daemon.

    :ivar kind: C{desktop}, C{webhook} or C{apprise}.
    :ivar sent: how many messages got there.
    :ivar failed: how many were given up.
    :ivar waiting: how many are on their way.
    :ivar problem: why the last attempt failed, without any address or secret; L{None}: it did not.
    """

    name: str
    kind: str
    sent: int = 0
    failed: int = 0
    waiting: int = 0
    problem: str | None = None
    problem_at: datetime | None = None
    sent_at: datetime | None = None


class INotifier(Interface):
    """Tells the operator, by whatever channels they have configured, of what is put on record and concerns them.

    Nothing of it fails or delays what it tells of.
    """

    def channels() -> tuple[ChannelState, ...]:
        """Tell how each channel does."""

    async def test() -> tuple[ChannelState, ...]:
        """Try every channel at once, with one attempt each, and say how they do then."""
