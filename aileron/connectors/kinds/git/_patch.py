"""Writes the difference between two trees as a patch, with its digest and the number of changed lines per file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import Match, SequenceMatcher
from hashlib import sha256
from itertools import accumulate
from typing import Any

from attrs import define, field, frozen

from aileron.model.errors import InvalidRequest, ResourceLimitExceeded

from ._objects import BLOB, DIRECTORY, SUBMODULE, Commit
from ._repository import GitObjects

MOST_SHOWN_CHARACTERS = 1024 * 1024
_MOST_COMPARED = 2_000_000  # pairs of equal lines compared per file; beyond this limit a section is shown as replaced
_MOST_DEPTH, _MOST_FILES = 100, 100_000
_MOST_PATH_BYTES, _MOST_PATHS_CHARACTERS = 4096, 16 * 1024 * 1024
_MOST_OPEN_ENTRIES = 300_000  # entries of the trees being compared and of their parent trees
_MOST_COMPARED_BYTES, _MOST_COMPARED_LINES = 4 * 1024 * 1024, 300_000
_MOST_STAT_CHARACTERS = 256 * 1024
_Entry = tuple[int, str]
_Opcode = tuple[str, int, int, int, int]


@frozen
class FileDifference:
    """A file that differs between two trees.

    :ivar old: the mode and id of the file before, or None if the file is new.
    :ivar new: the mode and id of the file after, or None if the file was deleted.
    """

    path: str
    old: _Entry | None
    new: _Entry | None


@define
class Patch:
    """A patch that is being written, with the number of changed lines per file.

    :ivar bytes: the size of the full patch in UTF-8.
    """

    _parts: list[str] = field(factory=list, init=False)
    _shown: int = field(default=0, init=False)
    bytes: int = field(default=0, init=False)
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
        self.bytes += len(data)
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


def write_patch(repository: GitObjects, old: str | None, new: str | None) -> Patch:
    """Return the patch between two trees. None is the empty tree. The patch is cut if it is long.

    :raises InvalidRequest: if an object is missing or malformed, or the trees are too large.
    :raises ResourceLimitExceeded: if the deadline has passed.
    """
    patch = Patch()
    _write_all(repository, changes(repository, old, new), patch)
    return patch


def write_commit(repository: GitObjects, commit: Commit, patch: Patch) -> None:
    """Append the changes of a commit to a patch.

    For a merge, append only the files that differ from every parent, compared with the first parent.

    :raises InvalidRequest: if an object is missing or malformed, or the trees are too large.
    :raises ResourceLimitExceeded: if the deadline has passed.
    """
    before: list[str | None] = [repository.commit(parent).tree for parent in commit.parents]
    first, *others = before or [None]
    found = _limited(changes(repository, first, commit.tree))
    for other in others:
        new = {(each.path, each.new) for each in _limited(changes(repository, other, commit.tree))}
        found = [each for each in found if (each.path, each.new) in new]
    _write_all(repository, found, patch)


def _limited(found: Iterable[FileDifference]) -> list[FileDifference]:
    differences, size = [], 0
    for each in found:
        differences.append(each)
        size += len(each.path)
        if len(differences) > _MOST_FILES or size > _MOST_PATHS_CHARACTERS:
            raise ResourceLimitExceeded(f"A commit changes more than {_MOST_FILES} files, or ones with too long names.")
    return differences


def _write_all(repository: GitObjects, found: Iterable[FileDifference], patch: Patch) -> None:
    for change in found:
        repository.deadline.check()
        _write(repository, change, patch)


def changes(
    repository: GitObjects, old: str | None, new: str | None, above: bytes = b"", entries: int = 0
) -> Iterator[FileDifference]:
    """Yield the files that differ between two trees, ordered by path.

    :param above: the path of both trees, with a slash at its end.
    :param entries: the number of entries of the parent trees, which are still open.
    :raises InvalidRequest: if a tree is missing, malformed, too large or too deep, or a path is too long.
    :raises ResourceLimitExceeded: if the deadline has passed.
    """
    if old == new:
        return
    before, after = ({} if each is None else repository.tree(each) for each in (old, new))
    entries += len(before) + len(after)
    if entries > _MOST_OPEN_ENTRIES or above.count(b"/") > _MOST_DEPTH:
        raise InvalidRequest("A tree of the local repository is too large, or nested too deep.")
    for name in sorted(before.keys() | after.keys()):
        path, then, now = above + name, before.get(name), after.get(name)
        if then == now:
            continue
        if len(path) > _MOST_PATH_BYTES:
            raise InvalidRequest(f"A path in the local repository is longer than {_MOST_PATH_BYTES} bytes.")
        trees = [each[1] if each and each[0] == DIRECTORY else None for each in (then, now)]
        if any(trees):
            yield from changes(repository, trees[0], trees[1], path + b"/", entries)
        then, now = (None if each and each[0] == DIRECTORY else each for each in (then, now))
        if then or now:
            yield FileDifference(_show_path(path), then, now)


def _show_path(path: bytes) -> str:
    """Return a path as text, quoted and escaped if it has quotes, backslashes or unprintable characters."""
    text = path.decode("utf-8", "backslashreplace")
    return text if text.isprintable() and '"' not in text and "\\" not in text else repr(text)


def _write(repository: GitObjects, change: FileDifference, patch: Patch) -> None:
    patch.add(f"diff --git a/{change.path} b/{change.path}\n" + "".join(_modes(change)))
    old, new = (_content(repository, each) for each in (change.old, change.new))
    if b"\0" in old or b"\0" in new:
        patch.add(f"Binary files differ: {len(old)} bytes before, {len(new)} bytes after\n")
        patch.count(change.path, 0, 0)
        return
    if any(len(each) > _MOST_COMPARED_BYTES or each.count(b"\n") > _MOST_COMPARED_LINES for each in (old, new)):
        patch.add(f"Too large to be compared: {len(old)} bytes before, {len(new)} bytes after\n")
        patch.count(change.path, new.count(b"\n"), old.count(b"\n"))
        return
    before, after = (_lines(each) for each in (old, new))
    patch.add(f"--- {'a/' + change.path if change.old else '/dev/null'}\n")
    patch.add(f"+++ {'b/' + change.path if change.new else '/dev/null'}\n")
    added = removed = 0
    for hunk in _hunks(before, after):
        patch.add(_range_line(hunk))
        for tag, i1, i2, j1, j2 in hunk:
            if tag == "equal":
                patch.add("".join(f" {line}" for line in before[i1:i2]))
                continue
            patch.add("".join((*(f"-{line}" for line in before[i1:i2]), *(f"+{line}" for line in after[j1:j2]))))
            added, removed = added + j2 - j1, removed + i2 - i1
    patch.count(change.path, added, removed)


def _modes(change: FileDifference) -> Iterator[str]:
    old, new = change.old, change.new
    if old is None and new is not None:
        yield f"new file mode {new[0]:06o}\n"
    elif new is None and old is not None:
        yield f"deleted file mode {old[0]:06o}\n"
    elif old is not None and new is not None and old[0] != new[0]:
        yield f"old mode {old[0]:06o}\nnew mode {new[0]:06o}\n"
    yield f"index {old[1] if old else '0' * 40}..{new[1] if new else '0' * 40}\n"


def _content(repository: GitObjects, entry: _Entry | None) -> bytes:
    if entry is None:
        return b""
    mode, name = entry
    return f"Subproject commit {name}\n".encode() if mode == SUBMODULE else repository.read(name, BLOB)[1]


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
