"""Finds whether the record or the vault was put back, and distrusts what came with that."""

from __future__ import annotations

from contextlib import suppress

from attrs import define, frozen
from twisted.logger import Logger

from aileron.errors import ApprovalStale, StateConflict, StoreUnavailable
from aileron.interfaces import IControl, IGrants, ITrust, IWatermarks
from aileron.runner.decisions import UNUSABLE
from aileron.runner.requests import ApprovalRequests
from aileron.runner.runs import RunRepository
from aileron.values import RunState

_log = Logger()
_CURRENT = "vault"  # the name of the watermark that holds the vault's id
_OLDER = "older"
_APPROVED = (RunState.APPROVED, RunState.AWAITING_VAULT)


@frozen
class _Reached:
    """Tells how far a vault had come.

    :ivar sequence: of the record that it sealed last.
    """

    vault: str
    revision: int
    sequence: int

    @property
    def name(self) -> str:
        """Of its watermark."""
        return f"{_CURRENT} {self.vault}"

    def written(self) -> str:
        """As a watermark."""
        return f"{self.revision} {self.sequence}"

    def behind(self, watermark: str | None) -> bool:
        """Return whether C{watermark} is further than this; one that cannot be read counts as further."""
        if watermark is None:
            return False
        try:
            revision, sequence = map(int, watermark.split(" "))
        except ValueError:
            return True
        return self.revision < revision or self.sequence < sequence


def _reached_by(control: IControl) -> _Reached | None:
    try:
        sequence, _ = control.sealed() or (0, "")
        return _Reached(*control.revision(), sequence)
    except UNUSABLE:
        return None


async def remember_older(control: IControl, watermarks: IWatermarks) -> None:
    """Mark an older vault as older, so that L{RollbackDetector.check} finds it whatever is written to it meanwhile.

    To be called before a life writes anything to its vault: that makes the file newer again, and a start that fails
    afterwards has told nobody.

    :raises StoreUnavailable: the record cannot be read or written.
    """
    reached = _reached_by(control)
    if reached is not None and reached.behind((await watermarks.all()).get(reached.name)):
        await watermarks.put(reached.name, _OLDER)  # which is no number, and taken for the worst


@define(eq=False)
class RollbackDetector:
    """Compares how far record and vault remember each other to have come, and distrusts what was put back."""

    _control: IControl
    _trust: ITrust
    _grants: IGrants
    _watermarks: IWatermarks
    _runs: RunRepository
    _requests: ApprovalRequests
    _compared: bool = False
    _noted: _Reached | None = None

    async def check(self) -> None:
        """Compare; where something was put back, say so on record and believe nothing that came with it.

        Nothing happens while the vault cannot be used.

        :raises StoreUnavailable: the record or the vault cannot be read or written.
        """
        reached = self._reached()
        if reached is None:
            return
        remembered = await self._watermarks.all()
        current = remembered.get(_CURRENT, reached.vault)
        returned = current != reached.vault and reached.name in remembered
        old_vault = returned or reached.behind(remembered.get(reached.name))
        old_record = not await self._in_record()
        if old_vault or old_record:
            await self._distrust(reached, old_vault, old_record)
        elif current != reached.vault:
            await self._runs.audit.append(
                self._runs.events.of_home("vault.replaced", before=current, now=reached.vault)
            )
        self._compared = True
        await self.note()

    async def note(self) -> None:
        """Remember how far the vault has come, if it has come further; what cannot be written is tried again."""
        if not self._compared or not self.moved:
            return
        try:
            await self.remember()
        except StoreUnavailable:
            _log.warn("how far the vault has come cannot be written yet")

    async def remember(self) -> None:
        """Remember the same, or fail.

        :raises StoreUnavailable: it cannot be written, or told.
        """
        reached = self._reached()
        if reached is None or not self._compared:
            raise StoreUnavailable("How far the vault has come cannot be told.")
        if reached == self._noted:
            return
        await self._watermarks.put(_CURRENT, reached.vault)
        await self._watermarks.put(reached.name, reached.written())
        self._noted = reached

    @property
    def compared(self) -> bool:
        """True once L{check} has completed since the daemon started."""
        return self._compared

    @property
    def comparable(self) -> bool:
        """True if the vault is unlocked and its file readable and the one that was written last."""
        return self._reached() is not None

    @property
    def moved(self) -> bool:
        """True if L{note} has something to write."""
        return self._reached() not in (None, self._noted)

    def _reached(self) -> _Reached | None:
        return _reached_by(self._control)

    async def _in_record(self) -> bool:
        """Return whether the record still holds the newest entry that the vault sealed."""
        sealed = self._control.sealed()
        return sealed is None or await self._runs.audit.at(sealed[0]) == sealed[1]

    async def _distrust(self, reached: _Reached, old_vault: bool, old_record: bool) -> None:
        """Ask anew what was approved, void trust if it is an old vault's, and seal the present, to tell it once."""
        found = ["The vault is older than what was done with it."] if old_vault else []
        found += ["The record is not the one that the vault sealed."] if old_record else []
        event = self._runs.events.of_home("tamper.detected", found=found, sealed_sequence=reached.sequence)
        await self._runs.audit.append(event)
        _log.error("something was put back: {found}", found=found)
        if old_vault:
            self._trust.void()
            self._grants.void()
        why = ApprovalStale(" ".join(found))
        for run in await self._runs.table.unfinished():
            if run.gated and run.state in _APPROVED:
                with suppress(StateConflict):  # it moved by itself
                    await self._requests.ask_anew(run, why)
        head = await self._runs.audit.head()
        if head is not None:
            self._control.seal(*head)
