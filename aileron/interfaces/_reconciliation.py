"""Settles runs of which nobody knows what came of them."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import (
    Actor,
    Finding,
    Run,
)


class IReconciliation(Interface):
    """Lets the operator find out, settle or do again what is in doubt."""

    async def settle(run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """Say what became of an C{unknown} run.

        :raises NotFound: no such run.
        :raises Conflict: it is not C{unknown}.
        """

    async def find_out(run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """Look now, by the effect key, whether an C{unknown} run happened; what is found settles it.

        Nothing but reads is sent.  Twice is safe.

        :return: the run as it then stands, and what was found.
        :raises NotFound: no such run.
        :raises Conflict: it is not C{unknown}, or what it would have done cannot be told any more.
        :raises CapabilityDenied: its connector declares no way to look.
        :raises VaultLocked: the vault is not unlocked.
        """

    async def run_again(run_id: str, note: str, actor: Actor) -> Run:
        """Put up for decision, whatever the action says, a new run that does again what an C{unknown} one was to do.

        It has the old one's effect key where every write is declared idempotent, else a fresh one.  The old one stays
        C{unknown}, names it, and can still be settled.

        :return: the new run.
        :raises NotFound: no such run, or no such action any more.
        :raises Conflict: it is not C{unknown}; or a run that does it again is open, or C{unknown} itself: C{details}
            tell C{run_id} and C{state}.
        :raises InvalidRequest, BindingRequired, CapabilityDenied, LimitExceeded: as of L{ISubmission.submit}.
        """
