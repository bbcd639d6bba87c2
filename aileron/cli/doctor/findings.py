"""The findings of a look at an installation: how bad each is, a sentence, and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from attrs import frozen

from aileron.cli.errors import apart
from aileron.cli.output import say


class Severity(StrEnum):
    """The severity of a finding: only what is C{WRONG} makes the command fail."""

    WRONG = "wrong"
    WAITS = "waits for you"
    NOTE = "note"
    FINE = "ok"

    @property
    def label(self) -> str:
        """The severity as it is printed for people."""
        return _LABELS.get(self, self.value)


_LABELS = {Severity.WRONG: "problem", Severity.WAITS: "action needed"}
_PLURALS = {Severity.WRONG: "problems", Severity.WAITS: "actions needed", Severity.NOTE: "notes"}


@frozen
class DoctorFinding:
    """One finding.

    :ivar says: a sentence.
    :ivar do: what to do about it; L{None}: nothing needs to be done.
    """

    severity: Severity
    says: str
    do: str | None = None


def wrong(says: str, do: str | None = None) -> DoctorFinding:
    """Report that something is not as it must be."""
    return DoctorFinding(Severity.WRONG, says, do)


def waits(says: str, do: str | None = None) -> DoctorFinding:
    """Report that something does not go on before the operator does something."""
    return DoctorFinding(Severity.WAITS, says, do)


def remark(says: str, do: str | None = None) -> DoctorFinding:
    """Report something that is good to know."""
    return DoctorFinding(Severity.NOTE, says, do)


def tell(findings: Iterable[DoctorFinding]) -> None:
    """Print findings, the worst first, and the verdict in one line."""
    found = sorted(findings, key=lambda each: list(Severity).index(each.severity))
    for each in found:
        say("{severity}: {says}", severity=each.severity.label, says=each.says)
        if each.do is not None:
            for part in apart(each.do):
                say("    {part}", part=part)
    say(_summarize(found))


def _summarize(findings: Sequence[DoctorFinding]) -> str:
    """Return the verdict: how many findings there are of each severity."""
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
