"""Names for what a C{curl} command is about: its service, its operation, and the inputs of its path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from aileron.addresses import is_loopback

from ._curl_credential import find_placeholders, looks_random
from ._derive import name_of

_CAPITALS = re.compile(r"[A-Z][A-Z_-]{2,60}").fullmatch
_VERSION = re.compile(r"api|rest|v?[0-9]{1,20}(?:[._][0-9]{1,3})?")
_ID = re.compile(r"[0-9]{5,40}").fullmatch
_NUMBER = re.compile(r"[0-9.]+|[0-9a-f:]*:[0-9a-f:]*")
_ENDINGS = frozenset("ac co com edu gov net or org".split())
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,30}").fullmatch


def name_host(host: str) -> str:
    """Make a name of the host of a service."""
    if is_loopback(host) or _NUMBER.fullmatch(host):
        return "local"
    labels = host.split(".")[:-1] or [host]
    labels = labels[:-1] if len(labels) > 1 and labels[-1] in _ENDINGS else labels
    return labels[-1] if _NAME(labels[-1]) else "service"


def name_path(path: str) -> str:
    """Return what a path is about: its literal segments, without those that are in every path."""
    segments = [each for each in path.split("/") if each and not find_placeholders(each)]
    return name_of("_".join(each for each in segments if not _VERSION.fullmatch(each)) or "root", most=200)


def list_words(words: Sequence[str]) -> str:
    """Write words as a list in a sentence."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def join_placeholders(url: str) -> str:
    """Return a URL without the blanks that stand in its placeholders, such as C{{API key}}."""
    for each in find_placeholders(url):
        url = url.replace(each[0], each[0].replace(" ", "_"))
    return url


def name_inputs(segments: Sequence[str]) -> str:
    """Return a path with names in braces where a value stood that is another one each time."""
    named: dict[str, str] = {}  # by what they stand for: the same text has one name
    return "/".join(_name_inputs(each, before, named) for before, each in pairwise(("", *segments)))


def _name_inputs(segment: str, before: str, named: dict[str, str]) -> str:
    def name(text: str, words: str) -> str:
        named.setdefault(text, name_of(words, {*named.values()}, 60))
        return f"{{{named[text]}}}"

    if found := find_placeholders(segment):
        pieces, at = [], 0
        for each in found:
            pieces += [segment[at : each.start()], name(each[0], each[0])]
            at = each.end()
        return "".join((*pieces, segment[at:]))
    if _CAPITALS(segment):
        return name(segment, segment)
    if not looks_random(segment) and not _ID(segment):
        return segment
    is_word = not (_VERSION.fullmatch(before) or find_placeholders(before) or looks_random(before))
    words = before.removesuffix("s") if is_word else ""
    return name(segment, f"{words}_id".strip("_"))
