"""The key C{prompts} of C{config.yaml}: whether asks are listed, how long they wait, and the rules that answer some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aileron.base.yaml_keys import (
    Key,
    Keys,
    NotConfig,
    WholeNumber,
    absolute_path,
    items,
    line_of,
    read_keys,
    scalar,
    section,
)

from .values import MOST_WAIT_SECONDS, PromptRule, PromptSettings, ReplyKind

if TYPE_CHECKING:
    from yaml import Node

MOST_RULES = 200
_MOST_REASON = 500
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


def _switch(node: Node, name: str, line: int) -> bool:
    text = scalar(node, "bool")
    if text not in _SWITCH:
        raise NotConfig(f"{name} must be on or off", line)
    return _SWITCH[text]


def _rules(node: Node, name: str, line: int) -> tuple[PromptRule, ...]:
    listed = items(node, name, line, MOST_RULES, "rules")
    return tuple(_rule(each, f"each of {name}") for each in listed)


def _rule(node: Node, name: str) -> PromptRule:
    read = read_keys(node, name, _OF_RULE)
    answers = [each for each in (ReplyKind.ALLOW, ReplyKind.ASK, ReplyKind.DENY) if each.value in read]
    if len(answers) != 1:
        raise NotConfig(f"{name} must have one of allow, ask and deny", line_of(node))
    (answer,) = answers
    tool, pattern = read[answer.value]
    project = read.get("project")
    return PromptRule(answer, tool, pattern, str(project) if project else "", read.get("reason", ""))


def _words(node: Node, name: str, line: int) -> tuple[str, str | None]:
    from .patterns import read_rule

    try:
        return read_rule(scalar(node, "str") or "")
    except ValueError as error:
        raise NotConfig(f"{name} {error}", line) from None


def _reason(node: Node, name: str, line: int) -> str:
    text = scalar(node, "str") or ""
    if not 0 < len(text) <= _MOST_REASON:
        raise NotConfig(f"{name} must be a text of {_MOST_REASON} characters at most", line)
    return text


_OF_RULE: Keys = {
    "allow": Key(
        _words, "tool, or tool and pattern, such as `Bash(npm test *)`, that is allowed without asking", "none"
    ),
    "ask": Key(_words, "the same, for what you are asked about even where the agent would not ask", "none"),
    "deny": Key(_words, "the same, for what is denied", "none"),
    "project": Key(absolute_path, "directory of the sessions that the rule holds for", "all"),
    "reason": Key(_reason, "the reason for a denial, shown to the agent's model", "the rule"),
}
_KEYS: Keys = {
    "inbox": Key(_switch, "whether the agents' own permission prompts are listed in the inbox: `on` or `off`", "`on`"),
    "wait_seconds": Key(
        WholeNumber(MOST_WAIT_SECONDS), "how long a prompt waits before only the agent asks", MOST_WAIT_SECONDS
    ),
    "rules": Key(_rules, "[rules](prompts.md#rules) that answer prompts; a denial wins", "none", _OF_RULE),
}
PROMPTS = section(PromptSettings, _KEYS)
