"""Signs checkpoints of the audit log, and stores the log's end in the vault.

While the vault is locked, nothing can be signed. This is a locked period, in which the records get MACs instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron import __version__
from aileron.base.json import timestamp, utc
from aileron.model.audit import NO_CHECKPOINT, Checkpoint, Event, LockedPeriod, Verdict
from aileron.model.errors import AileronError, StoreUnavailable
from aileron.model.interfaces.authority import IControl, IRecordKeys
from aileron.model.interfaces.store import IAudit

from ._chain import GENESIS, fingerprint
from ._commit_observer import TAMPER, CommitObserver
from ._locked_period import find_wrong
from ._record_reader import RecordArchive, export_record, verify_record
from .verify import Verification

EVERY_SECONDS = 3600.0
_AGAIN_SECONDS = 10.0
_SLICE, _MOST_TRIES = 500, 10
_OTHER_LOG = "The record that this daemon knew last is not in the log any more."
_ID_BYTES, _KEY_BYTES = 8, 32
_FOREIGN_WRITES = "While the daemon ran, another program wrote to the record, or took something from its end."
_log = Logger()


@define(eq=False)
class CheckpointSigner:
    """A signer of checkpoints with the vault's key, for one run of the daemon.

    Call L{open} before the first event is recorded, and L{close} after the last.

    :param control: the control part of the vault that C{keys} come from.
    :param write: returns an event of the daemon, dated now, from its type and payload.
    :param randomness: returns the requested number of unpredictable bytes.
    :ivar anchors: called with every checkpoint, to store it outside of this machine. They return at once and never
        raise.
    :ivar latest: the newest checkpoint, of this vault or an earlier one, or None if there is none.
    """

    _audit: IAudit
    _archive: RecordArchive
    _keys: IRecordKeys
    _control: IControl
    _observer: CommitObserver
    _clock: IReactorTime
    _write: Callable[..., Event]
    _randomness: Callable[[int], bytes]
    anchors: Sequence[Callable[[Checkpoint], None]] = field(default=(), init=False)
    _signing: DeferredLock = field(factory=DeferredLock, init=False)
    latest: Checkpoint | None = field(default=None, init=False)
    _signed_at: float = field(default=0.0, init=False)
    _not_before: float = field(default=0.0, init=False)
    _unlocked: bool = field(default=False, init=False)
    _vouching: bool = field(default=False, init=False)
    _followed: tuple[int, str] | None = field(default=None, init=False)  # the verified end, among several daemons
    _broken: bool = field(default=False, init=False)

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the key that signs checkpoints, for people to note, or None if there is no key."""
        key = self._keys.public_key()
        return None if key is None else fingerprint(key)

    @property
    def tampered(self) -> int:
        """The number of signs of tampering with the audit log that were recorded since the daemon started."""
        return self._observer.tampered

    @property
    def head(self) -> tuple[int, str] | None:
        """The sequence number and hash of the newest durable audit record that this process knows, or None."""
        return self._observer.end

    async def open(self, unlocked: bool) -> None:
        """Continue the audit log of the previous process.

        If C{unlocked}, verify the records of the locked period first.

        :param unlocked: whether the vault is unlocked.
        :raises StoreUnavailable: if the audit log or the vault cannot be read or written.
        """
        self.latest = await self._archive.latest_checkpoint()
        self._observer.load()
        if self._observer.shared:
            await self._join(unlocked)
        elif unlocked:
            await self._take_over()
        else:
            await self._continue_locked_period()
        if self._observer.end is None:
            self._observer.end = await self._audit.head()

    def vouch(self) -> None:
        """Allow L{close} to sign a last checkpoint. Call after the log was compared with the vault."""
        self._vouching = True

    async def record_unlock(self) -> None:
        """If the vault is unlocked, record that and sign a checkpoint.

        :raises StoreUnavailable, VaultLocked, BindingFailed: if the event or the checkpoint could not be stored.
        """
        if self._unlocked:
            await self._audit.append(self._write("vault.unlocked"))
            await self.checkpoint()

    async def record_lock(self) -> None:
        """If the vault is unlocked, start a locked period, record the lock and sign a checkpoint. Idempotent.

        Call before the vault is locked.

        :raises StoreUnavailable: if the period's key, the event or the checkpoint could not be written.
        :raises VaultLocked, BindingFailed: if the vault cannot be used any more.
        """
        if not self._unlocked:
            return
        self._unlocked = False
        try:
            if not self._observer.shared:
                self._begin_locked_period()
        finally:
            self._observer.locked = not self._observer.shared
            await self._audit.append(self._write("vault.locked"))
        await self.checkpoint()

    async def verify(self) -> Verdict:
        """Verify the audit log against its checkpoints, the last record that this process knows, and the vault.

        The vault stores the hash of the newest record. While it is locked, it is not used.

        :raises StoreUnavailable: if the audit log cannot be read.
        """
        own = {} if self.head is None else {"this daemon": self.head}
        return await verify_record(self._archive, self._clock, {**self._find_sealed(), **own})

    def export(self, since: datetime | None, until: datetime | None) -> AsyncIterator[bytes]:
        """Yield an export of the audit records of a period, with this version of Aileron in the header.

        :raises StoreUnavailable: during the iteration, if the audit log cannot be read.
        """
        return export_record(self._archive, since, until, version=__version__)

    def _find_sealed(self) -> dict[str, tuple[int, str]]:
        try:
            sealed = self._control.sealed()
        except AileronError:
            return {}
        return {} if sealed is None else {"the vault": sealed}

    async def close(self) -> None:
        """Record foreign writes and sign a last checkpoint. Failures are logged, not raised.

        If the vault is locked or L{vouch} was not called, no checkpoint is signed.
        """
        if self._observer.foreign_writes:
            await self._try(self._record_foreign_writes())
        if self._unlocked and self._vouching:
            await self._try(self.checkpoint())

    def sign_if_due(self) -> Deferred[None] | None:
        """Sign a checkpoint if a person's action or tampering was recorded since the last one, or an hour has passed.

        If another program wrote to the audit log, record that instead. The daemon's timer calls this every second.

        :return: a Deferred that fires when the work is done, or None if nothing is due or the vault is locked. Failures
            are logged.
        """
        if self._observer.foreign_writes:
            return Deferred.fromCoroutine(self._try(self._record_foreign_writes()))
        if self._clock.seconds() < self._not_before:
            return None
        hour_over = self._clock.seconds() - self._signed_at >= EVERY_SECONDS
        if not self._unlocked or not (self._observer.due or hour_over) or self._signing.locked:
            return None
        return Deferred.fromCoroutine(self._try(self.checkpoint()))

    async def checkpoint(self) -> None:
        """Sign a checkpoint of the newest audit record, store the record's hash in the vault, and send the checkpoint.

        It is sent to the anchors, which are the places outside of the daemon that keep checkpoints.

        :raises StoreUnavailable, VaultLocked, BindingFailed: if the checkpoint could not be signed or stored.
        """
        await self._signing.run(lambda: Deferred.fromCoroutine(self._checkpoint()))

    async def _checkpoint(self) -> None:
        self._observer.due = False  # later events are not in this checkpoint
        try:
            if self._observer.shared:
                head = await self._sign_followed()
            else:
                head = self._observer.end  # not read from the database: never signs a foreign record
                await self._sign_new(head)
            if head is not None:
                self._seal(*head)
        except BaseException:
            self._observer.due = True
            raise
        self._signed_at = self._clock.seconds()

    async def _sign_new(self, head: tuple[int, str] | None) -> bool:
        """Sign a checkpoint of the end of the log, unless the newest one is of it or the log is empty.

        :return: False if another daemon signed one meanwhile.
        """
        return head is None or (self.latest is not None and self.latest.sequence == head[0]) or await self._sign(*head)

    async def _sign_followed(self) -> tuple[int, str] | None:
        """Sign the end of the log that several daemons write. If another one was faster, follow its checkpoint.

        :return: the end of the log, or None if it is empty.
        :raises StoreUnavailable: if the log does not hold, or others are always faster.
        """
        for _ in range(_MOST_TRIES):
            head = await self._follow_chain()
            if await self._sign_new(head):
                return head
        raise StoreUnavailable("Other daemons sign checkpoints all the time.")

    def _seal(self, sequence: int, head: str) -> None:
        """Store the sequence and hash of the last record in the vault, unless the vault already has a later record.

        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault cannot be written.
        """
        sealed = self._control.sealed()
        if sealed is None or sealed[0] < sequence:
            self._control.seal(sequence, head)

    async def _record_foreign_writes(self) -> None:
        self._observer.foreign_writes = False  # later foreign writes are reported separately
        try:
            await self._audit.append(self._write(TAMPER, found=[_FOREIGN_WRITES], kind="inserted", sequence=None))
        except BaseException:
            self._observer.foreign_writes = True
            raise
        _log.error("another program wrote to the record")

    async def _sign(self, sequence: int, head: str) -> bool:
        previous = NO_CHECKPOINT if self.latest is None else self.latest.digest
        vault, _revision = self._control.revision()
        now = timestamp(utc(self._clock.seconds()))
        unsigned = Checkpoint(vault, sequence, head, now, previous, self._keys.make_key())
        checkpoint = evolve(unsigned, signature=self._keys.endorse(unsigned.statement()))
        if not self._observer.shared:
            await self._archive.put_checkpoint(checkpoint)
        elif not await self._archive.follow_checkpoint(checkpoint):
            return False
        self.latest = checkpoint
        for tell in self.anchors:
            tell(checkpoint)
        return True

    async def _join(self, unlocked: bool) -> None:
        """Continue the log that other daemons write as well. They have no locked periods: others sign meanwhile.

        :raises StoreUnavailable: if the log or the vault cannot be read or written.
        """
        self._unlocked = unlocked
        self._followed = await self._audit.head()
        if unlocked:
            self._keys.make_key()
            if self._keys.locked_periods():  # of a daemon that was alone
                await self._check_locked_period()
                self._keys.put_locked_periods(())

    async def _follow_chain(self) -> tuple[int, str] | None:
        """Verify the records that all daemons wrote since the last call, and return the end of the log.

        If a record does not follow the one before it, record that, and sign nothing before it is resolved.

        :raises StoreUnavailable: if the log cannot be read, or does not continue what this daemon knows.
        """
        self.latest = await self._archive.latest_checkpoint()
        after, previous = self._followed or (0, GENESIS)
        if after and await self._audit.at(after) != previous:
            await self._report_break(_OTHER_LOG, after)
        while rows := await self._archive.rows(after, _SLICE):
            verification = Verification((), after=after, previous=previous)
            verification.feed(rows)
            # guard of several daemons: a checkpoint covers only records that follow what this daemon knows
            #    -> audit.test_signer.SharedTests.test_broken
            if (broken := verification.end().broken) is not None:
                await self._report_break(broken.why, broken.sequence)
            after, previous = self._followed = rows[-1][0], rows[-1][13]
        if self.latest is not None and self.latest.sequence > after:
            raise StoreUnavailable("Another daemon signed a later checkpoint.")
        return self._followed

    async def _report_break(self, why: str, sequence: int) -> None:
        """Record once that the log was altered, and refuse to sign it.

        :raises StoreUnavailable: always.
        """
        if not self._broken:
            await self._audit.append(self._write(TAMPER, found=[why], kind="altered", sequence=sequence or None))
            self._broken = True
            _log.error("another program wrote to the record: {why}", why=why)
        raise StoreUnavailable("The audit log was altered, so it is not signed.")

    async def _take_over(self) -> None:
        self._unlocked = True
        if self._keys.public_key() is None:
            key = fingerprint(self._keys.make_key())
            _log.info("the record is signed with a new key: note {key}", key=key)
        await self._check_locked_period()
        self._begin_locked_period()

    async def _check_locked_period(self) -> None:
        """Verify the records of the locked period, and record a fault.

        :raises StoreUnavailable: if the log cannot be read or written.
        """
        broken = await find_wrong(self._archive, self._keys.locked_periods(), self._observer.state)
        if broken is not None:
            _log.error("the record was changed while the vault was locked: {why}", why=broken.why)
            first = broken.sequence or None
            await self._audit.append(self._write(TAMPER, found=[broken.why], kind=broken.kind, sequence=first))

    async def _continue_locked_period(self) -> None:
        """Continue the locked period of the key file. Records get MACs, as nothing can be signed while locked.

        :raises StoreUnavailable: if the database fails.
        """
        state = self._observer.state
        if state is not None:
            self._observer.catch_up(await self._archive.count_of(state.period))
        self._observer.locked = True

    def _begin_locked_period(self) -> None:
        """Create a new locked period for the time after the next lock.

        The vault stores the new period before the key file does, and drops the older periods afterwards.

        :raises StoreUnavailable: if the period's key or the vault cannot be written.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault's file is damaged.
        """
        fresh = LockedPeriod(self._randomness(_ID_BYTES).hex(), self._randomness(_KEY_BYTES))
        state = self._observer.state
        standing = [each for each in self._keys.locked_periods() if state is not None and each.id == state.period]
        self._keys.put_locked_periods((*standing, fresh))
        self._observer.begin_period(fresh.id, fresh.key)
        self._keys.put_locked_periods((fresh,))

    async def _try(self, work: Awaitable[None]) -> None:
        try:
            await work
        except AileronError as error:
            self._not_before = self._clock.seconds() + _AGAIN_SECONDS
            _log.warn("the record cannot be signed yet: {why}", why=error.message)
