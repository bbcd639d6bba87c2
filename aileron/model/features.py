"""The values by which a feature describes what it adds to commands, pages and notifications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.base.json import JSON

if TYPE_CHECKING:
    from .runs import RunState


@frozen
class Command:
    """A command, imported when it is asked for.

    :ivar place: C{module:name} of the click command.
    :ivar part: the part of the help that lists it; empty for a command within a group.
    :ivar rank: the position in that part: lower ranks come first.
    :ivar front: True if C{aileron --help} lists it, not only C{aileron --help --all}.
    :ivar old: names that it had in earlier versions, such as C{sync}, or C{action install} for one within a group;
        they work, and no help lists them.
    :ivar now: for a command that only earlier versions listed: what to call instead of it. It works, and no help lists
        it.
    """

    place: str
    part: str = ""
    rank: int = 1000
    front: bool = False
    old: tuple[str, ...] = ()
    now: str = ""


@frozen
class UpgradeAdvice:
    """The members, lines and steps that a feature adds to C{aileron upgrade --check}.

    :ivar members: of its JSON.
    :ivar lines: of its text, by label.
    :ivar steps: commands to run before the daemon is stopped for an upgrade.
    """

    members: Mapping[str, JSON]
    lines: Mapping[str, str]
    steps: Sequence[str] = ()


@frozen
class NoticeRule:
    """The rule by which the operator is notified of an audit event.

    :ivar kind: the name of such notices in what webhooks are sent; every rule has its own.
    :ivar one: the title of a message about one such event. It may hold C{action} (the name of the action), C{what} (the
        action or a session) and C{whole} (everything or a session) in braces.
    :ivar many: the title of a message about several, with C{n} in braces.
    :ivar rank: the position in a message: notices of lower ranks come first.
    :ivar reason: the member of the event's payload that says why, or None.
    :ivar only_if: the member of the event's payload that must be true, or None.
    :ivar while_state: the state of the run as long as the notice holds, or None if the notice always holds.
    :ivar urgent: True if something is wrong: channels mark the message.
    :ivar immediate: True if the message waits for no more than the shortest pause between messages.
    """

    kind: str
    one: str
    many: str
    rank: int = 1000
    reason: str | None = None
    only_if: str | None = None
    while_state: RunState | None = None
    urgent: bool = False
    immediate: bool = False


_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


@frozen
class RelayedPath:
    """A path that the gateway takes of the agent site, as it is published.

    :ivar path: with its variables as C{<path:rest>}.
    :ivar providers: where it leads; of two the second gets what Anthropic's clients send.
    """

    method: str
    path: str
    providers: tuple[str, ...]

    @classmethod
    def each(cls, path: str, methods: Iterable[str] | None, providers: tuple[str, ...]) -> list[RelayedPath]:
        """Return a path with each of its methods; of one that takes every method, with those that clients use."""
        return [cls(method, path, providers) for method in sorted(methods or _METHODS)]
