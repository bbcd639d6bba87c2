"""Walks the commits of a local repository, and packs what a remote lacks of them."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha1
from heapq import heapify, heappop, heappush

from attrs import frozen

from aileron.model.errors import InvalidRequest, ResourceLimitExceeded

from ._objects import COMMIT, DIRECTORY, SUBMODULE, TAG, Commit, parse_tag
from ._repository import MOST_TAGS, LocalRepository

MOST_COMMITS = 20_000
MOST_PACK_BYTES = 64 * 1024 * 1024
_SLOP_SECONDS = 86_400
_MOST_OBJECTS = 500_000
_MOST_BEFORE = 4  # parents that are looked at for what the remote has already


def walk(repository: LocalRepository, tips: Iterable[str], hidden: Collection[str] = ()) -> Iterator[Commit]:
    """Yield the commits that C{tips} lead to and C{hidden} do not, newest first.

    Where a commit lies about its time, one may be yielded that is hidden, never the other way about.
    """
    gone, seen = set(hidden), set(tips) | set(hidden)
    heap = [(-repository.commit(name).when, name) for name in seen]
    heapify(heap)
    queued, waiting = set(seen), len(seen - gone)
    for _ in range(MOST_COMMITS):
        if not waiting:
            return
        name = heappop(heap)[1]
        queued.discard(name)
        commit, is_gone = repository.commit(name), name in gone
        waiting -= not is_gone
        for parent in commit.parents:
            if parent in gone or (parent in seen and not is_gone):
                continue
            waiting += (not is_gone) - (is_gone and parent in queued)
            gone |= {parent} if is_gone else set()
            if parent not in queued:  # it may have been passed already, as one that is not hidden
                heappush(heap, (-repository.commit(parent).when, parent))
                queued.add(parent)
            seen.add(parent)
        if not is_gone:
            yield commit
    raise ResourceLimitExceeded(f"More than {MOST_COMMITS} commits would have to be looked at.")


def is_ancestor(repository: LocalRepository, old: str, new: str) -> bool:
    """Tell whether C{old} is C{new} or comes before it."""
    oldest = repository.commit(old).when - _SLOP_SECONDS
    for commit in walk(repository, [new]):
        if commit.id == old:
            return True
        if commit.when < oldest:
            break
    return False


@frozen
class Update:
    """The new commits of an update.

    :ivar commits: those that the remote lacks, newest first.
    :ivar tags: the tag objects before them.
    :ivar base: the commit from which the difference is shown; L{None}: all is new.
    """

    commits: tuple[Commit, ...]
    tags: tuple[str, ...]
    base: str | None


def find_update(repository: LocalRepository, new: str, old: str | None, remote: Iterable[str]) -> Update:
    """Find what an update to C{new} adds.

    :param old: where the ref is, if it is there and its commit is known here.
    :param remote: what the remote says that it has.
    """
    tags: list[str] = []
    kind, content = repository.read(new)
    while kind == TAG and len(tags) < MOST_TAGS:
        tags.append(new)
        new = parse_tag(new, content)
        kind, content = repository.read(new)
    repository.commit(new)
    known = [each for each in remote if repository.has(each) and repository.read(each)[0] == COMMIT]
    commits = tuple(walk(repository, [new], known))
    lacking, base = {commit.id for commit in commits}, old
    if base is None:
        at = repository.commit(new)
        while at.id in lacking and at.parents:
            at = repository.commit(at.parents[0])
        base = None if at.id in lacking else at.id
    return Update(commits, tuple(tags), base)


def pack(repository: LocalRepository, update: Update) -> bytes:
    """Write the objects that the remote lacks as a pack, each whole.

    :raises InvalidRequest: it is too large.
    """
    names = dict.fromkeys((*update.tags, *(commit.id for commit in update.commits)))
    for commit in update.commits:
        before = {repository.commit(parent).tree for parent in commit.parents[:_MOST_BEFORE]}
        _add_new(repository, commit.tree, before, names)
    parts, size = [b"PACK" + (2).to_bytes(4, "big") + len(names).to_bytes(4, "big")], 12
    for name in names:
        kind, content = repository.read(name)
        part = _entry_head(kind, len(content)) + zlib.compress(content)
        size += len(part)
        if size > MOST_PACK_BYTES:
            raise InvalidRequest(f"What would be pushed is larger than {MOST_PACK_BYTES} bytes.")
        parts.append(part)
    whole = b"".join(parts)
    return whole + sha1(whole, usedforsecurity=False).digest()


def _add_new(repository: LocalRepository, tree: str, before: set[str], names: dict[str, None]) -> None:
    """Add a tree and what is in it to C{names}, but for what was at the same place in a tree before."""
    todo = [(tree, before)]
    while todo:
        tree, before = todo.pop()
        if tree in names or tree in before:
            continue
        names[tree] = None
        older = [repository.tree(each) for each in before]
        for name, (mode, entry) in repository.tree(tree).items():
            then = [each[name] for each in older if name in each]
            if mode == DIRECTORY:
                todo.append((entry, {each for kind, each in then if kind == DIRECTORY}))
            elif mode != SUBMODULE and entry not in [each for _, each in then]:
                names[entry] = None
        if len(names) + len(todo) > _MOST_OBJECTS:
            raise InvalidRequest(f"More than {_MOST_OBJECTS} objects would be pushed.")


def _entry_head(kind: int, size: int) -> bytes:
    byte, size, head = kind << 4 | size & 15, size >> 4, bytearray()
    while size:
        head.append(byte | 128)
        byte, size = size & 127, size >> 7
    head.append(byte)
    return bytes(head)
