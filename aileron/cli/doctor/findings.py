"""The findings of C{aileron doctor}: the severity of each, a sentence, and the remedy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from attrs import frozen

from aileron.cli.errors import apart
from aileron.cli.output import say


class Severity(StrEnum):
    """The severity of a finding. Only C{WRONG} makes the command fail."""

    WRONG = "wrong"
    WAITS = "waits for you"
    NOTE = "note"
    FINE = "ok"

    @property
    def label(self) -> str:
        """The name of the severity as people see it."""
        return _LABELS.get(self, self.value)


_LABELS = {Severity.WRONG: "problem", Severity.WAITS: "action needed"}
_PLURALS = {Severity.WRONG: "problems", Severity.WAITS: "actions needed", Severity.NOTE: "notes"}


@frozen
class DoctorFinding:
    """One finding.

    :ivar says: a sentence.
    :ivar do: the remedy, or None if nothing needs to be done.
    """

    severity: Severity
    says: str
    do: str | None = None


def wrong(says: str, do: str | None = None) -> DoctorFinding:
    """Return a finding about an error."""
    return DoctorFinding(Severity.WRONG, says, do)


def waits(says: str, do: str | None = None) -> DoctorFinding:
    """Return a finding that says what waits for a decision of the operator.

    :param do: the command that the operator can run next, or None.
    """
    return DoctorFinding(Severity.WAITS, says, do)


def remark(says: str, do: str | None = None) -> DoctorFinding:
    """Return a finding for information."""
    return DoctorFinding(Severity.NOTE, says, do)


def tell(findings: Iterable[DoctorFinding]) -> None:
    """Print findings, the worst first, and a summary in one line."""
    found = sorted(findings, key=lambda each: list(Severity).index(each.severity))
    for each in found:
        say("{severity}: {says}", severity=each.severity.label, says=each.says)
        if each.do is not None:
            for part in apart(each.do):
                say("    {part}", part=part)
    say(_summarize(found))


def _summarize(findings: Sequence[DoctorFinding]) -> str:
    """Return the number of findings of each severity as text. If there are none, the text says that all is in order."""
    numbers = Counter(each.severity for each in findings)
    parts = [
        f"{numbers[each]} {each.label if numbers[each] == 1 else several}"
        for each, several in _PLURALS.items()
        if numbers[each]
    ]
    if not parts:
        return "Everything is in order."
    nothing_wrong = "" if numbers[Severity.WRONG] or numbers[Severity.WAITS] else "No problems found; "
    return f"{nothing_wrong}{', '.join(parts)}: see above."
