"""The files that the operator trusts, those on disk now, and how the two differ."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

_MOST_STEPS = 4_000_000  # of comparing: half a second at worst, and anybody may write files that take an hour
_OFTEN_FROM = 200  # from so many lines on difflib passes over those that are more than one in a hundred


class TrustKind(StrEnum):
    """The kinds of things that can be trusted."""

    ACTION = "action"
    CONNECTOR = "connector"
    CONFIG = "config"


@frozen
class Trusted:
    """The operator's word about one file.

    :ivar name: of the action, of the connector (its FQN), or of a file such as C{config.yaml}.
    :ivar digest: C{sha256:…} of the bytes that were read.
    :ivar enabled: whether an action may be offered; of other kinds always true.
    :ivar changed_by: the operator session.
    """

    kind: TrustKind
    name: str
    digest: str
    changed_at: datetime
    changed_by: str
    enabled: bool = True


@frozen
class Candidate:
    """One sound file as it is on disk, trusted or not.

    :ivar text: all of it; C{digest} is of its bytes.
    :ivar needs: of an action, the connectors that it requires.
    :ivar lacks: why an action cannot run, each as the end of a sentence that begins with "it".
    :ivar unasked: whether it is an action that changes something and runs without an approval.
    """

    kind: TrustKind
    name: str
    digest: str
    path: str
    text: str = field(repr=False)
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    unasked: bool = False

    @property
    def key(self) -> tuple[TrustKind, str]:
        """The kind and name under which it is trusted."""
        return self.kind, self.name


class TrustState(StrEnum):
    """The state of the file on disk against what is trusted."""

    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


@frozen
class TrustItem:
    """One file, or the memory of one, as the operator is asked about it.

    :ivar candidate: the file on disk; L{None}: it no longer exists.
    :ivar trusted: what was trusted, if anything was.
    :ivar before: the text that was trusted, where it is another and is still known.
    """

    state: TrustState
    kind: TrustKind
    name: str
    candidate: Candidate | None = None
    trusted: Trusted | None = None
    before: str | None = field(default=None, repr=False)

    @property
    def difference(self) -> str:
        """The text that the operator must read before trusting it; empty where there is nothing to trust.

        A unified diff against what was trusted; the whole text of what is new, or differs from a text that is no
        longer known or too long to compare.
        """
        if self.candidate is None or self.state is TrustState.TRUSTED:
            return ""
        # Split at line feeds alone, so that no other separator vanishes from what is shown.
        now, before = self.candidate.text.split("\n"), None if self.before is None else self.before.split("\n")
        if before is None or comparing_steps(before, now) > _MOST_STEPS:
            return self.candidate.text
        return "\n".join(difflib.unified_diff(before, now, "trusted", "now", lineterm=""))


def comparing_steps(before: Sequence[str], now: Sequence[str]) -> int:
    """At most how many steps C{difflib} takes: each block looks at every line and at every pair that is alike."""
    often = len(now) // 100 + 1 if len(now) >= _OFTEN_FROM else len(now)
    there = {line: times for line, times in Counter(now).items() if times <= often}
    return (len(before) + sum(there.get(line, 0) for line in before)) * min(len(before), len(now))


class Mark(StrEnum):
    """The judgement of a mark under a row.

    C{EARLIER}: made under a key that is no longer this vault's, or says so; it decides nothing and alarms nobody.
    """

    SOUND = "sound"
    EARLIER = "earlier"
    FALSE = "false"
