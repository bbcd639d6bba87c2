"""What stands on a terminal's screen, by what the terminal was sent."""

import re

_PIECE = re.compile(
    r"\x1b\[(?P<numbers>[0-9;]*)(?P<order>[@-~])"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-Z\\^-~]"
    r"|(?P<character>[^\x1b])",
    re.DOTALL,
)


class Screen:
    """A screen of the size that programs take who are told none.

    Programs that draw leave out what stands there already, be it a blank or a letter: words are to be looked for here,
    not in what was sent. Each character is taken to be one column wide; colours and modes are passed over.
    """

    def __init__(self, rows: int = 24, columns: int = 80) -> None:
        self._rows, self._columns = rows, columns
        self._row = self._column = 0
        self._read = 0
        self._lines = [self._blank() for _ in range(rows)]

    def after(self, sent: str) -> str:
        """Its lines, without the blanks at their ends.

        :param sent: everything that was ever sent; what breaks off within an order or a letter waits for its rest.
        """
        for piece in _PIECE.finditer(sent.rstrip("\ufffd"), self._read):
            if piece.start() != self._read:
                break
            self._take(piece)
            self._read = piece.end()
        return "\n".join("".join(line).rstrip() for line in self._lines)

    def _take(self, piece: re.Match[str]) -> None:
        if (character := piece["character"]) is not None:
            self._write(character)
        elif (order := piece["order"]) in ("J", "K"):
            self._erase(order, int(piece["numbers"] or 0))
        elif order is not None:
            self._move(order, [int(number or 1) for number in piece["numbers"].split(";")])

    def _write(self, character: str) -> None:
        match character:
            case "\r":
                self._column = 0
            case "\n":
                self._next_line()
            case "\b":
                self._column = max(0, self._column - 1)
            case _ if character >= " ":
                self._put(character)

    def _put(self, character: str) -> None:
        if self._column == self._columns:
            self._column = 0
            self._next_line()
        self._lines[self._row][self._column] = character
        self._column += 1

    def _next_line(self) -> None:
        if self._row == self._rows - 1:
            self._lines = [*self._lines[1:], self._blank()]
        else:
            self._row += 1

    def _move(self, order: str, numbers: list[int]) -> None:
        """Put the cursor where an order says; one that only colours leaves it."""
        number = numbers[0]
        places = {
            "A": (self._row - number, self._column),
            "B": (self._row + number, self._column),
            "C": (self._row, self._column + number),
            "D": (self._row, self._column - number),
            "G": (self._row, number - 1),
            "H": (number - 1, numbers[1] - 1 if len(numbers) > 1 else 0),
        }
        if order in places:
            row, column = places[order]
            self._row = min(max(row, 0), self._rows - 1)
            self._column = min(max(column, 0), self._columns - 1)

    def _erase(self, order: str, what: int) -> None:
        """Blank the cursor's line, or the screen: from the cursor (0), up to it (1), or all of it (2)."""
        line = self._lines[self._row]
        first = 0 if what else self._column
        last = self._column if what == 1 else self._columns
        line[first:last] = [" "] * (last - first)
        if order == "J":
            above, below = range(self._row), range(self._row + 1, self._rows)
            for row in [*(above if what else ()), *(below if what != 1 else ())]:
                self._lines[row] = self._blank()

    def _blank(self) -> list[str]:
        return [" "] * self._columns
