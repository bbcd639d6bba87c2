"""Tools that a provider runs itself: which there are, what becomes of a request that asks for one, and the counts."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import evolve, field, frozen


class ToolKind(StrEnum):
    """The kinds of tools by which a provider acts, or fetches and sends data, on its own.

    C{OTHER}: of a type that this version does not know.  C{UNREADABLE} is none: the request could not be read.
    """

    REMOTE_MCP = "remote_mcp"
    WEB_SEARCH = "web_search"
    WEB_FETCH = "web_fetch"
    CODE_EXECUTION = "code_execution"
    COMPUTER_USE = "computer_use"
    FILE_SEARCH = "file_search"
    IMAGE_GENERATION = "image_generation"
    OTHER = "other"
    UNREADABLE = "unreadable"


TOOL_KINDS = tuple(kind for kind in ToolKind if kind is not ToolKind.UNREADABLE)
"""Those that a rule can be set for."""


class ToolRule(StrEnum):
    """The rule for a request that asks for such a tool: it goes on unread, is noted, or is refused."""

    OFF = "off"
    NOTE = "note"
    REFUSE = "refuse"


def _without_off(given: Mapping[ToolKind, ToolRule]) -> Mapping[ToolKind, ToolRule]:
    return {kind: rule for kind, rule in given.items() if rule is not ToolRule.OFF}


@frozen
class ToolRules:
    """The rule for each kind of tool.

    :ivar kinds: those that have one other than L{ToolRule.OFF}; where there are none, no request is read.
    """

    kinds: Mapping[ToolKind, ToolRule] = field(factory=dict, converter=_without_off)

    @classmethod
    def all(cls, rule: ToolRule) -> ToolRules:
        """Return the same rule for every kind."""
        return cls(dict.fromkeys(TOOL_KINDS, rule))

    @property
    def refuses(self) -> bool:
        """True if there is anything that it refuses, so that a request must be read before it is sent."""
        return ToolRule.REFUSE in self.kinds.values()

    def noting(self) -> ToolRules:
        """Return the same, but that what had no rule is noted."""
        return evolve(self, kinds={**dict.fromkeys(TOOL_KINDS, ToolRule.NOTE), **self.kinds})

    def rule(self, kind: ToolKind) -> ToolRule:
        """Return the rule for a kind; for what could not be read, the strictest that there is."""
        if kind is not ToolKind.UNREADABLE:
            return self.kinds.get(kind, ToolRule.OFF)
        return ToolRule.REFUSE if self.refuses else ToolRule.NOTE if self.kinds else ToolRule.OFF

    def __str__(self) -> str:
        """Return it in words: one rule, or that of each kind."""
        rules = {kind: self.rule(kind).value for kind in TOOL_KINDS}
        if len(set(rules.values())) == 1:
            return rules[TOOL_KINDS[0]]
        return ", ".join(f"{kind.value}: {rule}" for kind, rule in rules.items() if kind in self.kinds)


@frozen
class ProviderTool:
    """A tool that a request asks its provider to run.

    :ivar host: of a remote MCP server; empty: it has none, or one that is not to be told.
    """

    kind: ToolKind
    host: str = ""

    def __str__(self) -> str:
        """Return the kind, and the host if there is one."""
        return f"{self.kind.value} at {self.host}" if self.host else self.kind.value


@frozen
class ToolCount:
    """The number of requests that asked for one tool.

    :ivar session_id: L{None}: in no session.
    :ivar refused: whether these requests were refused.
    """

    provider: str
    session_id: str | None
    tool: ProviderTool
    refused: bool
    requests: int
