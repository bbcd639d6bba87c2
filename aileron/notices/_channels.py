"""Builds the channels that the operator has configured, and opens what lies in the vault for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from aileron.errors import BindingFailed, VaultLocked
from aileron.interfaces import IBindings, IChannel
from aileron.values import ChannelSettings, NoticeSettings

from ._apprise import AppriseChannel, InThread
from ._delivery import Undelivered
from ._desktop import DesktopChannel, find_command
from ._webhook import WebhookChannel


def build_channels(
    settings: NoticeSettings, *, bindings: IBindings, reactor: Any, in_thread: InThread, environ: Mapping[str, str]
) -> tuple[IChannel, ...]:
    """Build the configured channels.

    :param reactor: tells the time, connects and spawns.
    :param in_thread: calls a function in another thread.
    :param environ: the daemon's, of which the desktop's program gets the few variables that lead to the desktop.
    """

    def build() -> Iterator[IChannel]:
        if settings.desktop:
            yield DesktopChannel(find_command(settings.desktop_command), environ, reactor)
        for each in settings.channels:
            secret = partial(open_secret, bindings, each)
            if each.url is None:
                yield AppriseChannel(each.name, secret, in_thread)
            else:
                yield WebhookChannel(each.name, each.url, reactor, secret if each.signed else None)

    return tuple(build())


async def open_secret(bindings: IBindings, channel: ChannelSettings) -> bytes:
    """Open the address or key of a channel, for one message: it is not kept, so that it is locked with the vault.

    :raises Undelivered: there is none, or it does not open; not now at least.
    """
    scope, name = channel.scope(), channel.name
    bound = bindings.for_connector(channel.fqn)
    if scope is None or not bound:
        raise Undelivered(f"Nothing is bound to it: aileron notification add {name}", again=False)
    if len(bound) > 1:
        raise Undelivered("More than one secret is bound to it: aileron binding revoke", again=False)
    try:
        return await bindings.credential(bound[0], scope).reveal()
    except VaultLocked:
        raise Undelivered("The vault is locked, and what it needs lies there.", again=False) from None
    except BindingFailed:
        why = f"What is bound to it is for another address: aileron notification remove {name}, then add"
        raise Undelivered(why, again=False) from None
