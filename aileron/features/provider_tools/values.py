"""The rules for tools that a provider runs itself: requests for them are ignored, noted or refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from aileron.features.gateway.values import ToolKind

if TYPE_CHECKING:
    from aileron.features.gateway.values import GatewaySettings

SETTING = "provider_tools"
"""The name of the key for rules in the gateway's settings and in each provider's settings."""


TOOL_KINDS = tuple(kind for kind in ToolKind if kind is not ToolKind.UNREADABLE)
"""The kinds of tools that can have a rule."""


class ToolRule(StrEnum):
    """The rule for requests that ask for a tool of the provider.

    C{OFF}: the requests are not read. C{NOTE}: the tool is counted and recorded. C{REFUSE}: the requests are refused.
    """

    OFF = "off"
    NOTE = "note"
    REFUSE = "refuse"


def _without_off(given: Mapping[ToolKind, ToolRule]) -> Mapping[ToolKind, ToolRule]:
    return {kind: rule for kind, rule in given.items() if rule is not ToolRule.OFF}


@frozen
class ToolRules:
    """The rule for each kind of tool.

    :ivar kinds: the kinds with a rule other than L{ToolRule.OFF}. If there are none, no request is read.
    """

    kinds: Mapping[ToolKind, ToolRule] = field(factory=dict, converter=_without_off)

    @classmethod
    def all(cls, rule: ToolRule) -> ToolRules:
        """Return rules with one rule for every kind."""
        return cls(dict.fromkeys(TOOL_KINDS, rule))

    @property
    def refuses(self) -> bool:
        """True if any kind is refused. Then a request must be read before it is sent."""
        return ToolRule.REFUSE in self.kinds.values()

    def noting(self) -> ToolRules:
        """Return a copy of these rules with L{ToolRule.NOTE} for kinds without a rule."""
        return evolve(self, kinds={**dict.fromkeys(TOOL_KINDS, ToolRule.NOTE), **self.kinds})

    def rule(self, kind: ToolKind) -> ToolRule:
        """Return the rule for a kind. For an unreadable request, return the strictest rule of all kinds."""
        if kind is not ToolKind.UNREADABLE:
            return self.kinds.get(kind, ToolRule.OFF)
        return ToolRule.REFUSE if self.refuses else ToolRule.NOTE if self.kinds else ToolRule.OFF

    def __str__(self) -> str:
        """Return the rules as text: one rule, or the rule of each kind."""
        rules = {kind: self.rule(kind).value for kind in TOOL_KINDS}
        if len(set(rules.values())) == 1:
            return rules[TOOL_KINDS[0]]
        return ", ".join(f"{kind.value}: {rule}" for kind, rule in rules.items() if kind in self.kinds)


def rules_of(settings: GatewaySettings) -> Mapping[str, ToolRules]:
    """Return the rules for the tools that each provider runs, by the provider's name."""
    of_all: ToolRules = settings.of_features.get(SETTING, ToolRules())
    return {each.name: each.of_features.get(SETTING, of_all) for each in settings.providers}
