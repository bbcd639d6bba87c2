"""The keys C{provider_tools} in the gateway's settings: the rules for tools that providers run themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aileron.base.yaml_keys import Key, NotConfig, read_keys, scalar

from .values import SETTING, TOOL_KINDS, ToolRule, ToolRules

if TYPE_CHECKING:
    from yaml import Node


def _provider_tools(node: Node, name: str, line: int) -> ToolRules:
    """Parse rules: one rule for all kinds, or a mapping with rules for kinds and for C{others}.

    :raises NotConfig: if a kind or a rule is unknown.
    """
    from yaml import ScalarNode

    if isinstance(node, ScalarNode):
        return ToolRules.all(_tool_rule(node, name, line))
    said = read_keys(node, name, dict.fromkeys((*TOOL_KINDS, "others"), Key(_tool_rule, "", "")))
    others = said.pop("others", ToolRule.OFF)
    return ToolRules({kind: said.get(kind, others) for kind in TOOL_KINDS})


def _tool_rule(node: Node, name: str, line: int) -> ToolRule:
    text = scalar(node, "str") or scalar(node, "bool")  # YAML parses off as false
    if text not in set(ToolRule):
        raise NotConfig(f"{name} must be one of: {', '.join(ToolRule)}", line)
    return ToolRule(text)


_MEANING = "`off`, `note` or `refuse`, for all tools that {} or for each kind"
KEYS: Mapping[str, Key] = {
    f"gateway.{SETTING}": Key(_provider_tools, _MEANING.format("providers run themselves"), "`off`"),
    f"gateway.providers.<name>.{SETTING}": Key(
        _provider_tools, _MEANING.format("it runs itself"), "that of the gateway"
    ),
}
