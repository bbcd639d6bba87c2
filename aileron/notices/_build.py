"""Puts the room together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from aileron.interfaces import IAudit, IBindings, IChannel, IRuns, ISessions, IVault, IWatermarks
from aileron.values import ChannelSettings, NoticeSettings

from ._apprise import Apprise, InThread, tell
from ._desktop import Desktop, find_command
from ._details import Details
from ._notifier import Notifier
from ._secret import Secret
from ._webhook import Webhook


@frozen(kw_only=True)
class Collaborators:
    """All that a notifier works with.

    :ivar reactor: tells the time, connects and spawns.
    :ivar in_thread: calls a function in another thread.
    :ivar ids: a fresh one at each call.
    :ivar operator_url: of the operator's site, once that is bound.
    :ivar environ: the daemon's, of which the desktop's program gets the few variables that lead to the desktop.
    """

    audit: IAudit
    runs: IRuns
    sessions: ISessions
    watermarks: IWatermarks
    vault: IVault
    bindings: IBindings
    reactor: Any
    in_thread: InThread
    ids: Callable[[], str]
    operator_url: Callable[[], str]
    environ: Mapping[str, str] = field(factory=dict, repr=False)


def build(settings: NoticeSettings, with_: Collaborators) -> Notifier:
    """A notifier; call its C{start} once everything else is there, and its C{stop} at the end."""
    details = Details(
        with_.runs,
        with_.sessions,
        with_.vault,
        with_.reactor,
        with_.ids,
        with_.operator_url,
        settings.contents,
    )
    channels = tuple(_channels(settings, with_))
    return Notifier(with_.audit, with_.watermarks, details, with_.reactor, channels)


def _channels(settings: NoticeSettings, with_: Collaborators) -> Iterator[IChannel]:
    if settings.desktop:
        yield Desktop(find_command(settings.desktop_command), with_.environ, with_.reactor)
    for each in settings.channels:
        yield _channel(each, with_)


def _channel(each: ChannelSettings, with_: Collaborators) -> IChannel:
    secret = Secret(with_.bindings, each)
    if each.url is None:
        return Apprise(each.name, secret, with_.in_thread, tell)
    return Webhook(each.name, each.url, with_.reactor, secret if each.signed else None)
