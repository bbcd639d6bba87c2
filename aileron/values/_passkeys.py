"""Passkeys of the operator's, and what may not be approved without one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import field, frozen

from ._converter import to_json
from ._grants import NewGrant
from ._json import JSON
from ._runs import Decision
from ._time import timestamp


@frozen
class Passkey:
    """One passkey, as the operator has let it count.

    :ivar id: of the credential, as unpadded base64url.
    :ivar public_key: COSE (RFC 9052).
    :ivar count: how often its authenticator says that it was used; 0, if that does not count.
    """

    id: str
    name: str
    public_key: bytes = field(repr=False)
    made_at: datetime
    count: int = 0


@frozen
class PasskeyRule:
    """The rule of what may not be approved without a passkey.

    :ivar everything: whatever asks.
    :ivar actions: these, by name; a name that ends with C{*} is every one that begins so.
    """

    everything: bool = False
    actions: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        """True if anything needs one."""
        return self.everything or bool(self.actions)

    def needs(self, action: str) -> bool:
        """Tell whether a call of this action needs one."""
        return self.everything or any(
            action.startswith(name[:-1]) if name.endswith("*") else action == name for name in self.actions
        )

    def keeps(self, earlier: PasskeyRule) -> bool:
        """Tell whether it asks for all that an earlier one asked for."""
        return self.everything or (not earlier.everything and set(earlier.actions) <= set(self.actions))


def approval_statement(run_id: str, decision: Decision, wish: NewGrant | None) -> Mapping[str, JSON]:
    """Return what a passkey signs for: all that an approval says, with the grant that goes with it."""
    return {
        "run": run_id,
        "approved": decision.approved,
        "digest": decision.digest,
        "reason": decision.reason,
        "not_before": None if decision.not_before is None else timestamp(decision.not_before),
        "grant": None if wish is None else to_json(wish),
    }
