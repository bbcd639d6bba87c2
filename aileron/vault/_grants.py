"""The standing grants in the vault's file, and functions that add, use and revoke one in a tuple of grants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import utc
from aileron.model.authority import MOST_LIVE_GRANTS, Grant, GrantState
from aileron.model.errors import Conflict, NotFound
from aileron.model.interfaces.authority import IGrants

from ._format import Seal
from ._vault_file import OpenVault, VaultChanged

T = TypeVar("T")
_TRIES = 9


@implementer(IGrants)
class FileGrants:
    """The grants of a vault.  Reads use the verified contents, so a lock or an altered file does not change them."""

    def __init__(self, file: OpenVault, clock: IReactorTime) -> None:
        self._file = file
        self._clock = clock

    def all(self) -> tuple[Grant, ...]:
        return self._file.verified.grants

    def get(self, grant_id: str) -> Grant | None:
        return next((grant for grant in self.all() if grant.id == grant_id), None)

    def put(self, grant: Grant) -> None:
        _write_again(lambda: self._file.change(grants=with_new(self._file.current().grants, grant, self._now())))

    def use(self, grant_id: str, sequence: int, head: str) -> Grant:
        def write_use() -> tuple[Grant, ...]:
            used = with_use(self._file.current().grants, grant_id, self._now())
            self._file.change(grants=used, sealed=self._file.find_latest_seal(Seal(sequence, head)))
            return used

        return find_grant(_write_again(write_use), grant_id)

    def revoke(self, grant_id: str, at: datetime) -> Grant:
        def write_end() -> tuple[Grant, ...]:
            ended = with_end(self._file.current().grants, grant_id, at)
            self._file.change(grants=ended)
            return ended

        # guard of several daemons: a grant is revoked although another daemon uses one at the same moment
        #    -> vault.test_shared.SharedTests.test_revoked, instead return find_grant(write_end(), grant_id)
        return find_grant(_write_again(write_end), grant_id)

    def void(self) -> None:
        self._file.change(grants=())

    def _now(self) -> datetime:
        return utc(self._clock.seconds())


def _write_again(write: Callable[[], T]) -> T:
    """Return the result of C{write}. If another daemon changed the grants, which are then known, call it again.

    :raises VaultChanged: if that happens too often.
    """
    for _ in range(_TRIES):
        with suppress(VaultChanged):
            return write()
    return write()


KEPT_AFTERWARDS = timedelta(days=7)
"""How long an ended grant is stored: longer than any run approved by it can wait."""

_WHY = {
    GrantState.USED_UP: "This grant is used up.",
    GrantState.OVER: "This grant is over.",
    GrantState.REVOKED: "This grant was revoked.",
}


def find_grant(grants: Sequence[Grant], grant_id: str) -> Grant:
    """Return the grant with the id C{grant_id}.

    :raises NotFound: if there is no such grant.
    """
    for grant in grants:
        if grant.id == grant_id:
            return grant
    raise NotFound("There is no such grant.", {"grant": grant_id})


def with_new(grants: Sequence[Grant], grant: Grant, now: datetime) -> tuple[Grant, ...]:
    """Return the grants with C{grant} added, and without those that ended long ago.

    :raises Conflict: if the limit of live grants is reached, or the id is in use.
    """
    if any(each.id == grant.id for each in grants):
        raise Conflict("There is a grant of this id.", {"grant": grant.id})
    if sum(each.state(now) is GrantState.LIVE for each in grants) >= MOST_LIVE_GRANTS:
        raise Conflict(f"{MOST_LIVE_GRANTS} grants are in force, which is the most: revoke one first.")
    return (*(each for each in grants if not _long_ended(each, now)), grant)


def with_use(grants: Sequence[Grant], grant_id: str, now: datetime) -> tuple[Grant, ...]:
    """Return the grants with one use of a grant counted.

    :raises NotFound: if there is no such grant.
    :raises Conflict: if the grant is revoked, expired or used up.
    """
    grant = find_grant(grants, grant_id)
    state = grant.state(now)
    if state is not GrantState.LIVE:
        raise Conflict(_WHY[state], {"grant": grant_id, "state": state.value})
    return _with(grants, evolve(grant, used=grant.used + 1, used_at=now))


def with_end(grants: Sequence[Grant], grant_id: str, at: datetime) -> tuple[Grant, ...]:
    """Return the grants with one of them revoked at C{at}. If it was revoked before, its time stays.

    :raises NotFound: if there is no such grant.
    """
    grant = find_grant(grants, grant_id)
    return tuple(grants) if grant.revoked_at is not None else _with(grants, evolve(grant, revoked_at=at))


def _with(grants: Sequence[Grant], changed: Grant) -> tuple[Grant, ...]:
    return tuple(changed if each.id == changed.id else each for each in grants)


def _long_ended(grant: Grant, now: datetime) -> bool:
    if grant.state(now) is GrantState.LIVE:
        return False
    moments = (grant.used_at, grant.revoked_at, grant.not_after if grant.not_after <= now else None, grant.made_at)
    return max(at for at in moments if at is not None) + KEPT_AFTERWARDS < now
