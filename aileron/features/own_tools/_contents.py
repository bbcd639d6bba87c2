"""Keeps pushes and long bodies that wait for approval, each in a file until its run is settled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from attrs import define, field
from twisted.internet.defer import DeferredLock

from aileron.model.errors import LimitExceeded
from aileron.model.interfaces.runner import ISubmission
from aileron.model.queries import RunQuery
from aileron.model.runs import Run, RunState

from ._bodies import BodyReading, LongBody
from ._spool import BodySpool, BodySpools

MOST_STORED_OF_SESSION, MOST_STORED = 256 * 1024 * 1024, 1024 * 1024 * 1024
"""The most bytes of contents that wait, of one session and of all."""

SWEEP_SECONDS = 60.0
"""The time between two sweeps. They read the database only if a content is stored."""

_UNSETTLED = tuple(each for each in RunState if not each.settled)
_PAGE = 100


@define(eq=False)
class ToolContents:
    """The contents that are too long for the arguments of a run.

    A content is deleted when no unsettled run has its digest among its arguments, by the next L{sweep}. So whatever a
    crash leaves is deleted at the next start.
    """

    _spools: BodySpools
    _submission: ISubmission
    _lock: DeferredLock = field(factory=DeferredLock, init=False)

    async def spool(self, session_id: str, content: bytes) -> tuple[BodySpool, LongBody]:
        """Return a spool with this content, and the description of the content.

        :raises LimitExceeded: if too much is being stored.
        :raises StoreUnavailable: if it cannot be written.
        """
        spool = self._spools.open(session_id, BodyReading(None, False))
        spool.write(content)
        try:
            return spool, await spool.finish()
        except BaseException:
            spool.discard()
            raise

    async def submit(self, session_id: str, spool: BodySpool, size: int, submit: Callable[[], Awaitable[Run]]) -> Run:
        """Store the content of a spool, and return the run that C{submit} creates for it.

        :raises LimitExceeded: if the contents of waiting runs would be too long together. Nothing is stored.
        :raises StoreUnavailable: if it cannot be stored.
        :raises AileronError: if C{submit} raised it. The content is deleted by the next sweep.
        """
        # guard of own tools: a sweep deletes no content whose run is being made
        #    -> features.own_tools.test_contents.ContentsTests.test_sweep_meanwhile
        async with self._lock:
            await self._sweep(session_id, size)
            await spool.store()
            return await submit()

    async def sweep(self) -> None:
        """Delete the contents that no unsettled run needs.

        :raises StoreUnavailable: if the runs cannot be read.
        """
        async with self._lock:
            await self._sweep()

    async def start(self) -> None:
        """Delete what an earlier process left. Call it before anything is stored.

        :raises StoreUnavailable: if the runs cannot be read.
        """
        await self._spools.in_thread(self._spools.contents.remove_unfinished)
        await self.sweep()

    async def _sweep(self, session_id: str = "", more: int = 0) -> None:
        """Delete contents that are not needed.

        :raises LimitExceeded: if with C{more} bytes of a session, those that are needed would be too long together.
        """
        sizes: Mapping[str, int] = await self._spools.in_thread(self._spools.contents.list_sizes)
        needed = await self._find_needed() if sizes else {}
        # guard of own tools: a content that its run still needs is kept
        #    -> features.own_tools.test_contents.ContentsTests.test_kept
        for digest in sizes.keys() - needed.keys():
            await self._spools.in_thread(self._spools.contents.remove, digest)
        kept = {digest: size for digest, size in sizes.items() if digest in needed}
        own = sum(size for digest, size in kept.items() if session_id in needed[digest])
        # guard of own tools: contents that wait do not fill the disk
        #    -> features.own_tools.test_contents.ContentsTests.test_limits
        if own + more > MOST_STORED_OF_SESSION or sum(kept.values()) + more > MOST_STORED:
            raise LimitExceeded(
                "The pushes and long bodies that wait for approval are too long together. Nothing was sent: decide "
                "those that wait first."
            )

    async def _find_needed(self) -> Mapping[str, set[str]]:
        """Return the sessions of the unsettled runs that have a stored content, by digest."""
        found, cursor, ended = dict[str, set[str]](), None, False
        while not ended:
            page = await self._submission.runs(RunQuery(_UNSETTLED, limit=_PAGE, cursor=cursor))
            for run in page.items:
                digest = run.arguments.get("content")
                if isinstance(digest, str):
                    found.setdefault(digest, set()).add(run.session_id or "")
            cursor, ended = page.cursor, page.cursor is None
        return found
