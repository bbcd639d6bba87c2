"""Builds the outputs of git reads: logs, patches, and the comparison of an update with the remote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice

from aileron.base.json import JSON
from aileron.connectors._patch import Patch
from aileron.model.errors import InvalidRequest

from ._history import find_update, is_ancestor, walk
from ._objects import Commit, show_tag
from ._patch import write_commit, write_patch
from ._remote import Remote
from ._repository import GitObjects, LocalRepository
from ._spec import NOTHING

_MOST_LISTED, _MOST_MESSAGES = 500, 200
_MOST_MESSAGES_CHARACTERS = 256 * 1024
_USUAL = 20


def read_local(repository: LocalRepository, operation: str, inputs: Mapping[str, JSON]) -> JSON:
    """Execute the operation C{diff}, C{show}, C{merges} or the log, which read only the local repository.

    :raises InvalidRequest: if an input is malformed or names a revision that does not exist, or an object is malformed.
    :raises ResourceLimitExceeded: if the deadline has passed, or too many commits would have to be read.
    """
    if operation == "diff":
        old, new = (repository.peel(repository.resolve(_text(inputs, key))) for key in ("from", "to"))
        return {"from": old.id, "to": new.id, **_described(write_patch(repository, old.tree, new.tree))}
    start = repository.peel(repository.resolve(_text(inputs, "revision", "HEAD")))
    if operation == "show":
        patch = Patch()
        write_commit(repository, start, patch)
        return {**_listed(repository, start), **_described(patch)}
    count = inputs.get("count", _USUAL)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST_LISTED:
        raise InvalidRequest(f"The input 'count' must be a whole number from 1 to {_MOST_LISTED}.")
    commits = walk(repository, [start.id])
    if operation == "merges":
        commits = (each for each in commits if len(each.parents) > 1)
    return {"commits": [_listed(repository, each) for each in islice(commits, count)]}


def compare(repository: GitObjects, remote: Remote, ref: str, new: str) -> dict[str, JSON]:
    """Return the changes that an update of C{ref} to an object would make: commits, lines per file, and patch.

    If the update has several commits, the patch of each commit follows the total patch, because content that one
    commit adds and the next removes is sent, too.

    :param new: the id of the object.
    :raises InvalidRequest: if an object is missing or malformed.
    :raises ResourceLimitExceeded: if the deadline has passed, or too many commits would have to be read.
    """
    old = remote.refs.get(ref)
    known = old if old is not None and repository.has(old) else None
    before = None if known is None else repository.peel(known)
    update = find_update(repository, new, None if before is None else before.id, remote.has)
    base = None if update.base is None else repository.commit(update.base)
    patch = write_patch(repository, None if base is None else base.tree, repository.peel(new).tree)
    diffstat = patch.summary()
    for commit in reversed(update.commits if len(update.commits) > 1 else ()):
        patch.add(f"\ncommit {commit.id}\n")
        write_commit(repository, commit, patch)
    tags = "".join(f"{show_tag(repository.read(each)[1])}\n" for each in update.tags)
    forward = old is None or (before is not None and is_ancestor(repository, before.id, repository.peel(new).id))
    return {
        "ref": ref,
        "commit": new,
        "expected": old or NOTHING,
        "exists": old is not None,
        "fast_forward": forward,
        "warning": None if forward else _warn(repository, before, new),
        "compared_with": None if base is None else base.id,
        "commits": tags + (_messages(repository, update.commits) or "No new commits."),
        **_described(patch),
        "diffstat": diffstat,
    }


def _warn(repository: GitObjects, before: Commit | None, new: str) -> str:
    if before is None:
        return "The remote is at a commit that the local repository does not have. Run `git fetch` to see what it is."
    lost = _messages(repository, walk(repository, [before.id], [repository.peel(new).id]))
    return f"These commits would no longer be on the branch:\n\n{lost}"


def _described(patch: Patch) -> dict[str, JSON]:
    shown = patch.text
    whole = len(shown.encode("utf-8", "replace")) == patch.size
    return {
        "diffstat": patch.summary(),
        "patch": shown if whole else f"{shown}\n[cut here; the whole patch has {patch.size} bytes]\n",
        "patch_bytes": patch.size,
        "patch_digest": patch.digest,
    }


def _listed(repository: GitObjects, commit: Commit) -> dict[str, JSON]:
    return {
        "commit": commit.id,
        "parents": list(commit.parents),
        "author": commit.author,
        "committed_at": _moment(commit),
        "message": repository.message(commit.id),
    }


def _messages(repository: GitObjects, commits: Iterable[Commit]) -> str:
    texts: list[str] = []
    size = 0
    for each in commits:
        if len(texts) == _MOST_MESSAGES or size > _MOST_MESSAGES_CHARACTERS:
            texts.append(f"[and more than {len(texts)}]")
            break
        texts.append(f"{each.id} {_moment(each)} {each.author}\n{repository.message(each.id).strip()}")
        size += len(texts[-1])
    return "\n\n".join(texts)


def _moment(commit: Commit) -> str:
    return datetime.fromtimestamp(commit.when, UTC).isoformat().replace("+00:00", "Z")


def _text(inputs: Mapping[str, JSON], name: str, usual: str | None = None) -> str:
    value = inputs.get(name, usual)
    if not isinstance(value, str) or not value:
        raise InvalidRequest(f"The input {name!r} must be a text.")
    return value
