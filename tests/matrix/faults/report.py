"""The table of faults: what was under way, and what came of it."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from attrs import Factory, define, field

from tests.matrix.crash.book import DOUBLED, LOST, UNASKED, WRONG, Book
from tests.matrix.crash.tally import STUCK

from .person import KEPT, UNCLEAR

BROKEN = (LOST, DOUBLED, WRONG, UNASKED, UNCLEAR, KEPT, STUCK)
UNDER = ("waits", "is decided", "approved", "executes", "in doubt", "expires", "is new", "after")
_WIDTH = 170


@define(eq=False)
class Row:
    """One fault, and one thing that was under way.

    :ivar refused: how many words were refused while the fault lasted.
    :ivar anew: how many were asked anew.
    :ivar came: in what states the runs were when it was over.
    """

    refused: int = 0
    anew: int = 0
    came: Counter[str] = field(factory=Counter)
    broken: Counter[str] = field(factory=Counter)


@define(eq=False)
class Sheet:
    """All rows.

    :ivar faults: every promise that was broken, in words; none is twice.
    """

    rows: defaultdict[tuple[str, str], Row] = Factory(lambda: defaultdict(Row))
    faults: list[str] = field(factory=list)
    _known: set[tuple[str, str]] = field(factory=set)

    def broke(self, fault: str, text: str, promise: str, how: str) -> None:
        """A promise was broken: told at once, and again at the end."""
        if (fault, how) in self._known:
            return
        self._known.add((fault, how))
        self.rows[fault, _under(text)].broken[promise] += 1
        self.faults.append(f"{fault}: {text.split(':', maxsplit=1)[0].split(' ', maxsplit=1)[0]} {promise}: {how}")
        print(self.faults[-1], file=sys.stderr, flush=True)

    def saw(self, fault: str, book: Book, refused: Iterable[tuple[str, str]]) -> None:
        """How the runs stand when a fault is over, and what had been refused."""
        for text, call in book.calls.items():
            if call.state:
                self.rows[fault, _under(text)].came[call.state] += 1
        for text, _ in refused:
            self.rows[fault, _under(text)].refused += 1

    def asked_anew(self, fault: str, text: str) -> None:
        """A run that had been approved is asked anew."""
        self.rows[fault, _under(text)].anew += 1

    def lines(self) -> Iterator[str]:
        """The table."""
        yield (
            f"{'fault':28}{'under way':12}{'refused':>8}{'anew':>6}"
            + "".join(f"{each:>15}" for each in BROKEN)
            + "  what came of it"
        )
        yield "-" * _WIDTH
        for (fault, under), row in self.rows.items():
            counts = "".join(f"{row.broken[each] or '-':>15}" for each in BROKEN)
            came = ", ".join(f"{times} {state}" for state, times in sorted(row.came.items()))
            yield f"{fault:28}{under:12}{row.refused:>8}{row.anew:>6}{counts}  {came}"
        yield "-" * _WIDTH
        yield f"{len({fault for fault, _ in self.rows})} faults, {len(self.faults)} promises broken"
        yield from self.faults


def _under(text: str) -> str:
    return next((under for under in UNDER if text.startswith(under)), "all")
