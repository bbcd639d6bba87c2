"""Reads the notifications of C{config.yaml}: the channels that tell the operator about waiting approvals."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from aileron.values import ChannelSettings, NoticeSettings

from ._nodes import NotConfig, absolute_path, base_url, entries, items, line_of, read_keys, scalar, switch

if TYPE_CHECKING:
    from yaml import Node

DESKTOP = "desktop"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_MOST_CHANNELS = 16


def read_notices(node: Node, name: str, _line: int) -> NoticeSettings:
    """Read the part of notifications.

    :raises NotConfig: a key is unknown, said twice, of another type or out of its bounds, or two channels have a name.
    """
    read = read_keys(node, name, {"contents": switch, "desktop": _desktop, "webhooks": _webhooks, "apprise": _apprise})
    channels = (*read.pop("webhooks", ()), *read.pop("apprise", ()))
    names = [each.name for each in channels]
    if len(names) != len(set(names)):
        raise NotConfig(f"each of {name} must have a name of its own", line_of(node))
    if len(names) > _MOST_CHANNELS:
        raise NotConfig(f"{name} may have {_MOST_CHANNELS} channels at most", line_of(node))
    return NoticeSettings(read.get("contents", False), channels=channels, **read.get("desktop", {}))


def _desktop(node: Node, name: str, line: int) -> dict[str, Any]:
    if scalar(node, "bool") is not None:
        return {"desktop": switch(node, name, line)}
    return {"desktop": True, "desktop_command": read_keys(node, name, {"command": absolute_path}).get("command")}


def _webhooks(node: Node, where: str, _line: int) -> list[ChannelSettings]:
    said = entries(node, where).items()
    return [_webhook(_check_name(name, line), each, f"{where}.{name}", line) for name, (each, line) in said]


def _webhook(name: str, node: Node, where: str, line: int) -> ChannelSettings:
    read = read_keys(node, where, {"url": base_url, "signed": switch})
    if "url" not in read:
        raise NotConfig(f"{where} must have a url", line)
    return ChannelSettings(name, **read)


def _apprise(node: Node, name: str, line: int) -> list[ChannelSettings]:
    listed = items(node, name, line, _MOST_CHANNELS, "names, whose addresses lie in the vault")
    return [ChannelSettings(_check_name(scalar(each, "str") or "", line_of(each))) for each in listed]


def _check_name(name: str, line: int) -> str:
    if name == DESKTOP or not _NAME.fullmatch(name):
        problem = f"must be of a-z, 0-9 and -, begin with a letter, 32 at most, and not be {DESKTOP}"
        raise NotConfig(f"a notification's name {problem}", line)
    return name
