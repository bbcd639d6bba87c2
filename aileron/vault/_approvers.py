"""Verifies the signatures that come with decisions: the key must be enrolled and the text new.

A signature decides each run in its list once.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON
from aileron.base.json import digest as digest_of
from aileron.base.signatures import der_signature, read_base64url, write_base64url
from aileron.base.sshsig import read_armored, read_ssh_signature
from aileron.model.authority import EnrolledSshKey, NewGrant, PasskeyRule, decision_item, is_decision
from aileron.model.errors import Conflict, Forbidden, InvalidRequest
from aileron.model.runs import Assertion, Decision
from aileron.model.sessions import LapsedLogin, SignIn
from aileron.model.signing import (
    EnrolledKey,
    KeyKind,
    SignedDecisions,
    Statement,
    read_statement,
    write_raise,
    write_sign_in,
    write_statement,
)

from ._cipher import Randomness
from ._passkeys import Passkeys, refusal
from ._ssh_keys import SshKeys

_WINDOW_SECONDS = 30.0
"""The maximum difference between the time of a nonce that a key's holder chose and the daemon's clock."""

_ANSWER_SECONDS = 60.0
"""How long a nonce of the daemon's is fresh: the person has so long to touch the authenticator."""

EXPORT_SECONDS = 3600.0
"""How long an exported request can be decided."""

_LIST_SECONDS = 300.0
"""How long the runs of a signed list can be sent one by one, from the first of them."""

_MOST_USED = 8192
"""The most nonces stored. Only valid signatures are stored, and no nonce is dropped early."""

_TIME_BYTES, _RANDOM_BYTES, _MAC_BYTES, _SECRET_BYTES = 8, 16, 16, 32
_CHOSEN = re.compile(r"([0-9]{1,16})\.[A-Za-z0-9_-]{22}").fullmatch
_NO_KEY = (
    "This login has no key to sign with, so nothing was decided. Restart the program that logged in: an older version "
    "of it may still run."
)
_UNSIGNED = "An approval must be signed by the key of your login. Nothing was decided. Reload the page, or try again."
_NO_EXPORT = (
    "This is not what the running daemon exported within the last hour: it was changed on the way, is too old, or was "
    "exported before the daemon was restarted. Nothing was decided. Export it again."
)
_INVALID = "The signature of this decision is not valid here. Nothing was decided. Try again."


class Nonces:
    """Makes and checks nonces, which consist of a time, random bits and a MAC. So nonces need not be stored.

    :param authenticate: returns the MAC of a text, at least 16 bytes. By default, its key is random, and the nonces are
        those of one run of the daemon.
    """

    def __init__(
        self,
        clock: IReactorTime,
        randomness: Randomness = secrets.token_bytes,
        authenticate: Callable[[bytes], bytes] | None = None,
    ) -> None:
        self._clock = clock
        self._randomness = randomness
        secret = randomness(_SECRET_BYTES)
        self._authenticate = authenticate or (lambda text: hmac.digest(secret, text, hashlib.sha256))

    def make(self, purpose: str) -> str:
        """Return a nonce that is fresh for one minute, for one purpose."""
        at = int(self._clock.seconds() * 1000).to_bytes(_TIME_BYTES, "big")
        body = at + self._randomness(_RANDOM_BYTES)
        return write_base64url(body + self._mac(purpose, body))

    def is_fresh(self, purpose: str, nonce: str, seconds: float = _ANSWER_SECONDS) -> bool:
        """Return whether the nonce was made for the purpose, with the same key, within the last C{seconds}."""
        try:
            data = read_base64url(nonce)
        except ValueError:
            return False
        body, mac = data[: _TIME_BYTES + _RANDOM_BYTES], data[_TIME_BYTES + _RANDOM_BYTES :]
        # guard of signing: a challenge is one of ours -> vault.test_approvers.PasskeyTests.test_own_challenge
        if not hmac.compare_digest(mac, self._mac(purpose, body)):
            return False
        passed = self._clock.seconds() - int.from_bytes(body[:_TIME_BYTES], "big") / 1000
        # guard of signing: a challenge is for one minute, an export for one hour
        #    -> vault.test_approvers.PasskeyTests.test_late, instead return True
        return -_WINDOW_SECONDS <= passed < seconds

    def _mac(self, purpose: str, body: bytes) -> bytes:
        return self._authenticate(purpose.encode() + b"\n" + body)[:_MAC_BYTES]


@frozen
class _Use:
    """A nonce that was used: with which signature, and for which runs.

    :ivar digest: the digest of the signature that it came with.
    :ivar runs: the runs that were decided with it.
    """

    until: float
    digest: str
    runs: frozenset[str] = field(factory=frozenset)


class Approvers:
    """The keys whose signatures decide: those of logins, the registered passkeys and the enrolled SSH keys.

    :param instance: the id of this run of the daemon. Signatures for another one are refused.
    :param login_key: returns the key of a login by the id of its session, or None if it has none. If the login has
        ended or may only read, it raises L{Unauthorized} or L{LoginLapsed}: see L{Operators.require_key}.
    :param ssh_keys: the enrolled SSH keys, or None if there can be none.
    :param needs_signatures: False for tests and for proofs of connectors, where no person decides.
    """

    def __init__(
        self,
        passkeys: Passkeys,
        instance: str,
        login_key: Callable[[str], EnrolledKey | None],
        clock: IReactorTime,
        randomness: Randomness = secrets.token_bytes,
        *,
        ssh_keys: SshKeys | None = None,
        needs_signatures: bool = True,
    ) -> None:
        self._passkeys = passkeys
        self._ssh_keys = ssh_keys
        self._instance = instance
        self._login_key = login_key
        self._clock = clock
        self._nonces = Nonces(clock, randomness)
        self._needs_signatures = needs_signatures
        self._used: dict[str, _Use] = {}

    def passkey_rule(self) -> PasskeyRule:
        return self._passkeys.passkey_rule()

    def ssh_keys(self) -> tuple[EnrolledSshKey, ...]:
        return () if self._ssh_keys is None else self._ssh_keys.list()

    def add_ssh_key(self, name: str, line: str) -> EnrolledSshKey:
        if self._ssh_keys is None:
            raise Conflict("This daemon takes no SSH keys.")
        return self._ssh_keys.add(name, line)

    def remove_ssh_key(self, key_id: str) -> EnrolledSshKey:
        if self._ssh_keys is None:
            raise Conflict("This daemon takes no SSH keys.")
        return self._ssh_keys.remove(key_id)

    def export(self, text: str, decisions: Sequence[Mapping[str, JSON]]) -> str:
        """Return the statement that an SSH key signs below C{text}, within an hour and for this run of the daemon.

        The nonce covers text and decisions, so that neither can be replaced on the way to the person.
        """
        return self.write(self._nonces.make(self._purpose(text, decisions)), decisions)

    def _purpose(self, text: str, decisions: Sequence[Mapping[str, JSON]]) -> str:
        return "export " + digest_of([text, [dict(each) for each in decisions]])

    def ask(self, run_id: str, decision: Decision, wish: NewGrant | None) -> tuple[str, Mapping[str, JSON]]:
        """Create the options with which a passkey signs one decision.

        :return: the nonce of the signed text, and the options for C{navigator.credentials.get}.
        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """
        nonce = self.make_nonce()
        statement = self.write(nonce, [decision_item(run_id, decision, wish)])
        return nonce, self._passkeys.request(hashlib.sha256(statement.encode()).digest())

    def make_nonce(self) -> str:
        """Return a nonce with which a passkey signs decisions within one minute."""
        return self._nonces.make(_DECIDE)

    def offer(self) -> tuple[str, str, Mapping[str, JSON]]:
        """Return WebAuthn request options for a passkey to sign a list of decisions.

        :return: the id of this run of the daemon, a nonce, and options for C{navigator.credentials.get} to which the
            page must add the challenge.
        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """
        options = self._passkeys.request(bytes(_SECRET_BYTES))
        return self._instance, self.make_nonce(), {k: v for k, v in options.items() if k != "challenge"}

    def ask_sign_in(self, sign_in: SignIn) -> tuple[str, Mapping[str, JSON]]:
        """Create the options with which a passkey confirms a browser's login.

        :return: the nonce to send with the answer, and the options for C{navigator.credentials.get}.
        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """
        return self._ask_touch(_SIGN_IN, lambda nonce: self._sign_in_text(nonce, sign_in))

    def check_sign_in(self, sign_in: SignIn, nonce: str, credential: Mapping[str, JSON]) -> str:
        """Verify that a passkey confirmed the login of exactly this browser, and return the passkey's id.

        :raises Forbidden: if the answer is not valid, not fresh, or was used before.
        """
        return self._check_touch(_SIGN_IN, nonce, self._sign_in_text(nonce, sign_in), credential)

    def _sign_in_text(self, nonce: str, sign_in: SignIn) -> str:
        return write_sign_in(self._instance, nonce, sign_in.code, sign_in.public_key)

    def ask_raise(self, lapsed: LapsedLogin) -> tuple[str, Mapping[str, JSON]]:
        """Create the options with which a passkey lets a browser's lapsed login decide again.

        :return: the nonce to send with the answer, and the options for C{navigator.credentials.get}.
        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """
        return self._ask_touch(_RAISE, lambda nonce: self._raise_text(nonce, lapsed))

    def check_raise(self, lapsed: LapsedLogin, nonce: str, credential: Mapping[str, JSON]) -> str:
        """Verify that a passkey lets exactly this login decide again, and return the passkey's id.

        :raises Forbidden: if the answer is not valid, not fresh, or was used before.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use of the passkey cannot be recorded.
        """
        return self._check_touch(_RAISE, nonce, self._raise_text(nonce, lapsed), credential)

    def _raise_text(self, nonce: str, lapsed: LapsedLogin) -> str:
        return write_raise(self._instance, nonce, lapsed.login, lapsed.public_key)

    def _ask_touch(self, purpose: str, write: Callable[[str], str]) -> tuple[str, Mapping[str, JSON]]:
        """Return a nonce for the purpose, and options by which a passkey signs the text that C{write} makes of it.

        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """
        nonce = self._nonces.make(purpose)
        return nonce, self._passkeys.request(hashlib.sha256(write(nonce).encode()).digest())

    def _check_touch(self, purpose: str, nonce: str, text: str, credential: Mapping[str, JSON]) -> str:
        """Verify that a passkey signed C{text}, use up its nonce, and return the passkey's id.

        :raises Forbidden: if the answer is not valid, or the nonce is not fresh, of another purpose, or used.
        :raises Conflict: if passkeys are unavailable.
        """
        # guard of signing: the challenge of a sign-in is ours, and fresh -> vault.test_sign_in.SignInTests.test_stale
        # guard of signing: the challenge of a raise is ours, and fresh -> vault.test_raise.RaiseTests.test_stale
        if not self._nonces.is_fresh(purpose, nonce):
            raise refusal("Your passkey was not asked for this, or longer than a minute ago: try again.")
        challenge = hashlib.sha256(text.encode()).digest()
        # guard of signing: invalid answers displace nothing -> vault.test_sign_in.SignInTests.test_flood
        used = self._passkeys.use(challenge, credential)
        # guard of signing: a touch is used once -> vault.test_raise.RaiseTests.test_replayed
        self._take(challenge.hex(), nonce, purpose)
        return used.id

    def write(self, nonce: str, decisions: Sequence[Mapping[str, JSON]]) -> str:
        """Return the text to sign for this run of the daemon.

        :raises ValueError: if a decision is malformed.
        """
        return write_statement(self._instance, nonce, decisions)

    def admit(self, action: str, run_id: str, decision: Decision, wish: NewGrant | None) -> Decision:
        """Verify the signature of a decision, record that it decided this run, and return the decision with C{signed}.

        A denial needs no signature.

        :raises Forbidden: if the signature is missing, not valid or not fresh, or its key is not enrolled or not of the
            kind that the rule requires. C{details["passkey"]} is true if a passkey must sign, or was refused.
        :raises Unauthorized, LoginLapsed: if the login that signed has ended, or may only read.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use of a passkey cannot be recorded.
        """
        given = decision.assertion
        if given is None:
            self.require(action, decision)
            return decision
        statement = self._read(given.statement)
        item = statement.of(run_id)
        if item is None or not is_decision(item, run_id, decision, wish):
            raise _refuse(given)
        # guard of signing: a decision is for this life of the daemon -> vault.test_approvers.SignatureTests.test_life
        if statement.instance != self._instance:
            raise _refuse(given)
        signed = evolve(decision, signed=self._verify(given, statement, decision.decided_by))
        self.require(action, signed)
        # guard of signing: the nonce of an export is stored for as long as it is fresh
        #    -> vault.test_ssh_keys.ImportTests.test_replayed, instead seconds = _LIST_SECONDS
        seconds = _LIST_SECONDS if given.text is None else EXPORT_SECONDS + _WINDOW_SECONDS
        self._take("" if signed.signed is None else signed.signed.digest, statement.nonce, run_id, seconds)
        return signed

    def require(self, action: str, decision: Decision) -> None:
        """Require that C{decision.signed} has the signature that approving this action needs. A denial needs none.

        :raises Forbidden: if the signature is missing, or is not by a passkey although the rule requires one.
        :raises Unauthorized, LoginLapsed: if it is missing, and the login has ended or may only read.
        """
        signed = decision.signed
        if not decision.approved:
            return
        # guard of signing: what needs a passkey is signed by one -> vault.test_approvers.PasskeyTests.test_needed
        if self.passkey_rule().needs(action) and (signed is None or not signed.verified_person):
            raise refusal(self._passkeys.describe_need())
        # guard of signing: no approval without a signature -> vault.test_approvers.SignatureTests.test_missing
        if signed is None and self._needs_signatures:
            has_key = self._login_key(decision.decided_by) is not None
            raise Forbidden(_UNSIGNED if has_key else _NO_KEY, {"signature": True})

    def find_objection(self, action: str, signed: SignedDecisions) -> str | None:
        """Return why a stored signature approves nothing any more, or None if it still counts.

        Cheap, and safe in any thread.
        """
        removed = self.find_removed_key(signed)
        if removed is not None:
            return f"It was approved with {removed} that was removed since."
        if self.passkey_rule().needs(action) and not signed.verified_person:
            return "Approving it needs a passkey by now."
        return None

    def find_removed_key(self, signed: SignedDecisions) -> str | None:
        """Return words for the key that signed if the key was removed since, or None. Safe in any thread."""
        # guard of signing: a removed passkey approves nothing -> vault.test_approvers.PasskeyTests.test_removed
        if signed.passkey is not None and not self._passkeys.is_registered(signed.passkey):
            return "a passkey"
        # guard of signing: a removed SSH key approves nothing -> vault.test_ssh_keys.ImportTests.test_removed
        if signed.kind is KeyKind.SSH and self._find_ssh_key(signed.public_key) is None:
            return "an SSH key"
        return None

    def _read(self, text: str) -> Statement:
        try:
            return read_statement(text)
        except (ValueError, RecursionError):
            raise Forbidden(_INVALID, {"signature": True}) from None

    def _verify(self, given: Assertion, statement: Statement, decided_by: str) -> SignedDecisions:
        """Verify a signature and return it.

        The nonce must be fresh, unless this signed list has already decided another of its runs.

        :raises Forbidden: if the key is not enrolled, the signature is not valid, or the nonce is not fresh.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use of a passkey cannot be recorded.
        :raises Conflict: if passkeys are unavailable.
        """
        signed = self._sign(given, decided_by)
        now = self._clock.seconds()
        self._used = {nonce: use for nonce, use in self._used.items() if use.until > now}
        known = self._used.get(statement.nonce)
        try:
            signed.verified()
        except (ValueError, RecursionError):
            raise _refuse(given) from None
        if known is not None and known.digest == signed.digest:
            return signed
        if given.text is not None:
            # guard of signing: an export is decided once, as it was made, and in time
            #    -> vault.test_ssh_keys.ImportTests.test_altered_together
            if not self._nonces.is_fresh(self._purpose(given.text, statement.items), statement.nonce, EXPORT_SECONDS):
                raise Forbidden(_NO_EXPORT, {"signature": True})
            return signed
        if given.credential is None:
            if not self._is_now(statement.nonce):
                raise _refuse(given)
            return signed
        if known is not None or not self._nonces.is_fresh(_DECIDE, statement.nonce):
            raise refusal("Your passkey was not asked for this, or longer than a minute ago: try again.")
        challenge = hashlib.sha256(given.statement.encode()).digest()
        self._passkeys.use(challenge, given.credential, elsewhere=True)
        return signed

    def _sign(self, given: Assertion, decided_by: str) -> SignedDecisions:
        if given.text is not None:
            return self._by_ssh_key(given, decided_by)
        return self._login_signature(given, decided_by) if given.credential is None else self._by_passkey(given)

    def _by_ssh_key(self, given: Assertion, decided_by: str) -> SignedDecisions:
        try:
            blob = read_armored(given.signature or "")
            public_key = read_ssh_signature(blob).key.write()
            signed = SignedDecisions(
                KeyKind.SSH, public_key, given.statement, write_base64url(blob), text=given.text or ""
            )
            key = self._find_ssh_key(public_key)
            # guard of signing: only an enrolled SSH key decides -> vault.test_ssh_keys.ImportTests.test_strangers
            if key is None or key.id != decided_by:
                raise Forbidden("The key of this signature is not enrolled. Nothing was decided.", {"signature": True})
            signed.verified()
        except ValueError as error:
            raise Forbidden(f"The signature {error}. Nothing was decided.", {"signature": True}) from None
        return signed

    def find_signer(self, signature: str) -> EnrolledSshKey | None:
        """Return the enrolled SSH key that a signature names, or None. The signature is not verified.

        :param signature: the signature in the text form of C{ssh-keygen}.
        :raises InvalidRequest: if the signature is malformed.
        """
        try:
            return self._find_ssh_key(read_ssh_signature(read_armored(signature)).key.write())
        except ValueError as error:
            raise InvalidRequest.listing("The signature cannot be read.", ("/signature", str(error))) from None

    def _find_ssh_key(self, public_key: str) -> EnrolledSshKey | None:
        return None if self._ssh_keys is None else self._ssh_keys.find(public_key)

    def _login_signature(self, given: Assertion, decided_by: str) -> SignedDecisions:
        key = self._login_key(decided_by)
        if key is None:
            raise Forbidden(_NO_KEY, {"signature": True})
        try:
            raw = read_base64url(given.signature or "")
            signature = write_base64url(der_signature(raw)) if key.kind is KeyKind.BROWSER else write_base64url(raw)
        except ValueError:
            raise _refuse(given) from None
        return SignedDecisions(key.kind, key.public_key, given.statement, signature)

    def _by_passkey(self, given: Assertion) -> SignedDecisions:
        credential = given.credential or {}
        response = credential.get("response")
        told = response if isinstance(response, Mapping) else {}
        texts = [told.get(name) for name in ("signature", "clientDataJSON", "authenticatorData")]
        passkey = str(credential.get("id"))
        key = self._passkeys.key_of(passkey)
        if key is None or not all(isinstance(text, str) for text in texts):
            raise refusal("This passkey does not count here.")
        signature, client, data = map(str, texts)
        return SignedDecisions(key.kind, key.public_key, given.statement, signature, passkey, client, data)

    def _is_now(self, nonce: str) -> bool:
        match = _CHOSEN(nonce)
        # guard of signing: a signature is for half a minute -> vault.test_approvers.SignatureTests.test_late,
        #    instead return True
        return match is not None and abs(self._clock.seconds() - int(match[1]) / 1000) <= _WINDOW_SECONDS

    def _take(self, digest: str, nonce: str, run_id: str, seconds: float = _LIST_SECONDS) -> None:
        """Use a nonce for one run.

        :param digest: the digest of the signature that the nonce came with.
        :param seconds: how long the use is stored.
        :raises Forbidden: if the nonce was used for this run, or with another signature, or too many are stored.
        """
        use = self._used.get(nonce) or _Use(self._clock.seconds() + seconds, digest)
        # guard of signing: a signature decides a run once -> vault.test_approvers.SignatureTests.test_replayed
        if use.digest != digest or run_id in use.runs or len(self._used) >= _MOST_USED:
            raise Forbidden("This signature was used before. Nothing was decided. Try again.", {"signature": True})
        self._used[nonce] = evolve(use, runs=use.runs | {run_id})


_DECIDE, _SIGN_IN, _RAISE = "decide", "sign in", "raise"


def _refuse(given: Assertion) -> Forbidden:
    return (
        refusal("Your passkey signed something else.") if given.credential else Forbidden(_INVALID, {"signature": True})
    )
