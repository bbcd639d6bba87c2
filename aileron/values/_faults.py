"""What went wrong, in the one shape that travels: stored with a run, sent in the error envelope."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from ._converter import Member, differ
from ._json import JSON


@frozen
class Fault:
    """One failure as its reader meets it.

    :ivar kind: a class of the closed taxonomy (see L{aileron.errors.STATUS}).
    :ivar message: fit for the user's eyes: no secret, no stack.
    :ivar boundary: whose side failed: C{user sandbox connector_manifest action runtime external}.
    :ivar retriable: whether the same call may succeed later.
    """

    kind: str
    message: str
    boundary: str = "runtime"
    retriable: bool = False
    details: Mapping[str, JSON] = field(factory=dict)

    def with_details(self, **details: JSON) -> Fault:
        """The same fault that says more."""
        return evolve(self, details={**self.details, **details})


differ(Fault, kind=Member("class"))
