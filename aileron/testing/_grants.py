"""Standing grants in memory, for tests of the runner."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import utc
from aileron.model.authority import Grant
from aileron.model.interfaces.authority import IGrants
from aileron.vault import grant_found, grants_with_end, grants_with_new, grants_with_use

from ._authority import MemoryControl
from ._examples import NOON
from ._vault import KeptInMemory, MemoryVault


def example_grant(grant_id: str = "grant-1", **changes: Any) -> Grant:
    """Return a grant made at noon, for an hour and three uses."""
    values: dict[str, Any] = {
        "action": "ship-update",
        "predicates": (),
        "exact": {"more": [True, None, {"n": 1}], "share": 1.0, "text": "hello"},
        "uses": 3,
        "not_after": NOON + timedelta(hours=1),
        "bound": {"the action's file": "sha256:" + "a" * 64},
        "run_id": "run-1",
        "made_at": NOON,
        "made_by": "operator-1",
    }
    return Grant(id=grant_id, **{**values, **changes})


@implementer(IGrants)
class MemoryGrants(KeptInMemory):
    """An L{IGrants} in memory.

    :param control: stores the newest record of the audit log at each use of a grant.
    """

    def __init__(self, vault: MemoryVault, control: MemoryControl, clock: IReactorTime) -> None:
        super().__init__(vault)
        self._control = control
        self._clock = clock
        self._grants: tuple[Grant, ...] = ()

    def all(self) -> tuple[Grant, ...]:
        return self._grants if self._vault.ever_unlocked() else ()

    def get(self, grant_id: str) -> Grant | None:
        return next((grant for grant in self.all() if grant.id == grant_id), None)

    def put(self, grant: Grant) -> None:
        self._vault.check()
        self._become(grants_with_new(self._grants, grant, utc(self._clock.seconds())))

    def use(self, grant_id: str, sequence: int, head: str) -> Grant:
        self._vault.check()
        self._become(grants_with_use(self._grants, grant_id, utc(self._clock.seconds())))
        self._control.seal(sequence, head)
        return grant_found(self._grants, grant_id)

    def revoke(self, grant_id: str, at: datetime) -> Grant:
        self._vault.check()
        self._become(grants_with_end(self._grants, grant_id, at))
        return grant_found(self._grants, grant_id)

    def void(self) -> None:
        self._vault.check()
        self._become(())

    def _become(self, grants: tuple[Grant, ...]) -> None:
        if grants != self._grants:
            self.check_writable()
            self._grants = grants
            self._control.file_revision += 1
