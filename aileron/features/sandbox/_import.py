"""Imports into the real repository the commits and the index of an agent's copy, but nothing that configures git.

A ref moves only if it has not changed since the copy was made. Parts that cannot be imported stay in the copy,
which is then preserved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import define, field

from ._copy import MERGE_FILES, OPERATIONS, RepositoryCopy, head_of, refs_of
from ._git import GITLINK, Entries, Git, GitError, copy_objects, entries_of, import_index, linked_paths
from ._sanitize import merge_file, sanitize

_IMPORTED = ("refs/heads/", "refs/tags/", "refs/notes/")
_STASH = "refs/stash"
_OBJECT_NAME = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?").fullmatch
_NAMING = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "AUTO_MERGE")


@define
class Import:
    """The import of an agent's work from the copy of a repository into the original.

    :ivar lines: the messages for the user.
    :ivar complete: True if no work of the agent exists only in the copy.
    """

    copy: RepositoryCopy
    lines: list[str] = field(factory=list)
    complete: bool = True

    def run(self) -> None:
        """Import everything that can be imported. Idempotent.

        Failures become lines of the report and are not raised.
        """
        try:
            discarded, operation = sanitize(self.copy)
            for name in discarded:
                self.lines.append(f"Not imported: .git/{name}, which was changed in the sandbox.")
            self._import(operation)
        except Exception as error:  # noqa: BLE001 - an agent may leave any data; its work is preserved
            self._keep(f"the agent's work in git: {error or type(error).__name__}")

    @property
    def _source(self) -> Git:
        return self.copy.git.at(self.copy.git_dir, self.copy.snapshot.repository.root)

    @property
    def _target(self) -> Git:
        repository = self.copy.snapshot.repository
        return self.copy.git.at(repository.git_dir, repository.root)

    def _import(self, operation: str) -> None:
        refs, head = refs_of(self._source), head_of(self._source)
        moved = dict(self._find_moved_refs(refs))
        stashes = list(self._new_stashes(refs))
        wanted = {*moved.values(), *stashes, *self._merging()}
        if not head.startswith("refs/") and head:
            wanted.add(head)
        self._import_objects(wanted)
        busy = self._index_is_busy()
        blocked = {
            ref for ref, name in moved.items() if not self._import_ref(ref, name, busy if self._is_current(ref) else "")
        }
        for name in stashes:
            self._import_stash(name)
        if operation:
            self._report_unfinished(operation, head)
        elif busy:
            if head != self.copy.snapshot.head or self._read_staged() != self._read_staged_before():
                self._keep(f"HEAD and the index, because {busy}")
        elif head not in blocked and self._import_head(head, refs):
            self._import_index()
            self._import_merge()
            self._report_finished()

    def _find_moved_refs(self, refs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the new or moved refs, and report all other changes of refs."""
        before = self.copy.snapshot.refs
        for ref in sorted({*refs, *before}):
            if refs.get(ref) == before.get(ref) or ref == _STASH:
                continue
            if ref not in refs:
                self.lines.append(f"Not imported: {_short(ref)} was deleted in the sandbox.")
            elif ref.startswith(_IMPORTED):
                yield ref, refs[ref]
            else:
                self.lines.append(f"Not imported: {ref}, which was changed in the sandbox.")

    def _import_objects(self, wanted: set[str]) -> None:
        """Copy the wanted objects and all they refer to, unless the real repository has them. git checks each one.

        :raises GitError: if an object is missing or malformed.
        """
        if not wanted:
            return
        lines = [*sorted(wanted), "--not", *sorted(set(self.copy.snapshot.refs.values()))]
        if not self.copy.snapshot.head.startswith("refs/") and self.copy.snapshot.head:
            lines.append(self.copy.snapshot.head)
        copy_objects(self._source, self._target, "--revs", given="".join(f"{line}\n" for line in lines).encode())

    def _import_ref(self, ref: str, name: str, busy: str) -> bool:
        """Move a ref as in the sandbox, and return True.

        If the ref cannot move, store its new value under another name and return False.

        :param busy: the reason why the ref must not move, or empty.
        :raises GitError: if the real repository cannot be read.
        """
        old = self.copy.snapshot.refs.get(ref, "")
        if linked := self._new_gitlinks(name):
            self._set_aside(ref, name, f"it adds the repository {linked[0]} as a submodule")
        elif self._is_checked_out_elsewhere(ref):
            self._set_aside(ref, name, "it is checked out in another worktree")
        elif busy:
            self._set_aside(ref, name, busy)
        elif self._update_ref(ref, name, old):
            self.lines.append(f"{_short(ref)}: {self._describe_ref(old, name)}")
            return True
        else:
            self._set_aside(ref, name, "it was changed outside of the sandbox too")
        return False

    def _update_ref(self, ref: str, name: str, old: str) -> bool:
        """Move a ref if it is unchanged, and return whether it moved."""
        try:
            self._target.run(
                "update-ref", "--create-reflog", "-m", "aileron: sandbox", ref, name, old or "0" * len(name)
            )
        except GitError:
            return self._target.text("rev-parse", "--verify", "-q", ref) == name
        return True

    def _set_aside(self, ref: str, name: str, why: str) -> None:
        place = f"refs/aileron/{self.copy.directory.name}/{ref.removeprefix('refs/')}"
        self._target.run("update-ref", place, name)
        self.lines.append(f"Not imported: {_short(ref)}, because {why}. Its commits are at {place}.")

    def _describe_ref(self, old: str, name: str) -> str:
        if not old:
            return f"new, at {name[:10]}"
        count = self._target.text("rev-list", "--count", f"{old}..{name}")
        return f"{count or 'no'} new commit{'' if count == '1' else 's'}, now at {name[:10]}"

    def _new_gitlinks(self, name: str) -> list[str]:
        """Return the paths of a commit that became nested repositories.

        :raises GitError: if the commit or an index cannot be read.
        """
        if self._target.text("cat-file", "-t", f"{name}^{{}}") != "commit":
            return []
        known = linked_paths(self._read_staged_before())
        listed = (
            record.partition(b"\t") for record in self._target.records("ls-tree", "-r", "-z", "--full-tree", name)
        )
        # guard against attack: a new submodule in a commit is not imported -> test_sandbox_git.GitTests.test_embedded,
        #    instead return []
        return [os.fsdecode(path) for mode, _, path in listed if mode.startswith(GITLINK) and path not in known]

    def _is_checked_out_elsewhere(self, ref: str) -> bool:
        """Return whether another work tree of the repository has the branch checked out.

        git lists the main work tree first. It lists the work tree of a submodule by the path of the repository.

        :raises GitError: if the work trees cannot be listed.
        """
        repository = self.copy.snapshot.repository
        here = f"worktree {repository.root}"
        main, *linked = os.fsdecode(self._target.run("worktree", "list", "--porcelain")).split("\n\n")
        others = [block.split("\n") for block in ((main, *linked) if repository.is_linked else linked)]
        return any(f"branch {ref}" in lines for lines in others if here not in lines)

    def _new_stashes(self, refs: Mapping[str, str]) -> Iterator[str]:
        """Yield the entries that were added to the stash in the sandbox, oldest first."""
        if _STASH not in refs:
            return
        known = set(self._target.text("reflog", "show", "--format=%H", _STASH).split())
        made = self._source.text("reflog", "show", "--format=%H", _STASH).split() or [refs[_STASH]]
        yield from (name for name in reversed(made) if name not in known)

    def _import_stash(self, name: str) -> None:
        if linked := self._new_gitlinks(name):
            self._set_aside(_STASH, name, f"it adds the repository {linked[0]} as a submodule")
            return
        message = self._target.text("log", "-1", "--format=%s", name)
        self._target.run("stash", "store", "-m", message or "sandbox", name)
        self.lines.append(f"stash: {message or name[:10]}")

    def _report_unfinished(self, operation: str, head: str) -> None:
        """Report an unfinished operation such as a rebase, which is not imported, since its steps may run commands.

        The copy is kept. An operation that the sandbox has not continued is not reported, since the real repository has
        it too.
        """
        real = Path(self.copy.snapshot.repository.git_dir)
        untouched = head == self.copy.snapshot.head and self._read_staged() == self._read_staged_before()
        if not untouched or not (real / operation).exists():
            self._keep(f"an unfinished operation ({operation}), with HEAD and the index")

    def _report_finished(self) -> None:
        """Report an operation that was unfinished when the copy was made and is finished now."""
        real = Path(self.copy.snapshot.repository.git_dir)
        for name in filter(lambda each: (real / each).exists(), OPERATIONS):
            self.lines.append(f"The operation in progress here ({name}) was ended in the sandbox. Quit it with git.")

    def _import_head(self, head: str, refs: Mapping[str, str]) -> bool:
        """Point C{HEAD} to the ref or commit that it had in the sandbox, and return whether it points there now.

        :raises GitError: if C{HEAD} cannot be moved.
        """
        now, before = head_of(self._target), self.copy.snapshot.head
        if now == head:
            return True
        if now != before:
            if head != before or self._read_staged() != self._read_staged_before():
                self._keep("HEAD and the index, because HEAD was changed outside of the sandbox too")
            return False
        if head.startswith("refs/heads/") and (head in refs or before not in refs):
            self._target.run("symbolic-ref", "-m", "aileron: sandbox", "HEAD", head)
        elif head and not head.startswith("refs/") and not self._new_gitlinks(head):
            self._target.run("update-ref", "--no-deref", "-m", "aileron: sandbox", "HEAD", head)
        else:
            self._keep("HEAD, which is not a branch")
            return False
        self.lines.append(f"HEAD: now at {_short(head)}")
        return True

    def _index_is_busy(self) -> str:
        """Return the reason why the real index cannot be written, or an empty text.

        If the index cannot be written, the checked-out branch must not move either.

        :raises GitError: if an index cannot be read.
        """
        real = Path(self.copy.snapshot.repository.git_dir)
        if (real / "index.lock").exists():
            return "the index is locked"
        if not (self.copy.git_dir / "index").exists() and (self.copy.before / "index").exists():
            return "the index was deleted in the sandbox"
        if entries_of(self._target, real / "index") not in (self._read_staged_before(), self._read_staged()):
            return "the index was changed outside of the sandbox too"
        return ""

    def _is_current(self, ref: str) -> bool:
        return ref == head_of(self._target)

    def _import_index(self) -> None:
        """Import the index if the real one has not changed since the copy was made.

        :raises GitError: if an object is missing or malformed, or an index cannot be read or is locked.
        """
        before, after = self._read_staged_before(), self._read_staged()
        if after == before:
            return
        for path in import_index(before, after, self._source, self._target):
            self.lines.append(f"Not imported: {path} in the index, because it is a repository of its own.")
        if self._target.text("config", "--type=bool", "--get", "core.sparseCheckout") == "true":
            self._target.text("sparse-checkout", "reapply")

    def _read_staged(self) -> Entries:
        return entries_of(self._source, self.copy.git_dir / "index")

    def _read_staged_before(self) -> Entries:
        return entries_of(self._target, self.copy.before / "index")

    def _import_merge(self) -> None:
        """Import the files that describe an unfinished merge, cherry-pick or revert, or their removal when it ended.

        A file that was changed outside of the sandbox too is left as it is.
        """
        real = Path(self.copy.snapshot.repository.git_dir)
        for name in MERGE_FILES:
            old, new = merge_file(self.copy.before, name), merge_file(self.copy.git_dir, name)
            if new == old or merge_file(real, name) != old:
                continue
            if new is None:
                (real / name).unlink()
            elif name not in _NAMING or all(map(_OBJECT_NAME, new.split())):
                (real / name).write_bytes(new)

    def _merging(self) -> Iterator[str]:
        """Yield the commits named by an unfinished merge."""
        for name in _NAMING:
            words = (merge_file(self.copy.git_dir, name) or b"").split()
            yield from (word.decode() for word in words if _OBJECT_NAME(word))

    def _keep(self, what: str) -> None:
        self.complete = False
        self.lines.append(f"Not imported: {what}. It is kept in {self.copy.directory}.")


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/") if ref.startswith("refs/") else ref[:10]
