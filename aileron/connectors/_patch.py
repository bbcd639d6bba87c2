"""Writes the difference between contents of files as a patch, with its digest and the number of changed lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import Match, SequenceMatcher
from hashlib import sha256
from itertools import accumulate
from typing import Any

from attrs import define, field

MOST_SHOWN_CHARACTERS = 1024 * 1024
_MOST_COMPARED = 2_000_000  # pairs of equal lines compared per file; beyond this limit a section is shown as replaced
_MOST_COMPARED_BYTES, _MOST_COMPARED_LINES = 4 * 1024 * 1024, 300_000
_MOST_STAT_CHARACTERS = 256 * 1024
_Opcode = tuple[str, int, int, int, int]


@define
class Patch:
    """A patch that is being written, with the number of changed lines per file.

    :ivar size: the number of bytes of the full patch in UTF-8.
    """

    _parts: list[str] = field(factory=list, init=False)
    _shown: int = field(default=0, init=False)
    size: int = field(default=0, init=False)
    _counted: list[str] = field(factory=list, init=False)
    _counted_characters: int = field(default=0, init=False)
    _files: int = field(default=0, init=False)
    _added: int = field(default=0, init=False)
    _removed: int = field(default=0, init=False)
    _digest: Any = field(factory=sha256, init=False)

    @property
    def text(self) -> str:
        """The text of the patch, cut at L{MOST_SHOWN_CHARACTERS}."""
        return "".join(self._parts)

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the full patch in UTF-8."""
        return f"sha256:{self._digest.hexdigest()}"

    def add(self, text: str) -> None:
        """Append text to the patch.

        The text beyond L{MOST_SHOWN_CHARACTERS} only counts for the digest and the size.
        """
        data = text.encode("utf-8", "replace")
        self._digest.update(data)
        self.size += len(data)
        if self._shown < MOST_SHOWN_CHARACTERS:
            part = text[: MOST_SHOWN_CHARACTERS - self._shown]
            self._parts.append(part)
            self._shown += len(part)

    def count(self, path: str, added: int, removed: int) -> None:
        """Record the numbers of added and removed lines of a file."""
        self._files, self._added, self._removed = self._files + 1, self._added + added, self._removed + removed
        if self._counted_characters < _MOST_STAT_CHARACTERS:
            self._counted.append(f"{path} | +{added} -{removed}")
            self._counted_characters += len(self._counted[-1])

    def summary(self) -> str:
        """Return the numbers of changed lines per file (a long list is cut) and in total."""
        more = self._files - len(self._counted)
        total = f"{self._files} files changed, {self._added} lines added, {self._removed} lines removed"
        return "\n".join((*self._counted, *([f"[and {more} more files]"] if more else []), total))

    def add_file(self, path: str, head: str, old: bytes | None, new: bytes | None) -> None:
        """Append the difference between two contents of a file, and count its lines.

        :param path: the file's path, fit for display.
        :param head: further lines before the difference, each with a line feed at its end.
        :param old: the content before, or None if the file is new.
        :param new: the content after, or None if the file was deleted.
        """
        self.add(f"diff --git a/{path} b/{path}\n{head}")
        before_bytes, after_bytes = old or b"", new or b""
        if b"\0" in before_bytes or b"\0" in after_bytes:
            self.add(f"Binary files differ: {len(before_bytes)} bytes before, {len(after_bytes)} bytes after\n")
            self.count(path, 0, 0)
            return
        if any(map(_is_too_large, (before_bytes, after_bytes))):
            self.add(f"Too large to be compared: {len(before_bytes)} bytes before, {len(after_bytes)} bytes after\n")
            self.count(path, after_bytes.count(b"\n"), before_bytes.count(b"\n"))
            return
        self.add(f"--- {'/dev/null' if old is None else f'a/{path}'}\n")
        self.add(f"+++ {'/dev/null' if new is None else f'b/{path}'}\n")
        self._add_hunks(path, _lines(before_bytes), _lines(after_bytes))

    def _add_hunks(self, path: str, before: Sequence[str], after: Sequence[str]) -> None:
        added = removed = 0
        for hunk in _hunks(before, after):
            self.add(_range_line(hunk))
            for tag, i1, i2, j1, j2 in hunk:
                if tag == "equal":
                    self.add("".join(f" {line}" for line in before[i1:i2]))
                    continue
                self.add("".join((*(f"-{line}" for line in before[i1:i2]), *(f"+{line}" for line in after[j1:j2]))))
                added, removed = added + j2 - j1, removed + i2 - i1
        self.count(path, added, removed)


def _is_too_large(content: bytes) -> bool:
    return len(content) > _MOST_COMPARED_BYTES or content.count(b"\n") > _MOST_COMPARED_LINES


def _lines(content: bytes) -> list[str]:
    """Split content at line feeds only, as git does.

    Mark a last line without a line feed, and replace invalid UTF-8.
    """
    lines = content.decode("utf-8", "replace").split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([f"{last}\n\\ No newline at end of file\n"] if last else [])


class _TooMuch(Exception):
    """Raised if two texts are too different to be compared line by line."""


class _Matcher(SequenceMatcher[str]):
    """A line matcher with a limit on steps. The limit does not depend on time, so a patch is always the same.

    :ivar left: the number of steps left.
    """

    a: Sequence[str]
    b2j: Mapping[str, Sequence[int]]
    opcodes: list[_Opcode]
    left = _MOST_COMPARED

    def set_seq2(self, b: Sequence[str]) -> None:
        """Set the second text, and count the places at which each line of the first text occurs in the second."""
        super().set_seq2(b)
        places = (1 + len(self.b2j.get(line, ())) for line in self.a)
        self._steps = list(accumulate(places, initial=0))

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        """Return the longest match, as the base class does.

        :raises _TooMuch: if no steps are left.
        """
        self.left -= self._steps[-1 if ahi is None else ahi] - self._steps[alo]
        if self.left < 0:
            raise _TooMuch
        return super().find_longest_match(alo, ahi, blo, bhi)


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[list[_Opcode]]:
    """Yield the opcodes of each hunk, with three lines of context.

    If the comparison takes too many steps, everything between the first and last difference is one replacement.
    """
    most = min(len(before), len(after))
    first = next((at for at in range(most) if before[at] != after[at]), most)
    most -= first
    last = next((at for at in range(most) if before[-1 - at] != after[-1 - at]), most)
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    matcher = _Matcher(None, old, new)
    try:
        middle = [
            (tag, i1 + first, i2 + first, j1 + first, j2 + first) for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        ]
    except _TooMuch:
        middle = [("replace", first, first + len(old), first, first + len(new))]
    start = [("equal", 0, first, 0, first)] if first else []
    end = [("equal", len(before) - last, len(before), len(after) - last, len(after))] if last else []
    matcher.opcodes = [*start, *middle, *end]
    if middle:
        yield from matcher.get_grouped_opcodes(3)


def _range_line(hunk: Sequence[_Opcode]) -> str:
    _, i1, _, j1, _ = hunk[0]
    _, _, i2, _, j2 = hunk[-1]
    return f"@@ -{_range(i1, i2)} +{_range(j1, j2)} @@\n"


def _range(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"
