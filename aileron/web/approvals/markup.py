"""What a service makes of a text: whom it notifies, and links that lead elsewhere than they say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aileron.values import visible

_EVERYBODY = re.compile(
    r"<!(?:channel|here|everyone|subteam\^[A-Z0-9]{1,20})(?:\|[^>\n]{0,80})?>"
    r"|(?<![\w@])@(?:everyone|here|channel)\b"
)
_PERSON = re.compile(r"<@[!&]?[A-Z0-9]{1,32}(?:\|[^>\n]{0,80})?>")
_SLACK = re.compile(r"<(?P<target>(?:https?://|mailto:|ftp://)[^|<>\n]{1,2000})\|(?P<words>[^<>\n]{0,400})>")
_MARKDOWN = re.compile(r"(?P<picture>!?)\[(?P<words>[^\[\]\n]{0,400})\]\((?P<target>[^)\s]{1,2000})[^)\n]{0,200}\)")
_HREF = r"<a\b[^<>]{0,400}?\bhref\s{0,9}=\s{0,9}[\"']?(?P<target>[^\"'>\s]{1,2000})"
_HTML = re.compile(_HREF + r"[^<>]{0,400}>(?P<words>[^<]{0,400})<", re.IGNORECASE)
_SRC = r"<img\b[^<>]{0,400}?\bsrc\s{0,9}=\s{0,9}[\"']?(?P<target>[^\"'>\s]{1,2000})"
_PICTURE = re.compile(_SRC, re.IGNORECASE)


def markup(text: str) -> Iterator[str]:
    """One sentence for each thing in C{text} that a service may act on or hide, in words that are made visible."""
    yield from (f"{_quoted(found)} notifies everybody there." for found in _all(_EVERYBODY, text))
    yield from (f"{_quoted(found)} notifies somebody." for found in _all(_PERSON, text))
    for pattern in (_SLACK, _MARKDOWN, _HTML):
        yield from filter(None, map(_leads, pattern.finditer(text)))
    for found in _PICTURE.finditer(text):
        yield f"A picture is fetched from {_quoted(found['target'])}."


def _leads(link: re.Match[str]) -> str:
    """Where a link leads, if it does not say so itself."""
    if link.groupdict().get("picture"):
        return f"A picture is fetched from {_quoted(link['target'])}."
    if _plain(link["words"]) == _plain(link["target"]):
        return ""
    return f"A link reads {_quoted(link['words'])} and leads to {_quoted(link['target'])}."


def _plain(address: str) -> str:
    return re.sub(r"\A(?:https?://|mailto:)", "", address.strip().lower()).removesuffix("/")


def _all(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    yield from dict.fromkeys(found[0] for found in pattern.finditer(text))


def _quoted(words: str) -> str:
    return f"“{visible(words)}”"
