"""Channels by hand, and notices and messages that nothing is wrong with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from attrs import define, field
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.features import FeatureSet
from aileron.features.notices import rules
from aileron.features.notices._composer import MessageComposer
from aileron.features.notices._delivery import NoticeChannel
from aileron.features.notices.browser import BrowserNotices
from aileron.features.notices.values import Message, Notice
from aileron.model.features import NoticeRule

RULES: Mapping[str, NoticeRule] = {**rules.CORE_RULES, **FeatureSet().notices()}
"""How the operator is notified of events, by type, with all features that ship with Aileron."""

EVERY_RULE = (*RULES.values(), rules.FLOOD, rules.TEST)
AT = utc(1_700_000_000)
PAGE = "http://localhost:7001/approvals"


@define(eq=False)
class ScriptedChannel:
    """Keeps what it is told; fails or takes its time where a test says so.

    :ivar answers: for the next attempts: what it fails with, or for what it waits.
    """

    name: str = "scripted"
    answers: list[Exception | Deferred[None] | None] = field(factory=list)
    told: list[Message] = field(factory=list)
    attempts: int = 0

    def channel(self) -> NoticeChannel:
        """It, as the room knows it."""
        return NoticeChannel(self.name, "webhook", self.deliver)

    async def deliver(self, message: Message) -> None:
        """Keep it, or do what comes next."""
        self.attempts += 1
        answer = self.answers.pop(0) if self.answers else None
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            await answer
        self.told.append(message)


def notice(rule: NoticeRule = rules.APPROVAL, number: int = 1, **more: Any) -> Notice:
    """One thing to tell, of a run of that number."""
    return Notice(
        **{
            "rule": rule,
            "at": AT + timedelta(seconds=number),
            "action": "ship-update",
            "session": "session-1",
            "run_id": f"run-{number}",
            **more,
        }
    )


def message(number: int = 1, **more: Any) -> Message:
    """One message."""
    said = {
        "title": "Aileron: ship-update is waiting for your approval",
        "lines": ("One line.",),
        "url": f"{PAGE}/run-1",
    }
    return Message(**{"id": f"message-{number}", "at": AT, "notices": (notice(),), **said, **more})


def browser_at(url: str = "http://localhost:7001", *, store: Any = None, **parts: Any) -> BrowserNotices:
    """The notices of a browser over a store, or where only the address counts over nothing.

    :param parts: those of the composer.
    """
    composer = MessageComposer(
        **{
            "runs": store and store.runs,
            "sessions": store and store.sessions,
            "vault": None,
            "clock": None,
            "ids": lambda: "message-1",
            "operator_url": lambda: url,
            "find_review": None,
            **cast(Any, parts),
        }
    )
    return BrowserNotices(composer.runs, composer, cast(Any, store and store.snoozes.all))
