"""Shows what a push would change: the commits and the patch, read from its pack and from the remote's objects.

Nothing is written and no program runs. The pack and the remote are untrusted: both are read within limits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from aileron.base.json import JSON
from aileron.model.errors import InvalidRequest, ResourceLimitExceeded

from ._objects import BLOB, COMMIT, NAMES, TAG, Commit, Damaged, check_size, parse_commit, parse_tag
from ._pack_stream import Objects, PackReading
from ._push import GitPush, RefUpdate
from ._reads import compare
from ._remote import NotGit, Remote
from ._repository import Deadline, GitObjects
from ._spec import NOTHING
from ._upload import COMMITS, NO_FILES, RemoteObjects

_MOST_SHOWN = 20
_MOST_ENDS = 50
_LOST = "These commits would no longer be on the branch:"


@define
class ReceivedRepository(GitObjects):
    """The objects of a push, with objects of the remote.

    :ivar pack: the objects of the push.
    :ivar others: the objects of the remote, as far as they were fetched.
    :ivar lacking: the ids of the files' contents that were read and are missing, while they are collected, else None.
    """

    pack: PackReading
    others: dict[str, tuple[int, bytes]] = field(factory=dict)
    lacking: set[str] | None = None

    def has(self, name: str) -> bool:
        self.deadline.check()
        return self.pack.has(name) or name in self.others

    def read(self, name: str, kind: int | None = None) -> tuple[int, bytes]:
        self.deadline.check()
        if self.lacking is not None and kind == BLOB:
            self.lacking |= set() if self.has(name) else {name}
            return BLOB, b""
        found = self.pack.find(name) or self.others.get(name)
        if found is None:
            raise InvalidRequest(f"The object {name} is neither in the push nor could it be fetched.")
        check_size(found[0], len(found[1]))
        if kind is not None and found[0] != kind:
            raise InvalidRequest(f"The object {name} is no {NAMES[kind].decode()}.")
        return found

    def commit(self, name: str) -> Commit:
        """Return the commit with an id. A commit of the remote has only those parents that were fetched.

        :raises InvalidRequest: if the commit is missing or malformed, or the object is not a commit.
        :raises ResourceLimitExceeded: if the deadline has passed.
        """
        found = GitObjects.commit(self, name)
        if self.pack.has(name):
            return found
        return evolve(found, parents=tuple(each for each in found.parents if self.has(each)))


@frozen
class _Ancestry:
    """The commits that an update leads to.

    :ivar own: those that are in the pack.
    :ivar ends: the commits or tags of the remote that these build on.
    """

    own: frozenset[str]
    ends: frozenset[str]

    @classmethod
    def of(cls, found: Objects, new: str) -> _Ancestry:
        """Return what an update to C{new} leads to.

        :raises InvalidRequest: if a commit or tag is malformed.
        """
        own, ends, todo = set[str](), set[str](), [new]
        while todo:
            name = todo.pop()
            if name in own or name in ends:
                continue
            kind, content = found.get(name, (0, b""))
            if kind not in (COMMIT, TAG):
                ends.add(name)
                continue
            own.add(name)
            todo += parse_commit(name, content).parents if kind == COMMIT else [parse_tag(name, content)]
        return cls(frozenset(own), frozenset(ends))


@frozen
class PushShower:
    """Shows one push.

    :ivar remote: the objects of the remote.
    :ivar in_thread: calls a function with arguments in another thread.
    """

    push: GitPush
    remote: RemoteObjects
    deadline: Deadline
    in_thread: Callable[..., Awaitable[Any]]

    async def show(self, body: bytes) -> JSON:
        """Return what the push would change. If the commits cannot be shown, C{warning} has the reason.

        If commits would be lost or refs deleted, C{irreversible} names the refs.

        :param body: the body of the push.
        :raises AileronError: if the remote cannot be reached.
        """
        refs = "\n".join(each.explain() for each in self.push.updates)
        try:
            shown = await self._show_commits(body)
        except (NotGit, Damaged, InvalidRequest, ResourceLimitExceeded) as error:
            # guard of own tools: the review says what it cannot show
            #    -> connectors.kinds.git.test_git_host_server.PushTests.test_hidden
            why = "its pack is damaged, or too large" if isinstance(error, Damaged) else str(error).rstrip(".")
            hidden = f"The commits cannot be shown: {why}. You see the refs only."
            warning = _join([hidden, *self._warn_deleted()])
            return {"refs": refs, **self._mark(()), "warning": warning, "commits": None, "patch": None}
        return {"refs": refs, **shown}

    async def _show_commits(self, body: bytes) -> dict[str, JSON]:
        changing = [each for each in self.push.updates if each.new != NOTHING]
        if len(changing) > _MOST_SHOWN:
            raise NotGit(f"it updates more than {_MOST_SHOWN} refs")
        if not changing:
            return {**self._mark(()), "warning": _join(self._warn_deleted()), "commits": None, "patch": None}
        pack: PackReading = await self.in_thread(PackReading.of, body[self.push.pack_at :], self.deadline.check)
        here = ReceivedRepository(self.deadline, pack)
        reaches = {each: await self.in_thread(_Ancestry.of, pack.found, each.new) for each in changing}
        await self._fetch_ends(here, reaches)
        lost = [each async for each in self._find_lost(here, reaches)]
        work = (here, changing, reaches, lost)
        here.lacking = set()
        await self.in_thread(_show_all, *work)
        lacking, here.lacking = here.lacking, None
        here.others |= await self.remote.fetch(lacking)
        shown: dict[str, JSON] = await self.in_thread(_show_all, *work)
        warned = [str(shown["warning"])] if shown["warning"] else []
        return {**shown, **self._mark(lost), "warning": _join([*warned, *self._warn_deleted()])}

    async def _fetch_ends(self, here: ReceivedRepository, reaches: Mapping[RefUpdate, _Ancestry]) -> None:
        """Fetch the commits that the push builds on and those that it moves refs from, and complete the pack."""
        wanted = {each.old for each in reaches if each.old != NOTHING}.union(*(each.ends for each in reaches.values()))
        if len(wanted) > _MOST_ENDS:
            raise NotGit("it builds on too many commits")
        here.others |= await self.remote.fetch(wanted, left_out=NO_FILES, alone=True)
        await self.in_thread(here.pack.add, here.others)
        while here.pack.bases:
            found = await self.remote.fetch(here.pack.bases)
            here.others |= found
            await self.in_thread(here.pack.add, found)
        if not here.pack.is_whole:
            raise Damaged

    async def _find_lost(
        self, here: ReceivedRepository, reaches: Mapping[RefUpdate, _Ancestry]
    ) -> AsyncIterator[RefUpdate]:
        """Yield the updates by which commits are lost, and fetch these commits."""
        for update, reach in reaches.items():
            if update.old == NOTHING or update.old in reach.own | reach.ends:
                continue
            known = [each for each in sorted(reach.ends) if here.has(each)]
            lost = await self.remote.fetch([update.old], known, left_out=COMMITS)
            # guard of own tools: the review warns of a push that loses commits
            #    -> connectors.kinds.git.test_git_host_server.PushTests.test_forced
            if lost:
                here.others |= {name: each for name, each in lost.items() if name not in here.others}
                yield update

    def _mark(self, lost: Iterable[RefUpdate]) -> dict[str, JSON]:
        """Return the member C{irreversible}: one line that names refs with lost commits and deleted refs, or None."""
        told = {
            "Commits would be lost": [each.ref for each in lost],
            "Deleted": [each.ref for each in self.push.updates if each.new == NOTHING],
        }
        lines = [f"{what}: {', '.join(refs)}." for what, refs in told.items() if refs]
        return {"irreversible": " ".join(lines) or None}

    def _warn_deleted(self) -> list[str]:
        deleted = [each.ref for each in self.push.updates if each.new == NOTHING]
        if not deleted:
            return []
        return [f"Deleted: {', '.join(deleted)}. Commits that are on no other branch or tag would be lost."]


def _show_all(
    here: ReceivedRepository,
    changing: Iterable[RefUpdate],
    reaches: Mapping[RefUpdate, _Ancestry],
    lost: Iterable[RefUpdate],
) -> dict[str, JSON]:
    """Return the commits and the patch of each update."""
    each_shown = [(update, _show_update(here, update, reaches[update].ends, update in lost)) for update in changing]
    alone = len(each_shown) == 1
    joined: dict[str, JSON] = {}
    for name in ("warning", "commits", "diffstat", "patch", "patch_digest"):
        texts = [(update.ref, shown[name]) for update, shown in each_shown if shown[name]]
        joined[name] = _join(str(text) if alone else f"{ref}\n{text}" for ref, text in texts)
    return joined


def _show_update(here: ReceivedRepository, update: RefUpdate, ends: Iterable[str], is_lossy: bool) -> dict[str, JSON]:
    refs = {} if update.old == NOTHING else {update.ref: update.old}
    shown = compare(here, Remote(refs, frozenset(ends), frozenset()), update.ref, update.new)
    if not is_lossy:
        shown["warning"] = None
    elif not shown["warning"]:
        shown["warning"] = f"{_LOST}\n\n{update.old}"
    return shown


def _join(texts: Iterable[str]) -> str | None:
    return "\n\n".join(texts) or None
