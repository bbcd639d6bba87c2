"""The key C{notifications} of C{config.yaml}: the channels by which the operator is notified."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aileron.base.yaml_keys import (
    Key,
    Keys,
    NotConfig,
    Section,
    absolute_path,
    base_url,
    entries,
    items,
    line_of,
    read_keys,
    scalar,
    switch,
)
from aileron.model.people import NAME

from .values import ChannelSettings, NoticeSettings

if TYPE_CHECKING:
    from yaml import Node

_ACCOUNT = re.compile(NAME)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
DESKTOP = "desktop"
_MOST_CHANNELS = 16


def _notices(keys: Keys, node: Node, name: str, _line: int) -> NoticeSettings:
    read = read_keys(node, name, keys)
    channels = (*read.pop("webhooks", ()), *read.pop("apprise", ()))
    names = [each.name for each in channels]
    if len(names) != len(set(names)):
        raise NotConfig(f"each of {name} must have a name of its own", line_of(node))
    if len(names) > _MOST_CHANNELS:
        raise NotConfig(f"{name} may have {_MOST_CHANNELS} channels at most", line_of(node))
    people = _owners_of_channels(read.get("people", {}), names, line_of(node))
    return NoticeSettings(read.get("contents", False), channels=channels, people=people, **read.get("desktop", {}))


def _owners_of_channels(people: Mapping[str, Sequence[str]], names: Sequence[str], line: int) -> Mapping[str, str]:
    """Return the account that each channel belongs to, by the channel's name.

    :raises NotConfig: if a channel is unknown, or belongs to two accounts.
    """
    found = dict[str, str]()
    for person, channels in people.items():
        for each in channels:
            if each not in names:
                raise NotConfig(f"notifications.people.{person} names {each}, which is no webhook and no apprise", line)
            if each in found:
                raise NotConfig(f"notifications.people names {each} twice", line)
            found[each] = person
    return found


def _people(node: Node, name: str, _line: int) -> dict[str, list[str]]:
    return {
        _check_person(person, line): [
            scalar(each, "str") or "" for each in items(node_of, f"{name}.{person}", line, _MOST_CHANNELS, "channels")
        ]
        for person, (node_of, line) in entries(node, name).items()
    }


def _check_person(name: str, line: int) -> str:
    if _ACCOUNT.fullmatch(name) is None:
        raise NotConfig("notifications.people must have names of accounts", line)
    return name


def _desktop(node: Node, name: str, line: int) -> dict[str, Any]:
    if scalar(node, "bool") is not None:
        return {"desktop": switch(node, name, line)}
    return {"desktop": True, "desktop_command": read_keys(node, name, _OF_DESKTOP).get("command")}


def _webhooks(keys: Keys, node: Node, where: str, _line: int) -> list[ChannelSettings]:
    said = entries(node, where).items()
    return [_webhook(keys, _check_name(name, line), each, f"{where}.{name}", line) for name, (each, line) in said]


def _webhook(keys: Keys, name: str, node: Node, where: str, line: int) -> ChannelSettings:
    read = read_keys(node, where, keys)
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


_NOTICE_DEFAULT = NoticeSettings()
_OF_DESKTOP: Keys = {"command": Key(absolute_path, "absolute path of the program that shows them", "`notify-send`")}
_OF_WEBHOOK: Keys = {
    "url": Key(base_url, "address for messages: `https`, or `http` to this machine; no user, no query", "required"),
    "signed": Key(switch, "whether messages are signed with a key from the vault", default=False),
}
_KEYS: Keys = {
    "desktop": Key(_desktop, "whether desktop notifications are shown", _NOTICE_DEFAULT.desktop, _OF_DESKTOP),
    "webhooks": Section(_webhooks, _OF_WEBHOOK, ".<name>"),
    "apprise": Key(_apprise, "names of apprise addresses in the vault", "none"),
    "people": Key(
        _people, "channels of [accounts](team.md): each is told only how many requests wait that it may decide", "none"
    ),
    "contents": Key(switch, "whether webhooks and apprise are sent the arguments of calls", _NOTICE_DEFAULT.contents),
}
NOTICES = Section(_notices, _KEYS)
