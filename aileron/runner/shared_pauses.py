"""Pauses that several daemons share by one database and one vault."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field
from twisted.logger import Logger

from aileron.model.authority import Pause
from aileron.model.errors import AileronError

from .pauses import PAUSED_ROW, Pauses, read_pauses, write_pauses

_log = Logger()
_Standing = Mapping[str | None, Pause]


@define(eq=False)
class SharedPauses(Pauses):
    """The pauses of everything and of single sessions. The row is written only if it has not changed since it was read.

    A pause that was begun here applies here at once, and to all daemons once the row has it: every daemon compares the
    row in the transaction that begins an effect.

    :ivar row: the text of the row as this daemon knows it, or None if there is none. Safe in any thread.
    """

    row: str | None = field(default=None, init=False)
    _found: _Standing = field(factory=dict, init=False)  # in the row and the vault when they were last read
    _for_vault: _Standing = field(factory=dict, init=False)  # begun here, and not in the vault yet

    async def learn(self) -> None:
        """Load the pauses that are stored. Call at the start.

        :raises StoreUnavailable: if the row cannot be read.
        """
        await self.catch_up()

    def settle_up(self) -> None:
        """Add the pauses that were begun here to those in the vault. If the vault refuses, the next call retries."""
        self._for_vault = {**self._for_vault, **self._list_own()}
        if not self._for_vault:
            self._owed = False
            return
        kept = {pause.session_id: pause for pause in self._operator_limits.pauses()}
        try:
            self._operator_limits.keep_pauses(tuple({**kept, **self._for_vault}.values()))
        except AileronError as error:
            _log.info("the pauses are not in the vault yet: {why}", why=error.message)
        else:
            self._owed, self._for_vault = False, {}

    async def catch_up(self) -> None:
        """Read what other daemons have paused or resumed. A pause begun here that is not stored yet stays.

        :raises StoreUnavailable: if the row cannot be read.
        """
        row = (await self._watermarks.all()).get(PAUSED_ROW)
        before, own = self._standing, self._list_own()
        found = {pause.session_id: pause for pause in read_pauses(row, self._runs.now())}
        self._found = {**found, **{pause.session_id: pause for pause in self._operator_limits.pauses()}}
        self._standing, self.row = {**self._found, **own}, row
        if any(session_id not in self._standing for session_id in before):
            self._lifted.fire()

    def _list_own(self) -> _Standing:
        """Return the pauses that were begun here since the row was read last."""
        return {name: pause for name, pause in self._standing.items() if self._found.get(name) != pause}

    async def _write_row(self) -> None:
        """Read the row, and write it back with the pauses of this daemon added. Retry if it was changed meanwhile.

        :raises StoreUnavailable: if the row cannot be read or written.
        """
        while True:
            await self.catch_up()
            written = self._standing
            if await self._swap(written):
                self._unwritten = written is not self._standing
                return

    async def _remove_pause(self, session_id: str | None) -> None:
        while True:
            await self.catch_up()
            left = self._remove(session_id)
            self._for_vault = {name: pause for name, pause in self._for_vault.items() if name != session_id}
            self._operator_limits.keep_pauses(tuple(left.values()))
            if await self._swap(left):
                break
        self._standing = self._remove(session_id)
        self._lifted.fire()

    async def _swap(self, standing: _Standing) -> bool:
        """Write pauses to the row if it still has what was read. Return whether they were written."""
        text = write_pauses(standing)
        if text != self.row and not await self._watermarks.swap(PAUSED_ROW, self.row, text):
            return False
        self.row, self._found = text, dict(standing)
        return True
