"""The comparison of a call with earlier calls of its action."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.base.json import JSON

from .runs import Run


@frozen
class Precedents:
    """A comparison of a call with the calls of the same action that were done before it.

    :ivar looked_at: how many of those were looked at, the newest first.
    :ivar whole: whether these are all that there are.
    :ivar novel: by argument, what of its short values none of them had; of an array, which elements,
        and all that stand too far behind to be compared.
    :ivar action_changed: whether the action's file is another than it was when it was done last.
    :ivar connectors_changed: which connectors are others than they were then.
    :ivar repeats: the newest calls of other sessions with the same arguments that are not settled, whose outcome is
        unknown, or that were done within a day.
    :ivar twins: the same of the call's own session, oldest first.
    """

    looked_at: int
    whole: bool
    novel: Mapping[str, tuple[JSON, ...]]
    action_changed: bool = False
    connectors_changed: tuple[str, ...] = ()
    repeats: tuple[Run, ...] = ()
    twins: tuple[Run, ...] = ()
