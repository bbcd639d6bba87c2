"""The vault's state.  Opening it is no route: nobody sends a passphrase here."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Overdue
from twisted.logger import Logger

from aileron.api._endpoint import Parts, Table, Visit
from aileron.api._faults import Answer, answer
from aileron.api._guard import Who
from aileron.api.shapes.schemas import VAULT_STATE, made_of

TABLE = Table()

LOCK_WITHIN_SECONDS = 10.0
TELL_WITHIN_SECONDS = 5.0

_log = Logger()

_STATE = made_of({"state": VAULT_STATE})


@TABLE.route("GET", "/v1/vault/status", agents=Who.LAUNCH | Who.AGENT, operators=Who.ANYONE, answers={200: _STATE})
async def vault_status(visit: Visit, parts: Parts) -> Answer:
    """Whether the vault is missing, locked, unlocked or lost."""
    return answer({"state": parts.vault.state().value})


@TABLE.route("POST", "/v1/vault/lock", operators=Who.OPERATOR, answers={200: _STATE})
async def lock_vault(visit: Visit, parts: Parts) -> Answer:
    """Lock the vault, once what runs has ended or ten seconds are over, and end every operator session."""
    holding = Deferred.fromCoroutine(parts.limits.hold())
    try:
        await holding.addTimeout(LOCK_WITHIN_SECONDS, parts.clock)
    except Overdue:
        _log.info("the vault is locked while something still runs")
    finally:  # in any case: also if the client does not wait
        await _hand_over(parts)
    return answer({"state": parts.vault.state().value})


async def _hand_over(parts: Parts) -> None:
    """Lock, whatever becomes of the last signature."""
    telling = Deferred.fromCoroutine(parts.signer.tell_locked())
    try:
        await telling.addTimeout(TELL_WITHIN_SECONDS, parts.clock)
    except Exception:  # noqa: BLE001 - the vault is locked in any case
        _log.failure("the record could not be handed over")
    finally:
        parts.vault.lock()
