"""The comparison of a call with earlier calls of its action."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.base.json import JSON

from .runs import Run


@frozen
class Precedents:
    """A comparison of a call with earlier completed calls of the same action.

    :ivar looked_at: the number of earlier calls compared, the newest first.
    :ivar whole: True if these are all earlier calls of the action.
    :ivar novel: for each argument, its short values that no earlier call had. For an array, the new elements, and all
        elements beyond the limit of the comparison.
    :ivar action_changed: True if the action's file has changed since its last completed call.
    :ivar connectors_changed: the connectors that have changed since then.
    :ivar repeats: the newest calls of other sessions with identical arguments that are not settled, whose outcome is
        unknown, or that completed within a day.
    :ivar twins: calls like C{repeats}, but of the call's own session, oldest first.
    """

    looked_at: int
    whole: bool
    novel: Mapping[str, tuple[JSON, ...]]
    action_changed: bool = False
    connectors_changed: tuple[str, ...] = ()
    repeats: tuple[Run, ...] = ()
    twins: tuple[Run, ...] = ()
