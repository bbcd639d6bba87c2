"""A thousand strings that somebody would like to see act on a page: made by rule, the same ones every time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

MANY = 1_000
HIT = "hostile-was-here"
"""What each script among them would write into the page's title, so that it is seen where one acts."""

_ACT = f"document.title='{HIT}'"
_LONG = 20_000
_FAR = "http://127.0.0.1:9/hostile"

_MARKUP = (
    f"<script>{_ACT}</script>",
    f"<script src={_FAR}></script>",
    f"<img src=x onerror={_ACT}>",
    f"<img src={_FAR}>",
    f"<svg onload={_ACT}>",
    f"<svg><animate onbegin={_ACT} attributeName=x dur=1s>",
    f"<svg><script>{_ACT}</script></svg>",
    f"<math><mtext><script>{_ACT}</script>",
    f"<iframe srcdoc='<script>parent.{_ACT}</script>'></iframe>",
    f"<iframe src={_FAR}></iframe>",
    f"<object data={_FAR}></object>",
    f"<embed src={_FAR}>",
    f"<link rel=stylesheet href={_FAR}>",
    f"<base href={_FAR}>",
    f"<meta http-equiv=refresh content='0;url={_FAR}'>",
    f"<form action={_FAR}><button id=approve>Approve</button></form>",
    f"<details open ontoggle={_ACT}>",
    f"<video><source onerror={_ACT}></video>",
    f"<template><script>{_ACT}</script></template>",
    f"<a href=javascript:{_ACT}>approve</a>",
    "<button id=approve>Approve</button>",
    "<article data-state=completed data-digest=sha256:0>",
    "<style>*{display:none}</style>",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?xml version='1.0'?>",
    "<!DOCTYPE html>",
    "<plaintext>",
    "<noscript>",
    "<title>",
)
_BREAKS = (
    '"', "'", "`", ">", "/>", '">', "'>", "</dd></dl>", "</pre>", "</textarea>", "</select>", "</title>", "</script>",
    "</style>", "</bdi></small>", "</article>", f'" onmouseover={_ACT} "', f"' autofocus onfocus={_ACT} '",
)  # fmt: skip
_TEMPLATES = (
    "{{told}}", "{{7*7}}", "${7*7}", "#{7*7}", "{%x%}", "<%=x%>", "<t:slot name='digest'/>", "t:render='root'",
    "%(name)s", "{0.__class__}", "$(id)", "&lt;script&gt;", "&#60;script&#62;", "&#x202e;", "&amp;lt;", "&NewLine;",
)  # fmt: skip
_ADDRESSES = (
    f"javascript:{_ACT}", f"JaVaScRiPt:{_ACT}", f"java\tscript:{_ACT}", f"\x01javascript:{_ACT}",
    f"data:text/html,<script>{_ACT}</script>", "vbscript:x", f"//{_FAR[7:]}", f"\\\\{_FAR[7:]}", "/\\evil.example",
    "https://аррӏе.com", "https://xn--80ak6aa92e.com", "https://example.org@evil.example", "file:///etc/passwd",
    "blob:http://localhost/x", "approvals/../../static/page.js", "?next=//evil.example", "#approve",
)  # fmt: skip
_STYLES = (
    f"background:url({_FAR})", f"@import '{_FAR}';", "}*{display:none}", "position:fixed;inset:0",
    "width:expression(alert(1))",
)  # fmt: skip
_UNSEEN = (
    "\u202e", "\u202d", "\u2066", "\u2067", "\u2068", "\u2069", "\u202c", "\u200e", "\u200f", "\u061c", "\u200b",
    "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u115f", "\u3164", "\uffa0", "\u2800", "\ufe0f",
    "\U000e0041", "\U000e0100", "\u2028", "\u2029", "\x85", "\xa0", "\u3000", "\ud800", "\udfff", "\ue000", "\ufdd0",
    "\x00", "\x07", "\x08", "\x0b", "\x0c", "\r", "\x1a", "\x1b[2J", "\x1b]0;owned\x07", "\x1b[31m", "\x9b2J", "\x7f",
)  # fmt: skip
_WORDS = ("approve", "ship it", "kein Ärger", "日本語", "שלום", "Ω", "🚀", "аррrove", "ｄｅｎｙ", "e\u0301", "")


@cache
def hostile_strings() -> tuple[str, ...]:
    """All of them, each different: every ingredient by itself, then mixtures, a few of them very long."""
    found = dict.fromkeys((*_ingredients(), *_very_long()))
    chance = random.Random(20_260_101)
    while len(found) < MANY:
        found.setdefault(_mixture(chance))
    return tuple(found)


def _ingredients() -> Iterator[str]:
    for kind in (_MARKUP, _BREAKS, _TEMPLATES, _ADDRESSES, _STYLES, _UNSEEN):
        yield from kind


def _very_long() -> Iterator[str]:
    yield "A" * _LONG
    yield "<b>" * (_LONG // 3)
    yield "Z" + "\u0300\u0301\u0489" * (_LONG // 30)
    yield "\u202e" * (_LONG // 20)
    yield "\n" * (_LONG // 20)
    yield "word " * (_LONG // 5)
    yield "]" * 500 + "[" * 500


def _mixture(chance: random.Random) -> str:
    """What breaks out, what then acts, what hides it: in any order, with or without each."""
    kinds = chance.choices((_WORDS, _BREAKS, _MARKUP, _TEMPLATES, _ADDRESSES, _STYLES, _UNSEEN), k=chance.randint(2, 6))
    text = "".join(chance.choice(kind) for kind in kinds)
    if chance.random() < 0.2:
        place = chance.randrange(len(text) + 1)
        text = text[:place] + chance.choice(_UNSEEN) + text[place:]
    return text.swapcase() if chance.random() < 0.1 else text
