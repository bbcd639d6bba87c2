"""The values of the agents' own permission prompts: asks, their answers, and the rules that answer some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from aileron.base.json import JSON

MOST_WAIT_SECONDS = 3500
"""How long an ask waits at most: less than the hour after which the agents give up their hooks."""


class AskState(StrEnum):
    """The state of an ask, which is a permission prompt of an agent.

    C{ANSWERED_IN_TERMINAL}: the person answered the agent's own dialog. C{EXPIRED}: nobody answered in time.
    C{WITHDRAWN}: the agent stopped waiting, or its session ended.
    """

    WAITING = "waiting"
    ALLOWED = "allowed"
    DENIED = "denied"
    ANSWERED_IN_TERMINAL = "answered_in_terminal"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class AskAnswer(StrEnum):
    """The operator's answer to an ask.

    C{SESSION}: allow this call, and from now on the calls of the session that match a pattern.
    """

    ONCE = "once"
    SESSION = "session"
    DENY = "deny"


class ReplyKind(StrEnum):
    """The reply of a hook to its agent.

    C{ASK}: show the agent's own dialog. C{NONE}: no decision, so the agent proceeds as it does without a hook.
    """

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    NONE = "none"


@frozen
class HookReply:
    """The reply to a hook.

    :ivar reason: the reason, which the agent's model reads; empty for none.
    """

    kind: ReplyKind
    reason: str = ""


NO_DECISION = HookReply(ReplyKind.NONE)


class HookEvent(StrEnum):
    """The event for which an agent calls its hook.

    C{ASKS}: the agent asks its user for permission. C{CHECKS}: a call begins; only rules apply to it. C{SETTLED}: a
    call ended, so its dialog was answered. C{IDLE}: a conversation has no open dialogs. C{QUESTION}: a tool server asks
    its user something.
    """

    ASKS = "asks"
    CHECKS = "checks"
    SETTLED = "settled"
    IDLE = "idle"
    QUESTION = "question"


class CallKind(StrEnum):
    """The kind of a call's main text: a command, the path of a file, an address or anything else."""

    COMMAND = "command"
    FILE = "file"
    ADDRESS = "address"
    OTHER = "other"


@frozen
class CallText:
    """A call of an agent's tool as text.

    :ivar subject: the command, path or address that patterns are compared with; empty if the call has none.
    :ivar text: what is shown: the command, the difference of a file, or the input as JSON.
    :ivar rest: the other members of the input as JSON; empty for none.
    :ivar is_plain: False if another member may change what the call does. No pattern allows such a call.
    """

    kind: CallKind
    subject: str
    text: str
    rest: str = ""
    is_plain: bool = True


@frozen
class HookCall:
    """A call of an agent's hook.

    :ivar tool: the tool's name, or for C{QUESTION} the server's.
    :ivar given: the tool's input.
    :ivar directory: where the agent works, as it says.
    :ivar conversation: tells conversations of one session apart, such as those of subagents.
    :ivar shows_dialog: whether the agent shows its own dialog if the reply is C{ASK}.
    """

    event: HookEvent
    tool: str = ""
    given: Mapping[str, JSON] = field(factory=dict)
    directory: str = ""
    conversation: str = ""
    shows_dialog: bool = False


@frozen
class PromptRule:
    """A rule that answers calls of an agent's tool.

    :ivar answer: C{ALLOW}, C{ASK} or C{DENY}.
    :ivar tool: the tool's name, or C{*}.
    :ivar pattern: the pattern of the call's subject, or None for every call.
    :ivar project: the directory of the sessions that it holds for; empty for all.
    :ivar reason: the reason of a denial.
    """

    answer: ReplyKind
    tool: str
    pattern: str | None = None
    project: str = ""
    reason: str = ""

    @property
    def words(self) -> str:
        """The rule in the form in which config.yaml has it, such as C{Bash(npm test)}."""
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


@frozen
class PromptSettings:
    """The settings of the feature.

    :ivar inbox: whether asks are listed in the inbox. Without it every hook is told that there is no decision.
    :ivar wait_seconds: how long an ask waits.
    """

    inbox: bool = True
    wait_seconds: int = MOST_WAIT_SECONDS
    rules: tuple[PromptRule, ...] = ()

    @property
    def has_checks(self) -> bool:
        """True if a rule applies to calls for which the agent does not ask."""
        return any(each.answer is not ReplyKind.ALLOW for each in self.rules)


@frozen(kw_only=True)
class AgentAsk:
    """A permission prompt of an agent.

    :ivar agent: the agent whose hook was called.
    :ivar text: what the agent wants to do, in full while the ask waits.
    :ivar rest: further members of the tool's input as JSON; empty for none.
    :ivar directory: where the agent works: a claim.
    :ivar is_plain: False if further members of the input may change what the call does, so that no rule allows it.
    :ivar ends_at: when the ask expires.
    :ivar patterns: patterns that the operator may allow for the session.
    :ivar by: who answered; empty while it waits.
    :ivar pattern: the pattern or rule by which it was allowed or denied; empty for none.
    :ivar reason: the operator's reason; empty for none.
    """

    id: str
    session_id: str
    agent: str
    tool: str
    kind: CallKind
    text: str
    rest: str
    directory: str
    asked_at: datetime
    ends_at: datetime
    is_plain: bool = True
    patterns: Sequence[str] = ()
    state: AskState = AskState.WAITING
    by: str = ""
    pattern: str = ""
    reason: str = ""
