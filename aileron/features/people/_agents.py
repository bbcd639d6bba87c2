"""Ends the sessions of an account that was removed, withdraws what they requested, and revokes its credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

from attrs import evolve

from aileron.api.endpoint import Dependencies
from aileron.api.shapes.values import to_json
from aileron.base.json import JSON
from aileron.model.audit import Actor, Event
from aileron.model.errors import Conflict, NotFound
from aileron.model.people import Owner, PersonAccount
from aileron.model.queries import RunQuery
from aileron.model.runs import NOT_BEGUN, Run, RunState
from aileron.model.sessions import Session

_AT_ONCE = 500


async def end_agents(deps: Dependencies, account: PersonAccount, actor: Actor) -> None:
    """End the sessions of a removed account, revoke its credentials, and withdraw its runs that have not begun.

    If this is interrupted, the sessions end within seconds all the same, nothing of them begins, and nobody can use the
    credentials: see L{aileron.api._sessions.Leases} and L{aileron.runner.plan.Planner}.

    :raises VaultLocked, BindingFailed: if a credential cannot be revoked.
    :raises StoreUnavailable: if it cannot be stored.
    """
    for session in [each async for each in list_sessions(deps, account.owner)]:
        if await deps.leases.end_if_removed(session):
            deps.session_ended(session.id)
    for binding in [each for each in deps.bindings.list() if each.owner == account.owner]:
        await deps.bindings.revoke(binding.name)
        payload: dict[str, JSON] = {"binding": binding.name, "revision": binding.revision}
        payload["owner"] = to_json(account.owner)
        await deps.audit.append(
            Event(deps.ids(), "binding.revoked", deps.now(), actor, payload, connector=binding.connector)
        )
    for run in [each async for each in _list_runs(deps, account)]:
        with suppress(Conflict, NotFound):  # it has ended meanwhile
            await deps.submission.withdraw(run.id, actor, f"The account {account.name} was removed.")


async def list_sessions(deps: Dependencies, owner: Owner) -> AsyncIterator[Session]:
    """Yield the live sessions of an account's agents, newest first.

    :raises StoreUnavailable: if they cannot be read.
    """
    cursor: str | None = None
    while True:
        found = await deps.sessions.list(True, _AT_ONCE, cursor)
        for session in found.items:
            if session.owner == owner:
                yield session
        cursor = found.cursor
        if cursor is None:
            return


async def _list_runs(deps: Dependencies, account: PersonAccount) -> AsyncIterator[Run]:
    query: RunQuery | None = RunQuery(states=(RunState.PENDING, *NOT_BEGUN), limit=_AT_ONCE)
    while query is not None:
        found = await deps.submission.runs(query)
        for run in found.items:
            if run.owner == account.owner:
                yield run
        query = None if found.cursor is None else evolve(query, cursor=found.cursor)
