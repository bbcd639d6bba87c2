"""Finds out which requests of tools repeat an earlier run, so that they get its answer and nothing is sent again.

A mistake here may only cause another request for approval. It never causes a second effect of one approval: only the
runner sends, and it sends each run once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from attrs import define, evolve, field
from twisted.logger import Logger

from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable
from aileron.model.sessions import Session
from aileron.model.tool_claims import MOST_CLAIMS, MOST_TOLD, ToolClaim

from .values import ToolRequest

_log = Logger()


class ClaimStore(Protocol):
    """The claims in the database. A claim says which request of a tool may get the answer of which run."""

    async def note_callers(self, claim: ToolClaim | None, *events: Event) -> None:
        """Store the callers of a claim, if there is one, and events, in one transaction.

        The claim itself was stored with its run.

        :raises StoreUnavailable: if the database cannot be written.
        """

    async def of_session(self, session_id: str) -> Sequence[ToolClaim]:
        """Return the claims of a session, the oldest first.

        :raises StoreUnavailable: if the database cannot be read.
        """

    async def take_over(self, session: Session, form: str, action: str) -> ToolClaim | None:
        """Make the oldest claim that a session may take over its own, and return it, or None if there is none.

        A session may take over the claims of an ended session that it follows (see L{Session.follows}), if the run is
        of the same action and the request of the same form, and nobody got the answer.

        :raises StoreUnavailable: if the database cannot be written.
        """

    async def count_open(self) -> Mapping[str, tuple[int, int]]:
        """Return the number of claims whose run is not settled, and the bytes of their requests, by session.

        :raises StoreUnavailable: if the database cannot be read.
        """


def name_caller(request: ToolRequest, life: str) -> str:
    """Return a name for the command that sent a request: its process, or its connection if no process is known.

    :param life: a text that is unique to this process of the daemon. Each process numbers its connections from 1.
    """
    caller = request.caller
    # guard of own tools: a command is a process, whatever connections it opens
    #    -> features.own_tools.test_door.OwedTests.test_clean_up
    if caller.process:
        return f"process:{caller.process}:{caller.started}"
    return f"connection:{life}:{request.connection}"


@define(eq=False)
class SessionClaims:
    """The claims of one session, in memory and in the database: which requests may get the answer of which run.

    :ivar waiting: by run, the connections that wait for its answer now.
    """

    _store: ClaimStore
    _claims: dict[str, ToolClaim] = field(factory=dict)
    waiting: dict[str, set[object]] = field(factory=dict)

    def find_repeated(self, form: str, caller: str) -> Iterable[str]:
        """Yield the runs that a request with the normal form C{form} may repeat, the oldest first.

        A request repeats a run, unless another connection waits for the run now, or this command has had its answer
        already, or every command that has had the answer waits for no other answer: then the same is wanted once more.
        """
        owed = self._list_owed()
        for claim in tuple(self._claims.values()):
            if (
                claim.form == form
                # guard of own tools: of two equal requests at once, each is asked for
                #    -> features.own_tools.test_door.RepetitionTests.test_at_once
                and not self.waiting.get(claim.run_id)
                # guard of own tools: a caller gets an answer once
                #    -> features.own_tools.test_door.RepetitionTests.test_same_caller
                and caller not in claim.given
                # guard of own tools: a command that had all its answers is meant again
                #    -> features.own_tools.test_door.RepetitionTests.test_third_command
                and claim.given <= owed
            ):
                yield claim.run_id

    async def take_over(self, session: Session, form: str, action: str) -> str | None:
        """Return a run that an earlier session asked for and this one may get the answer of, or None if there is none.

        From then on it is a run of this session's claims, and no other session gets it.

        :raises StoreUnavailable: if the database cannot be written.
        """
        claim = await self._store.take_over(session, form, action)
        if claim is None:
            return None
        self._claims[claim.run_id] = claim
        return claim.run_id

    def find_owed(self, caller: str) -> tuple[str, ...]:
        """Return the runs that a caller knows to be waiting, and whose answers it did not get, newest first."""
        return tuple(each.run_id for each in reversed(self._claims.values()) if caller in each.told - each.given)

    def add(self, claim: ToolClaim) -> None:
        """Add the claim that was stored with a new run. If there are too many claims, remove the oldest."""
        self._claims[claim.run_id] = claim
        while len(self._claims) > MOST_CLAIMS:
            self.forget(next(iter(self._claims)))

    async def note_told(self, run_id: str, caller: str) -> None:
        """Store that a command received the answer that its run waits for approval."""
        claim = self._claims.get(run_id)
        if claim is not None and caller not in claim.told:
            before = claim.told if len(claim.told) < MOST_TOLD else frozenset()
            claim = self._claims[run_id] = evolve(claim, told=before | {caller})
            try:
                await self._store.note_callers(claim)
            except StoreUnavailable as error:
                _log.warn("that the run {run} waits is not stored as told: {why}", run=run_id, why=error.message)

    async def note_given(self, run_id: str, caller: str, event: Event) -> None:
        """Store that a command got the answer of a run, together with the event that records it.

        If the claim was forgotten meanwhile, only the event is stored.
        """
        claim = self._claims.get(run_id)
        if claim is not None:
            claim = self._claims[run_id] = evolve(claim, given=claim.given | {caller})
        try:
            await self._store.note_callers(claim, event)
        except StoreUnavailable as error:
            _log.warn("that the answer of the run {run} was given is not stored: {why}", run=run_id, why=error.message)

    def forget(self, run_id: str) -> None:
        """Remove a claim that has expired, or is one too many, from memory. The database deletes it by itself."""
        self._claims.pop(run_id, None)
        self.waiting.pop(run_id, None)

    def _list_owed(self) -> frozenset[str]:
        return frozenset().union(*(each.told - each.given for each in self._claims.values()))


async def load_claims(store: ClaimStore, session_id: str) -> SessionClaims:
    """Return the claims of a session that the database has.

    :raises StoreUnavailable: if the database cannot be read.
    """
    found = await store.of_session(session_id)
    return SessionClaims(store, {each.run_id: each for each in found})
