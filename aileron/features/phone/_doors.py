"""The operator's logins, decisions and approvals as the phone's pages may use them: less than on the computer."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from attrs import frozen
from zope.interface import implementer

from aileron.api import OperatorLogins
from aileron.api.dependencies import Approving
from aileron.base.json import JSON
from aileron.model.audit import Actor
from aileron.model.authority import Grant, NewGrant, Predicate, decision_item
from aileron.model.errors import Forbidden
from aileron.model.interfaces.runner import IDecisions
from aileron.model.people import AccountLogin
from aileron.model.precedents import Precedents
from aileron.model.queries import Page, RunQuery
from aileron.model.reviews import Card
from aileron.model.runs import Approval, Decision, Run
from aileron.model.sessions import OperatorSession, SignedRequest
from aileron.model.signing import EnrolledKey
from aileron.vault import Passkeys


def _refused(*_given: object, **_named: object) -> NoReturn:
    raise Forbidden("This is done at the desk only.")


@frozen
class PhoneLogins:
    """The logins by passkeys at the phone's pages. No other kind of login works there.

    :ivar is_registered: returns whether there is a passkey with this id.
    """

    _operators: OperatorLogins
    _is_registered: Callable[[str], bool]

    def admit_passkey(self, public_key: str, passkey: str, before: str = "") -> tuple[str, OperatorSession]:
        """Start a login, and return the cookie's value and the session: see L{OperatorLogins.admit_passkey}.

        :raises InvalidRequest: if the key is invalid.
        """
        return self._operators.admit_passkey(public_key, passkey, before)

    def admit_account(self, public_key: str, account: AccountLogin, before: str = "") -> tuple[str, OperatorSession]:
        """Start a person's login, and return the cookie's value and the session: see L{OperatorLogins.admit_account}.

        :raises InvalidRequest: if the key is invalid.
        """
        return self._operators.admit_account(public_key, account, before)

    def knows_cookie(self, cookie: str) -> bool:
        """Return whether this cookie belongs to a login at the public name."""
        return self._operators.knows_passkey_cookie(cookie)

    def by_browser(self, asked: SignedRequest, renew: bool = True) -> OperatorSession | None:
        """Return the session that signed this request, or None if none did.

        If its passkey was removed, end the session and return None.
        """
        session = self._operators.by_passkey(asked, renew)
        # guard of the phone: a removed passkey opens nothing -> phone.test_door.LoginTests.test_removed
        if session is not None and not self._stays(session):
            self._operators.log_out(session.id)
            return None
        return session

    def list(self) -> tuple[OperatorSession, ...]:
        """Return the live sessions of registered passkeys."""
        return tuple(each for each in self._operators.list() if each.is_public and self._stays(each))

    def key_of(self, session_id: str) -> EnrolledKey | None:
        """Return the key of a login, or None: see L{OperatorLogins.key_of}."""
        return self._operators.key_of(session_id)

    def log_out(self, session_id: str) -> None:
        """End one session. Idempotent."""
        self._operators.log_out(session_id)

    def _stays(self, session: OperatorSession) -> bool:
        """Return whether the passkey is registered. An account is checked with each request, in the database."""
        return session.account is not None or (session.passkey is not None and self._is_registered(session.passkey))

    challenge: Any = _refused
    login: Any = _refused
    delay_seconds: Any = _refused
    by_token: Any = _refused
    hand_over: Any = _refused
    handed_over: Any = _refused
    redeem: Any = _refused
    register: Any = _refused
    register_again: Any = _refused
    entering: Any = _refused
    confirm: Any = _refused
    expects_cookie: Any = _refused
    knows_passkey_cookie: Any = _refused
    by_passkey: Any = _refused
    report_lapses: Any = _refused
    signing_in: Any = _refused
    adding_passkey: Any = _refused
    confirm_touched: Any = _refused
    find_lapsed: Any = _refused
    raise_touched: Any = _refused
    restrict: Any = _refused


@frozen
class PhoneApprovers:
    """Creates the options and texts with which a passkey signs decisions at the phone's pages."""

    _approvers: Approving
    _passkeys: Passkeys
    _instance: str

    def make_nonce(self) -> str:
        """Return a nonce: see L{Approving.make_nonce}."""
        return self._approvers.make_nonce()

    def ask(self, run_id: str, decision: Decision, wish: NewGrant | None) -> tuple[str, Mapping[str, JSON]]:
        """Return a nonce, and the options that sign one decision: see L{Approving.ask}.

        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """
        nonce = self.make_nonce()
        statement = self.write(nonce, [decision_item(run_id, decision, wish)])
        return nonce, self._passkeys.request(hashlib.sha256(statement.encode()).digest())

    def offer(self) -> tuple[str, str, Mapping[str, JSON]]:
        """Return the daemon's instance, a nonce and options that sign a list of decisions: see L{Approving.offer}.

        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """
        options = self._passkeys.request(bytes(32))
        return self._instance, self.make_nonce(), {k: v for k, v in options.items() if k != "challenge"}

    ask_sign_in: Any = _refused
    check_sign_in: Any = _refused
    ask_raise: Any = _refused
    check_raise: Any = _refused
    export: Any = _refused
    find_signer: Any = _refused
    ssh_keys: Any = _refused
    add_ssh_key: Any = _refused
    remove_ssh_key: Any = _refused

    def write(self, nonce: str, decisions: Sequence[Mapping[str, JSON]]) -> str:
        """Return the text that a passkey signs to approve or reject C{decisions}."""
        return self._approvers.write(nonce, decisions)


@implementer(IDecisions)
@frozen
class PhoneDecisions:
    """The operator's decisions as made at the phone's pages: each approval must be signed by a passkey.

    This holds for every action, whatever its rule is.
    """

    _decisions: IDecisions

    async def approval(self, run_id: str, *, only_read: bool = False) -> Approval:
        return await self._decisions.approval(run_id, only_read=only_read)

    async def approvals(self, query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        return await self._decisions.approvals(query, only_read=only_read)

    async def progress(self, run: Run) -> str:
        return await self._decisions.progress(run)

    async def pending(self, session_id: str | None) -> int:
        return await self._decisions.pending(session_id)

    async def precedents(self, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        return await self._decisions.precedents(approvals)

    def cards(self, approval: Approval) -> tuple[Card, ...]:
        return self._decisions.cards(approval)

    def suggested(self, approval: Approval) -> tuple[Predicate, ...]:
        return self._decisions.suggested(approval)

    async def edit(self, run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        return await self._decisions.edit(run_id, arguments, digest, actor)

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        _require_passkey(decision)
        return await self._decisions.decide(run_id, decision)

    async def approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        _require_passkey(decision)
        return await self._decisions.approve_and_grant(run_id, decision, wish)


def _require_passkey(decision: Decision) -> None:
    """Raise L{Forbidden} unless a passkey has signed the approval. The runner verifies the signature.

    The key of a person's page signs in its place, if an account logged in. The passkeys are the operator's.

    :raises Forbidden: if none has. C{details["passkey"]} is true.
    """
    is_signed = decision.assertion is not None and decision.assertion.credential is not None
    if Actor("human", decision.decided_by).person is not None:
        # guard of roles: the operator's passkey signs for nobody else
        #    -> features.people.test_roles.DecidingTests.test_passkey
        if is_signed:
            raise Forbidden("An account decides with the key of its own login. Nothing was decided.")
        return
    # guard of the phone: an approval takes the passkey -> phone.test_door.DecidingTests.test_without_passkey
    if decision.approved and not is_signed:
        raise Forbidden("At this address each approval needs your passkey. Nothing was decided.", {"passkey": True})
