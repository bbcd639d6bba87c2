"""The text that an approver's key signs for a decision, and its verification without a daemon (ADR 78)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import cast

from attrs import frozen

from aileron.base.converter import Member, differ
from aileron.base.json import JSON, canonical, digest, from_timestamp, loads_strict
from aileron.base.signatures import is_signed, read_base64url, write_base64url

TAG = "aileron.decision.v1"
"""The first member of every signed list of decisions. No other signed text begins with it."""

NAMESPACE = "decision.v1@aileron"
"""The purpose that C{ssh-keygen -Y sign} must name. No signature that was made for something else decides."""

MOST_DECISIONS = 100
"""The most decisions in one signed list."""

_MOST_BYTES = 256 * 1024
_MEMBERS = frozenset(("run", "digest", "verdict", "reason", "not_before", "grant"))
_HASH_BYTES, _VERIFIED, _GET = 32, 0x04, "webauthn.get"


SIGN_IN_TAG = "aileron.signin.v1"
"""The first member of the text by which a passkey lets a browser in."""


RAISE_TAG = "aileron.raise.v1"
"""The first member of the text by which a passkey lets a browser's lapsed login decide again."""


class KeyKind(StrEnum):
    """The kinds of keys that sign the operator's decisions.

    C{BROWSER}: of one browser, registered when it logged in. C{TERMINAL}: of one command that proved the passphrase.
    C{PASSKEY}: of an authenticator that verifies the person at each use. C{SSH}: of OpenSSH, such as a security key,
    used on any machine (ADR 82).
    """

    BROWSER = "browser"
    TERMINAL = "terminal"
    PASSKEY = "passkey"
    SSH = "ssh"


@frozen
class EnrolledKey:
    """A public key whose signatures decide, as L{aileron.base.signatures.write_public_key} writes it.

    That of an SSH key is written as in a C{.pub} file, without its comment.
    """

    kind: KeyKind
    public_key: str


@frozen
class Statement:
    """A signed list of decisions, parsed.

    :ivar instance: the id of the daemon process that the decisions are for.
    :ivar nonce: a text that is used once for each run.
    :ivar items: for each run C{{run, digest, verdict, reason, not_before, grant}}.
    """

    instance: str
    nonce: str
    items: tuple[Mapping[str, JSON], ...]

    def of(self, run_id: str) -> Mapping[str, JSON] | None:
        """Return the decision on a run in the signed list, or None if the list has none."""
        return next((each for each in self.items if each["run"] == run_id), None)


def write_statement(instance: str, nonce: str, decisions: Sequence[Mapping[str, JSON]]) -> str:
    """Return the text that an approver's key signs.

    :raises ValueError: if a decision cannot be written as canonical JSON.
    """
    return canonical([TAG, instance, nonce, {"decisions": list(decisions)}]).decode()


def write_sign_in(instance: str, nonce: str, code: str, public_key: str) -> str:
    """Return the text that a passkey signs to confirm the login of one browser.

    :param code: see L{aileron.model.sessions.SignIn}.
    :param public_key: see L{aileron.model.sessions.SignIn}.
    """
    return canonical([SIGN_IN_TAG, instance, nonce, {"code": code, "key": public_key}]).decode()


def write_raise(instance: str, nonce: str, login: str, public_key: str) -> str:
    """Return the text that a passkey signs to let the lapsed login of one browser decide again.

    :param login: see L{aileron.model.sessions.LapsedLogin}.
    :param public_key: see L{aileron.model.sessions.LapsedLogin}.
    """
    return canonical([RAISE_TAG, instance, nonce, {"key": public_key, "login": login}]).decode()


def read_statement(text: str) -> Statement:
    """Parse a signed text.

    :raises ValueError: if the text is not the canonical form of a list of decisions, or names a run twice.
    """
    encoded = text.encode()
    if len(encoded) > _MOST_BYTES:
        raise ValueError("The list of decisions is too long.")
    value = loads_strict(encoded)
    if not isinstance(value, list) or len(value) != 4 or canonical(value) != encoded:
        raise ValueError("The signed text is not in its canonical form.")
    tag, instance, nonce, told = value
    # guard of signing: only a list of decisions decides -> vault.test_approvers.SignatureTests.test_other_texts
    if tag != TAG:
        raise ValueError("The signed text is no list of decisions.")
    if not isinstance(instance, str) or not isinstance(nonce, str) or not isinstance(told, dict):
        raise ValueError("The signed text is no list of decisions.")
    decisions = _read_decisions(told)
    return Statement(instance, nonce, decisions)


def _read_decisions(told: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], ...]:
    listed = told.get("decisions")
    if set(told) != {"decisions"} or not isinstance(listed, list) or not 0 < len(listed) <= MOST_DECISIONS:
        raise ValueError(f"A signed list has 1 to {MOST_DECISIONS} decisions.")
    if not all(isinstance(each, dict) and set(each) == _MEMBERS for each in listed):
        raise ValueError("A signed decision has missing or unknown members.")
    decisions = tuple(cast("Mapping[str, JSON]", each) for each in listed)
    if len({str(each["run"]) for each in decisions}) != len(decisions):
        raise ValueError("A signed list names a run twice.")
    return decisions


@frozen
class SignedDecisions:
    """A signed list of decisions, with everything that is needed to verify it offline.

    :ivar statement: the signed text, see L{write_statement}.
    :ivar signature: the signature in base64url: ECDSA in DER, RSA or Ed25519. Of an SSH key, the whole C{SSHSIG}.
    :ivar passkey: the id of the passkey, or None for other keys.
    :ivar client_data: C{clientDataJSON} of a passkey's answer in base64url, or None.
    :ivar authenticator_data: C{authenticatorData} of a passkey's answer in base64url, or None.
    :ivar text: the text for people that an SSH key signed before the statement, or None.
    """

    kind: KeyKind
    public_key: str
    statement: str
    signature: str
    passkey: str | None = None
    client_data: str | None = None
    authenticator_data: str | None = None
    text: str | None = None

    @property
    def digest(self) -> str:
        """The digest of all fields, which the vault signs together with a decision."""
        members = (self.kind.value, self.public_key, self.statement, self.signature)
        more = () if self.text is None else (self.text,)
        return digest([*members, self.passkey, self.client_data, self.authenticator_data, *more])

    @property
    def verified_person(self) -> bool:
        """True if the signature proves that an authenticator verified the person, by fingerprint, face or PIN.

        :raises ValueError: if the signature is of an SSH key and not valid.
        """
        return self.kind is KeyKind.PASSKEY or (self.kind is KeyKind.SSH and self._verified_by_ssh())

    def verified(self) -> Statement:
        """Verify the signature and return the signed list. Neither freshness nor enrolment is checked.

        :raises ValueError: if the statement is malformed, or the signature is not valid for C{statement} and
            C{public_key}.
        """
        statement = read_statement(self.statement)
        if self.kind is KeyKind.SSH:
            self._verified_by_ssh()
            return statement
        data = self.statement.encode() if self.kind is not KeyKind.PASSKEY else self._signed_by_passkey()
        if not is_signed(self.public_key, data, read_base64url(self.signature)):
            raise ValueError("The signature is not valid.")
        return statement

    def _verified_by_ssh(self) -> bool:
        """Verify the signature of an SSH key, and return whether a security key verified the person.

        :raises ValueError: if it is not valid for the text, or of another key.
        """
        from aileron.base.sshsig import read_ssh_signature  # commands that sign nothing start without cryptography

        found = read_ssh_signature(read_base64url(self.signature))
        if found.key.write() != self.public_key:
            raise ValueError("The signature is of another key.")
        return found.verify(write_file(self.text or "", self.statement).encode(), NAMESPACE)

    def _signed_by_passkey(self) -> bytes:
        """Return the bytes that the passkey signed, after checking that they cover the statement.

        :raises ValueError: if they do not, the passkey was used in an embedded page, or the person was not verified.
        """
        client, data = read_base64url(self.client_data or ""), read_base64url(self.authenticator_data or "")
        told = json.loads(client)
        if not isinstance(told, dict) or told.get("type") != _GET or is_embedded(told):
            raise ValueError("The passkey's answer is none to a request of ours.")
        # guard of signing: a passkey's answer is for this list -> audit.test_decisions.RecordTests.test_altered
        # guard against attack: what a passkey signed to sign in decides nothing
        #    -> test_passkeys.NeighbourTests.test_sign_in
        if told.get("challenge") != challenge_of(self.statement):
            raise ValueError("The passkey's answer is for something else.")
        # guard of signing: the passkey verified the person -> audit.test_decisions.RecordTests.test_altered
        if len(data) <= _HASH_BYTES or not data[_HASH_BYTES] & _VERIFIED:
            raise ValueError("The passkey did not verify the person.")
        return data + hashlib.sha256(client).digest()


differ(SignedDecisions, text=Member(optional=True))


def write_file(text: str, statement: str) -> str:
    """Return the file that an SSH key signs: the text for people, and the statement as its last line."""
    return f"{text}{statement}\n"


def begins_as_signed(signed: JSON, recorded: JSON) -> bool:
    """Return whether a run starts no earlier than was signed. The time to undo a decision may delay the start.

    :param signed: the signed earliest start, or None for at once.
    :param recorded: the recorded earliest start, or the time of the decision if it may start at once.
    """
    if signed is None:
        return True
    try:
        return recorded is not None and from_timestamp(str(signed).upper()) <= from_timestamp(str(recorded).upper())
    except (ValueError, OverflowError):
        return False


def is_embedded(client_data: Mapping[str, JSON]) -> bool:
    """Return whether a passkey was used in a page that another site had embedded."""
    return client_data.get("crossOrigin", False) is not False or "topOrigin" in client_data


def challenge_of(statement: str) -> str:
    """Return the challenge for a passkey's signature over a text: the SHA-256 of the text in base64url."""
    return write_base64url(hashlib.sha256(statement.encode()).digest())
