"""The keys C{limits}, C{prices} and C{runaway} in the gateway's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from aileron.base.yaml_keys import Key, NotConfig, WholeNumber, entries, items, read_keys, scalar

from .values import MICRODOLLARS, MOST, Per, Price, Runaway, SpendLimit, Unit

if TYPE_CHECKING:
    from yaml import Node

MODEL = re.compile(r"[A-Za-z0-9_./:@+-]{1,128}\*?|\*")
"""A model's name, or the beginning of one with a C{*} at the end."""

PROVIDER = re.compile(r"[a-z][a-z0-9-]{0,31}")
MOST_LIMITS = 100
_MOST_PRICES = 1000
_MOST_PRICE = 1_000_000.0
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?")


def read_dollars(text: str) -> int | None:
    """Return a number of dollars in millionths, or None if the text is no number of dollars above 0."""
    if not _NUMBER.fullmatch(text):
        return None
    whole, _, part = text.partition(".")
    return int(whole) * MICRODOLLARS + int(part.ljust(6, "0")) or None


def _limits(node: Node, name: str, line: int) -> tuple[SpendLimit, ...]:
    found: dict[str, SpendLimit] = {}
    for place, each in enumerate(items(node, name, line, MOST_LIMITS, "limits")):
        limit = _limit(each, f"{name}[{place}]", int(each.start_mark.line) + 1)
        if limit.id in found:
            raise NotConfig(f"{name}[{place}] limits the same as an earlier entry", int(each.start_mark.line) + 1)
        found[limit.id] = limit
    return tuple(found.values())


def _limit(node: Node, name: str, line: int) -> SpendLimit:
    said = read_keys(node, name, _OF_LIMIT)
    units = [unit for unit in Unit if unit.value in said]
    if len(units) != 1:
        raise NotConfig(f"{name} must have one of: {', '.join(Unit)}", line)
    (unit,), per = units, said.get("per", Per.DAY)
    if unit is Unit.REQUESTS and per is Per.REQUEST:
        raise NotConfig(f"{name} cannot limit the requests of one request", line)
    return SpendLimit(unit, per, said[unit.value], said.get("provider"), said.get("model"))


def _per(node: Node, name: str, line: int) -> Per:
    text = scalar(node, "str")
    if text not in set(Per):
        raise NotConfig(f"{name} must be one of: {', '.join(Per)}", line)
    return Per(text)


def _money(node: Node, name: str, line: int) -> int:
    found = read_dollars(scalar(node, "int") or scalar(node, "float") or "")
    if found is None:
        raise NotConfig(f"{name} must be an amount in US dollars, such as 20 or 0.50", line)
    return found


def _text_like(pattern: re.Pattern[str], example: str) -> Any:
    def read(node: Node, name: str, line: int) -> str:
        text = scalar(node, "str") or ""
        if not pattern.fullmatch(text):
            raise NotConfig(f"{name} must be a name such as {example}", line)
        return text

    return read


def _prices(node: Node, name: str, line: int) -> Mapping[str, Price]:
    said = entries(node, name)
    if len(said) > _MOST_PRICES:
        raise NotConfig(f"{name} may have {_MOST_PRICES} entries at most", line)
    return {model: _price(model, value, f"{name}.{model}", at) for model, (value, at) in said.items()}


def _price(model: str, node: Node, name: str, line: int) -> Price:
    if not MODEL.fullmatch(model):
        raise NotConfig(f"{name} must be the name of a model, which may end in *", line)
    said = read_keys(node, name, _OF_PRICE)
    if not said.keys() >= {"input", "output"}:
        raise NotConfig(f"{name} must have the prices input and output", line)
    return Price(said["input"], said["output"], said.get("cached", said["input"]))


def _dollars(node: Node, name: str, line: int) -> float:
    text = scalar(node, "int") or scalar(node, "float") or ""
    if not _NUMBER.fullmatch(text) or float(text) > _MOST_PRICE:
        raise NotConfig(f"{name} must be a price in US dollars for a million tokens", line)
    return float(text)


def _runaway(node: Node, name: str, line: int) -> Runaway:
    return Runaway(**read_keys(node, name, _OF_RUNAWAY))


_OF_LIMIT = {
    "per": Key(_per, "`request`, `session` or `day`", "`day`"),
    "tokens": Key(WholeNumber(MOST), "most tokens, input and output", "no limit"),
    "requests": Key(WholeNumber(MOST), "most requests", "no limit"),
    "money": Key(_money, "most US dollars", "no limit"),
    "provider": Key(_text_like(PROVIDER, "openai"), "provider whose requests count", "all"),
    "model": Key(_text_like(MODEL, "gpt-5*"), "model whose requests count; may end in `*`", "all"),
}
_OF_PRICE = {
    "input": Key(_dollars, "", ""),
    "output": Key(_dollars, "", ""),
    "cached": Key(_dollars, "", ""),
}
_OF_RUNAWAY = {
    "same_requests": Key(WholeNumber(10_000), "how often one request may follow itself", "no bound"),
    "per_minute": Key(WholeNumber(100_000), "requests of a session in a minute", "no bound"),
}
KEYS: Mapping[str, Key] = {
    "gateway.limits": Key(
        _limits, "list of [limits on spending](spending.md), such as `{per: day, tokens: 2000000}`", "none"
    ),
    "gateway.prices": Key(
        _prices, "prices by model, in US dollars for a million tokens: `{input: 3, output: 15, cached: 0.3}`", "none"
    ),
    "gateway.runaway": Key(_runaway, "bounds for agents that run away", "none", _OF_RUNAWAY),
}
