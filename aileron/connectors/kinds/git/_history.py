"""Walks the commits of a local repository, and packs the objects that a remote lacks."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from hashlib import sha1
from heapq import heapify, heappop, heappush

from attrs import frozen

from aileron.model.errors import InvalidRequest, ResourceLimitExceeded

from ._objects import COMMIT, DIRECTORY, SUBMODULE, TAG, Commit, parse_tag
from ._repository import MOST_TAGS, GitObjects

MOST_COMMITS = 20_000
MOST_PACK_BYTES = 64 * 1024 * 1024
_SLOP_SECONDS = 86_400
_MOST_OBJECTS = 500_000
_MOST_BEFORE = 4  # parents whose trees are compared, to leave out objects that the remote has already


def walk(repository: GitObjects, tips: Iterable[str], hidden: Collection[str] = ()) -> Iterator[Commit]:
    """Yield the commits reachable from C{tips} but not from C{hidden}, newest first.

    Commit times may be wrong: then a hidden commit may be yielded, but no other commit is left out.

    :raises ResourceLimitExceeded: if more than L{MOST_COMMITS} commits would have to be read, or the deadline has
        passed.
    :raises InvalidRequest: if a commit is missing or malformed.
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
            if parent not in queued:  # it may have been visited already as a visible commit
                heappush(heap, (-repository.commit(parent).when, parent))
                queued.add(parent)
            seen.add(parent)
        if not is_gone:
            yield commit
    raise ResourceLimitExceeded(f"More than {MOST_COMMITS} commits would have to be looked at.")


def is_ancestor(repository: GitObjects, old: str, new: str) -> bool:
    """Return True if C{old} is C{new} or an ancestor of C{new}.

    Stops at commits more than a day older than C{old}, so wrong commit times may give False.

    :raises ResourceLimitExceeded: if more than L{MOST_COMMITS} commits would have to be read, or the deadline has
        passed.
    :raises InvalidRequest: if a commit is missing or malformed.
    """
    oldest = repository.commit(old).when - _SLOP_SECONDS
    for commit in walk(repository, [new]):
        if commit.id == old:
            return True
        if commit.when < oldest:
            break
    return False


@frozen
class Update:
    """The commits and tags that an update of a ref adds.

    :ivar commits: the commits that the remote lacks, newest first.
    :ivar tags: the ids of the annotated tags through which the ref points to the newest commit, outermost first.
    :ivar base: the id of the commit that the difference is computed from, or None if all content is new.
    """

    commits: tuple[Commit, ...]
    tags: tuple[str, ...]
    base: str | None


def find_update(repository: GitObjects, new: str, old: str | None, remote: Iterable[str]) -> Update:
    """Find the commits and tags that an update to C{new} adds.

    :param old: the commit that the ref is at, or None if the ref or (in the local repository) its commit is missing.
    :param remote: ids of objects that the remote has.
    :raises InvalidRequest: if an object is missing, malformed or not a commit.
    :raises ResourceLimitExceeded: if too many commits would have to be read, or the deadline has passed.
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


def pack(repository: GitObjects, update: Update) -> bytes:
    """Return a pack of the objects that the remote lacks, each in full (no deltas).

    :raises InvalidRequest: if the pack would be too large, or an object is missing or malformed.
    :raises ResourceLimitExceeded: if the deadline has passed.
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


def _add_new(repository: GitObjects, tree: str, before: set[str], names: dict[str, None]) -> None:
    """Add the ids of a tree and its content to C{names}, without those at the same path of an older tree.

    :param before: the ids of the older trees.
    :raises InvalidRequest: if there are too many objects, or a tree is missing or malformed.
    :raises ResourceLimitExceeded: if the deadline has passed.
    """
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
