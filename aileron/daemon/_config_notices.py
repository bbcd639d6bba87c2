"""What C{config.yaml} says of notifications: where the operator is told of what waits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aileron.addresses import read_base_url
from aileron.values import ChannelSettings, NoticeSettings

from ._nodes import Keyed, NotConfig, entries, keys, line_of, scalar, switch

if TYPE_CHECKING:
    from yaml import Node

DESKTOP = "desktop"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_MOST_CHANNELS = 16


def notices(node: Node) -> NoticeSettings:
    """Read the part of notifications.

    :raises NotConfig: a key is unknown, said twice, of another type or out of its bounds, or two channels have a name.
    """
    said = keys(node, "notifications", ("contents", "desktop", "webhooks", "apprise"))
    channels = (*_webhooks(said), *_apprise(said))
    names = [each.name for each in channels]
    if len(names) != len(set(names)):
        raise NotConfig("each of notifications must have a name of its own", line_of(node))
    if len(names) > _MOST_CHANNELS:
        raise NotConfig(f"notifications may have {_MOST_CHANNELS} channels at most", line_of(node))
    contents = "contents" in said and switch(said["contents"][0], "notifications.contents", said["contents"][1])
    return NoticeSettings(contents, channels=channels, **dict(_desktop(said)))


def _desktop(said: Keyed) -> Iterator[tuple[str, Any]]:
    if "desktop" not in said:
        return
    node, line = said["desktop"]
    if scalar(node, "bool") is not None:
        yield "desktop", switch(node, "notifications.desktop", line)
        return
    yield "desktop", True
    for command, at in keys(node, "notifications.desktop", ("command",)).values():
        text = scalar(command, "str") or ""
        if not Path(text).is_absolute() or "\0" in text:
            raise NotConfig("notifications.desktop.command must be an absolute path", at)
        yield "desktop_command", Path(text)


def _webhooks(said: Keyed) -> Iterator[ChannelSettings]:
    if "webhooks" in said:
        for name, (node, line) in entries(said["webhooks"][0], "notifications.webhooks").items():
            yield _webhook(_named(name, line), node, line)


def _webhook(name: str, node: Node, line: int) -> ChannelSettings:
    where = f"notifications.webhooks.{name}"
    said = keys(node, where, ("url", "signed"))
    if "url" not in said:
        raise NotConfig(f"{where} must have a url", line)
    text, at = scalar(said["url"][0], "str") or "", said["url"][1]
    try:
        url = read_base_url(text).url
    except ValueError as error:
        raise NotConfig(f"{where}.url {error}", at) from None
    signed = "signed" in said and switch(said["signed"][0], f"{where}.signed", said["signed"][1])
    return ChannelSettings(name, url, signed)


def _apprise(said: Keyed) -> Iterator[ChannelSettings]:
    if "apprise" not in said:
        return
    from yaml import SequenceNode

    node, line = said["apprise"]
    if not isinstance(node, SequenceNode):
        raise NotConfig("notifications.apprise must be a list of names; their addresses lie in the vault", line)
    for each in node.value:
        yield ChannelSettings(_named(scalar(each, "str") or "", line_of(each)))


def _named(name: str, line: int) -> str:
    if name == DESKTOP or not _NAME.fullmatch(name):
        problem = f"must be of a-z, 0-9 and -, begin with a letter, 32 at most, and not be {DESKTOP}"
        raise NotConfig(f"a notification's name {problem}", line)
    return name
