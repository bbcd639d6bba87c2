"""Notices (events that the operator is notified of), messages made of them, and the channels that deliver messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from pathlib import Path

from attrs import field, frozen
from zope.interface import Interface

from aileron.base.converter import OMITTED, Member, differ
from aileron.model.features import NoticeRule
from aileron.model.vault import Scope

NOTICE = "notice://"
"""The prefix of a channel's name in the target that a secret of the channel is bound to."""


@frozen
class Notice:
    """One event that the operator is notified of.

    :ivar reason: the reason in the words of the daemon or the operator, or None if there is none.
    :ivar title: what would be done, if the operator wants contents, or None.
    :ivar group: the group of a call that waits for a decision, C{look_closely} or C{routine}, or None.
    :ivar warnings: the labels of the warnings about a call that waits for a decision.
    :ivar cautions: the sentences of these warnings, which quote the call, if the operator wants contents; else empty.
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
    title: str | None = None
    group: str | None = None


differ(
    Notice,
    rule=Member("kind", write=attrgetter("kind")),
    arguments=Member(optional=True),
    warnings=Member(optional=True),
    cautions=Member(optional=True),
    title=Member(optional=True),
    group=Member(optional=True),
)


@frozen
class Message:
    """A message of one or more notices, which is sent by every channel.

    Its texts are visible and short.

    :ivar id: the same at each attempt, so that a receiver can detect repetitions.
    :ivar lines: the lines below the title, without contents.
    :ivar subject: the title with contents, for channels that no other user of this machine can see, or empty if
        messages have none.
    :ivar contents: lines with the arguments of calls, for channels that no other user of this machine can see.
    :ivar url: the page that the message is about, at the public name if there is one.
    :ivar desk_url: the same page at the desk's address, for channels of this machine, or empty for C{url}.
    :ivar urgent: True if something is wrong.
    :ivar more: the number of further notices.
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
    subject: str = ""
    desk_url: str = ""


differ(
    Message,
    lines=OMITTED,
    subject=OMITTED,
    desk_url=OMITTED,
    contents=OMITTED,
    more=OMITTED,
    computed={
        "text": lambda message: "\n".join((*message.lines, *message.contents)),
        "count": lambda message: len(message.notices) + message.more,
    },
)


@frozen
class PendingRequests:
    """The requests that wait for a decision, for the notices of a browser.

    :ivar items: the ids of their runs, newest first.
    :ivar more: True if there are more than are listed.
    :ivar title: the title of one notice of all of them.
    """

    items: tuple[str, ...]
    more: bool
    title: str


@frozen
class ChannelSettings:
    """The settings of a channel with a name: a webhook, or an address for C{apprise} that is a secret.

    :ivar url: the URL of the webhook, or None if the channel is an C{apprise} address in the vault.
    :ivar signed: True if requests to the webhook are signed with a key from the vault.
    """

    name: str
    url: str | None = None
    signed: bool = False

    @property
    def fqn(self) -> str:
        """The name of the target that a secret of this channel is bound to."""
        return NOTICE + self.name

    @property
    def needs_secret(self) -> bool:
        """True if the channel needs a secret from the vault."""
        return self.url is None or self.signed

    def scope(self) -> Scope | None:
        """Return the scope that the channel's secret is encrypted for, or None if it needs no secret."""
        if self.url is None:
            return Scope((), "apprise", "address", "{key}")
        return Scope((), self.url, "Aileron-Signature", "v1=HMAC-SHA256({key})") if self.signed else None


@frozen
class NoticeSettings:
    """The operator's settings of notifications. By default there is no channel.

    :ivar contents: True if messages contain the arguments of calls. Desktop notifications never do.
    :ivar desktop: True if there are desktop notifications.
    :ivar desktop_command: the program that shows them, or None for the usual paths of C{notify-send}.
    :ivar channels: the other channels, with distinct names.
    :ivar people: the accounts, by name, that a channel belongs to, by the channel's name. Other channels are the
        operator's.
    """

    contents: bool = False
    desktop: bool = False
    desktop_command: Path | None = None
    channels: tuple[ChannelSettings, ...] = ()
    people: Mapping[str, str] = field(factory=dict)

    def bound_by(self, fqn: str) -> ChannelSettings | None:
        """Return the channel whose secret is bound to C{notice://<name>}, or None if no such channel needs a secret."""
        return next((each for each in self.channels if each.needs_secret and each.fqn == fqn), None)


@frozen
class ChannelState:
    """The state of a channel since the daemon started.

    :ivar kind: C{desktop}, C{webhook} or C{apprise}.
    :ivar sent: the number of delivered messages.
    :ivar failed: the number of messages that were given up.
    :ivar waiting: the number of queued messages.
    :ivar problem: why the last attempt failed, without any address or secret, or None if it succeeded.
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
    """Notifies the operator by the configured channels.

    A notification never fails or delays the work that it is about.
    """

    def channels() -> tuple[ChannelState, ...]:
        """Return the state of each channel."""

    async def test() -> tuple[ChannelState, ...]:
        """Send a test by every channel at once, one attempt each, and return the states after it."""
