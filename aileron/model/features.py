"""The values by which a feature describes its commands, notifications, upgrade advice and paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.base.json import JSON

if TYPE_CHECKING:
    from .runs import RunState


@frozen
class Command:
    """A command that is imported on its first use.

    :ivar place: C{module:name} of the click command.
    :ivar part: the part of the help that lists the command, or empty for a command within a group.
    :ivar rank: the position in that part: lower ranks come first.
    :ivar front: True if C{aileron --help} lists the command, not only C{aileron --help --all}.
    :ivar old: the names of earlier versions, such as C{sync}, or C{action install} for a command within a group. They
        work, but help does not list them.
    :ivar now: the replacement of a command that only earlier versions listed. The old command works, but help does not
        list it.
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

    :ivar members: the members added to the JSON output.
    :ivar lines: the lines added to the text output, by label.
    :ivar steps: commands to run before the daemon is stopped for an upgrade.
    """

    members: Mapping[str, JSON]
    lines: Mapping[str, str]
    steps: Sequence[str] = ()


@frozen
class NoticeRule:
    """The rule by which the operator is notified of an audit event.

    :ivar kind: the name of the notice in webhook requests. Each rule has a different one.
    :ivar one: the title of a message about one such event. It may hold C{action} (the name of the action), C{what} (the
        action or a session) and C{whole} (everything or a session) in braces.
    :ivar many: the title of a message about several events, with C{n} in braces.
    :ivar rank: the position in a message: notices of lower ranks come first.
    :ivar reason: the member of the event's payload that contains the reason, or None.
    :ivar only_if: the member of the event's payload that must be true, or None.
    :ivar while_state: the state of the run in which the notice is still valid, or None if the notice is always valid.
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


@frozen
class WatchOffer:
    """A request to the operator site that C{aileron watch} offers beside the pending approvals.

    :ivar id: the name of the offer. An offer that is made again has the same.
    :ivar text: a sentence for the list that says what happened.
    :ivar label: the function of the key in two or three words, such as C{raise limit}.
    :ivar question: the question that the person confirms. It says all that the request changes.
    :ivar path: the parts of the path to which C{body} is sent with POST.
    :ivar done: a sentence to show after the request succeeded.
    """

    id: str
    text: str
    label: str
    question: str
    path: tuple[str, ...]
    body: Mapping[str, JSON]
    done: str


_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


@frozen
class RelayedPath:
    """A path of the agent site that a feature such as the gateway serves, as published in the API document.

    :ivar path: the path, with variables as C{<path:rest>}.
    :ivar providers: the names of the providers that requests are sent to. If there are two, the second gets requests of
        Anthropic's clients.
    """

    method: str
    path: str
    providers: tuple[str, ...]

    @classmethod
    def each(cls, path: str, methods: Iterable[str] | None, providers: tuple[str, ...]) -> list[RelayedPath]:
        """Return a value for each method of the path, to be published in the API document.

        If C{methods} is None or empty, use the methods that clients send.
        """
        return [cls(method, path, providers) for method in sorted(methods or _METHODS)]
