"""Parses commits, trees and tags, and rejects objects that git itself would not write.

Git accepts some malformed objects: for example, a tree with two entries of one name, of which git uses the last. If
Aileron parsed such an object differently, the user would approve a change other than the one that is sent.
"""

from __future__ import annotations

import re
from hashlib import sha1

from attrs import frozen

from aileron.model.errors import InvalidRequest

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4
TYPES = {b"commit": COMMIT, b"tree": TREE, b"blob": BLOB, b"tag": TAG}
NAMES = {number: name for name, number in TYPES.items()}
DIRECTORY, SUBMODULE = 0o040000, 0o160000
MOST_OBJECT_BYTES = 32 * 1024 * 1024
_MOST_OTHER_BYTES = 1024 * 1024
_MOST_PARENTS, _MOST_AUTHOR_BYTES, _MOST_MESSAGE_BYTES = 64, 200, 16 * 1024
_MODES = {b"100644", b"100664", b"100755", b"120000", b"40000", b"160000"}
_ID = re.compile(r"[0-9a-f]{40}")
_ONCE = (b"tree", b"parent", b"author", b"committer")
_DIGITS = re.compile(rb"[0-9]{1,11}")


class Damaged(Exception):
    """Raised if a file of the repository is not in git's format."""


@frozen
class Commit:
    """A commit.

    :ivar when: the committer's time in seconds since 1970, or 0 if the commit has no valid time.
    """

    id: str
    tree: str
    parents: tuple[str, ...]
    author: str
    when: int


def is_object_id(text: str) -> bool:
    """Return True if C{text} is a full object id: 40 hexadecimal digits."""
    return _ID.fullmatch(text) is not None


def name_object(kind: int, content: bytes) -> str:
    """Return the id of an object: the SHA-1 of its type, size and content."""
    digest = sha1(b"%s %d\0" % (NAMES.get(kind, b"?"), len(content)), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def check_size(kind: int, size: int) -> None:
    """Check the size of an object.

    :raises InvalidRequest: if the object is too large for its type.
    """
    most = MOST_OBJECT_BYTES if kind == BLOB else _MOST_OTHER_BYTES
    if size > most:
        what = NAMES.get(kind, b"object").decode()
        raise InvalidRequest(f"A {what} of the local repository is too large: it has more than {most} bytes.")


def parse_commit(name: str, content: bytes) -> Commit:
    """Parse a commit: a tree, its parents, an author and a committer in this order, then other headers.

    :raises InvalidRequest: if the commit is malformed or has too many parents.
    """
    head = content.partition(b"\n\n")[0]
    lines = [line.partition(b" ")[::2] for line in head.removesuffix(b"\n").split(b"\n")]
    count = next((at for at, (key, _) in enumerate(lines[1:]) if key != b"parent"), 0)
    ids = [value.decode("latin-1") for _, value in lines[: count + 1]]
    author, committer, *others = (*lines[count + 1 :], (b"", b""), (b"", b""))
    if count > _MOST_PARENTS:
        raise InvalidRequest(f"The commit {name} has more than {_MOST_PARENTS} parents.")
    right = (lines[0][0], author[0], committer[0]) == (b"tree", b"author", b"committer")
    if not right or b"\0" in head or not all(map(is_object_id, ids)) or any(key in _ONCE for key, _ in others):
        raise InvalidRequest(f"The commit {name} is malformed.")
    said = committer[1].rpartition(b"> ")[2].partition(b" ")[0]
    when = int(said) if _DIGITS.fullmatch(said) else 0
    by = (author[1].rpartition(b"> ")[0][:_MOST_AUTHOR_BYTES] + b">").decode("utf-8", "replace")
    return Commit(name, ids[0], tuple(ids[1:]), by, when)


def show_message(content: bytes) -> str:
    """Return the message of a commit, cut if it is long. Invalid UTF-8 is replaced."""
    return _beginning(content.partition(b"\n\n")[2])


def show_tag(content: bytes) -> str:
    """Return a tag object as text, with its message, cut if it is long."""
    return _beginning(content)


def _beginning(text: bytes) -> str:
    shown = text[:_MOST_MESSAGE_BYTES].decode("utf-8", "replace")
    return shown if len(text) <= _MOST_MESSAGE_BYTES else f"{shown}\n[cut here; the whole text has {len(text)} bytes]\n"


def parse_tree(name: str, content: bytes) -> dict[bytes, tuple[int, str]]:
    """Return the mode and id of each entry of a tree, by the entry's name.

    :raises InvalidRequest: if the tree is malformed, is not in git's order, or has a name twice.
    """
    entries: dict[bytes, tuple[int, str]] = {}
    at, before = 0, b""
    while at < len(content):
        blank, end = content.find(b" ", at, at + 8), content.find(b"\0", at)
        mode, entry = content[at : max(blank, at)], content[blank + 1 : end]
        place = entry + b"/" if mode == b"40000" else entry  # git sorts a directory as if a slash ended its name
        plain = entry.lower() not in (b"", b".", b"..", b".git") and b"/" not in entry
        whole = at < blank < end <= len(content) - 21
        if not whole or mode not in _MODES or not plain or entry in entries or place <= before:
            raise InvalidRequest(f"The tree {name} is malformed.")
        entries[entry] = (int(mode, 8), content[end + 1 : end + 21].hex())
        at, before = end + 21, place
    return entries


def parse_tag(name: str, content: bytes) -> str:
    """Return the id of the object that a tag points to.

    :raises InvalidRequest: if the tag is malformed.
    """
    line = content.partition(b"\n")[0].decode("latin-1")
    target = line.removeprefix("object ")
    if target == line or not is_object_id(target):
        raise InvalidRequest(f"The tag {name} is malformed.")
    return target
