"""Talks to a FIDO2 security key: makes a credential, and has the key compute its secret (CTAP 2.1, C{hmac-secret})."""

from __future__ import annotations

import logging
import secrets
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from threading import Event
from typing import Any
from unicodedata import normalize

from fido2.ctap import STATUS, CtapDevice, CtapError
from fido2.ctap2.base import Ctap2
from fido2.ctap2.pin import ClientPin
from fido2.hid import ConnectionFailure

from aileron.model.vault import SecurityKey

from .devices import LimitedWait, SecurityKeyError

RP_ID = "aileron:vault"
"""The relying party of our credentials. It is no domain name, so no web page can use them (WebAuthn, section 5.1.3)."""

BUSY_SECONDS = 5.0

_EXTENSION, _PROTECTION = "hmac-secret", "credProtect"
_VERIFICATION_REQUIRED = 3  # CTAP 2.1, section 12.1
_ES256 = {"type": "public-key", "alg": -7}  # every authenticator has it
_HASH_BYTES, _SECRET_BYTES, _USER_BYTES = 32, 32, 32
_ERR = CtapError.ERR
_ABSENT = (_ERR.NO_CREDENTIALS, _ERR.INVALID_CREDENTIAL)

_LATE = "The security key was not touched in time. Try again."
_REASONS: Mapping[int, str] = {
    _ERR.KEEPALIVE_CANCEL: _LATE,
    _ERR.USER_ACTION_TIMEOUT: _LATE,
    _ERR.ACTION_TIMEOUT: _LATE,
    _ERR.TIMEOUT: _LATE,
    _ERR.OPERATION_DENIED: "The request was declined on the security key.",
    _ERR.CHANNEL_BUSY: "Another program is using the security key. Try again when it has finished.",
    _ERR.CREDENTIAL_EXCLUDED: "This security key unlocks the vault already.",
    _ERR.NO_CREDENTIALS: "This security key is not one that unlocks the vault, or it was reset.",
    _ERR.PIN_INVALID: "The PIN of the security key is wrong.",
    _ERR.PIN_AUTH_BLOCKED: "Too many wrong PINs in a row. Take the security key out, plug it in, and try again.",
    _ERR.PIN_BLOCKED: "The security key is locked after too many wrong PINs. Only a reset, which deletes its "
    "credentials, unlocks it.",
    _ERR.PIN_NOT_SET: "The PIN of the security key was removed. Set one, and add the key again.",
    _ERR.PUAT_REQUIRED: "The security key asks for its PIN each time now. Remove it as a key source, and add it again.",
    _ERR.PIN_POLICY_VIOLATION: "The security key asks for a new PIN. Change its PIN, and try again.",
    _ERR.UV_INVALID: "The security key did not recognise you. Try again.",
    _ERR.UV_BLOCKED: "The security key does not take fingerprints until its PIN was used. Use the PIN elsewhere first.",
}

# The library logs what it sends and receives. Nothing of it may reach a log.
logging.getLogger("fido2").addHandler(logging.NullHandler())
logging.getLogger("fido2").propagate = False


class UserVerification(Enum):
    """The ways in which a security key verifies the person.

    C{NONE}: neither a PIN nor a fingerprint is set up.  C{PIN}: this process sends the PIN.  C{BUILT_IN}: the key reads
    a fingerprint and returns a token.  C{OPTION}: it reads a fingerprint as part of each request, as in CTAP 2.0.
    """

    NONE = "none"
    PIN = "pin"
    BUILT_IN = "built_in"
    OPTION = "option"


class _Impatient(CtapDevice):
    """A security key whose calls end after a while, even if another program uses the security key."""

    def __init__(self, device: CtapDevice, seconds: Callable[[], float]) -> None:
        self._device, self._seconds = device, seconds

    @property
    def capabilities(self) -> int:
        return self._device.capabilities

    def call(
        self,
        cmd: int,
        data: bytes = b"",
        event: Event | None = None,
        on_keepalive: Callable[[STATUS], None] | None = None,
    ) -> bytes:
        return self._device.call(cmd, data, event or LimitedWait(self._seconds, BUSY_SECONDS), on_keepalive)

    @classmethod
    def list_devices(cls) -> Iterator[CtapDevice]:
        return iter(())


class Authenticator:
    """A security key that is plugged in. Its methods block until the key answers.

    A wait for a touch ends early when the event that the method gets is set. If another program uses the security key,
    methods that need no touch raise after L{BUSY_SECONDS}.

    :param seconds: a clock.
    :raises SecurityKeyError: if it has no C{hmac-secret}, or does not answer.
    """

    def __init__(self, device: CtapDevice, seconds: Callable[[], float] = time.monotonic) -> None:
        with _explained():
            try:
                self._ctap = Ctap2(_Impatient(device, seconds))
                self._pin = ClientPin(self._ctap)
                self._protocol = self._pin.protocol
            except ValueError:  # a key of U2F alone, or one without any protocol for shared secrets
                raise SecurityKeyError(_NO_SECRETS) from None
        if _EXTENSION not in self._ctap.info.extensions:
            raise SecurityKeyError(_NO_SECRETS)

    @property
    def verification(self) -> UserVerification:
        """The way in which the security key verifies the person."""
        options = self._ctap.info.options
        if options.get("uv"):
            return UserVerification.BUILT_IN if options.get("pinUvAuthToken") else UserVerification.OPTION
        return UserVerification.PIN if options.get("clientPin") else UserVerification.NONE

    def token_by_pin(self, pin: str, *, making: bool) -> bytes | None:
        """Return a token that proves the PIN to the security key, for one touch, or None if the PIN is wrong.

        :param making: whether the token is for L{make}. Otherwise it is for L{holds} and L{compute}.
        :raises SecurityKeyError: if the security key takes no PIN now, or does not answer.
        """
        with _explained():
            try:
                return self._pin.get_pin_token(normalize("NFC", pin), _permission(making), RP_ID)
            except CtapError as error:
                if error.code == _ERR.PIN_INVALID:
                    return None
                raise

    def token_by_fingerprint(self, wait: Event, *, making: bool) -> bytes:
        """Return a token after the security key has verified the person by itself. For C{making} see L{token_by_pin}.

        :raises SecurityKeyError: if it did not recognise the person in time.
        """
        with _explained():
            return self._pin.get_uv_token(_permission(making), RP_ID, wait)

    def pin_tries(self) -> int:
        """Return how many wrong PINs the security key still takes before it locks itself.

        :raises SecurityKeyError: if it does not answer.
        """
        with _explained():
            return self._pin.get_pin_retries()[0]

    def holds(self, security_key: SecurityKey, token: bytes | None) -> bool:
        """Return whether the credential is on this security key. Needs no touch.

        :raises SecurityKeyError: if the security key does not answer.
        """
        with _explained():
            try:
                self._assert(security_key, token, None, {"up": False}, None)
            except CtapError as error:
                if error.code in _ABSENT:
                    return False
                raise
        return True

    def make(self, known: Iterable[SecurityKey], salt: bytes, token: bytes | None, wait: Event) -> SecurityKey:
        """Make a credential, which needs a touch.

        :param known: the credentials that the security key must not have yet.
        :param salt: the salt of the new credential, 32 bytes.
        :raises SecurityKeyError: if the security key has one of C{known}, makes no credential that computes secrets, or
            was not touched in time.
        """
        verified = self.verification is not UserVerification.NONE
        hash_ = secrets.token_bytes(_HASH_BYTES)
        extensions: dict[str, Any] = {_EXTENSION: True}
        # A key without tokens finds a protected credential only by a touch: L{holds} would not find it.
        has_tokens = self.verification in (UserVerification.PIN, UserVerification.BUILT_IN)
        if has_tokens and _PROTECTION in self._ctap.info.extensions:
            # guard of signing: a program without the PIN has no use of the credential
            #    -> features.key_sources.test_authenticator.MakingTests.test_protected
            extensions[_PROTECTION] = _VERIFICATION_REQUIRED
        with _explained():
            made = self._ctap.make_credential(
                hash_,
                {"id": RP_ID, "name": "Aileron"},
                {"id": secrets.token_bytes(_USER_BYTES), "name": "vault", "displayName": "Aileron vault"},
                [_ES256],
                [_describe(each) for each in known] or None,
                extensions,
                {"uv": True} if self.verification is UserVerification.OPTION else None,
                None if token is None else self._protocol.authenticate(token, hash_),
                None if token is None else self._protocol.VERSION,
                event=wait,
            )
            data = made.auth_data
            if data.credential_data is None or not (data.extensions or {}).get(_EXTENSION):
                raise SecurityKeyError(_NO_SECRETS)
            # guard of signing: a key that claims a PIN is enrolled only if it asked for it
            #    -> features.key_sources.test_authenticator.MakingTests.test_careless
            if verified and not data.is_user_verified():
                raise SecurityKeyError("The security key did not verify you, although it has a PIN or a fingerprint.")
            return SecurityKey(bytes(data.credential_data.credential_id), salt, verified)

    def compute(self, security_key: SecurityKey, token: bytes | None, wait: Event) -> bytes:
        """Return the secret of a credential, 32 bytes. The security key computes it after a touch.

        :raises SecurityKeyError: if the credential is not on this security key, it was not touched in time, or its
            answer is malformed.
        """
        with _explained():
            protocol = self._protocol
            answer = self._ctap.client_pin(protocol.VERSION, ClientPin.CMD.GET_KEY_AGREEMENT)
            agreement, shared = protocol.encapsulate(answer[ClientPin.RESULT.KEY_AGREEMENT])
            salt = protocol.encrypt(shared, security_key.salt)
            given = {1: agreement, 2: salt, 3: protocol.authenticate(shared, salt), 4: protocol.VERSION}
            verifies = security_key.verified and self.verification is UserVerification.OPTION
            options = {"uv": True} if verifies else None
            data = self._assert(security_key, token, {_EXTENSION: given}, options, wait).auth_data
            secret = protocol.decrypt(shared, (data.extensions or {})[_EXTENSION])
            if len(secret) != _SECRET_BYTES:
                raise ValueError("its secret has another length")
            return secret

    def _assert(
        self,
        security_key: SecurityKey,
        token: bytes | None,
        extensions: Mapping[str, Any] | None,
        options: Mapping[str, bool] | None,
        wait: Event | None,
    ) -> Any:
        hash_ = secrets.token_bytes(_HASH_BYTES)
        return self._ctap.get_assertion(
            RP_ID,
            hash_,
            [_describe(security_key)],
            extensions,
            options,
            None if token is None else self._protocol.authenticate(token, hash_),
            None if token is None else self._protocol.VERSION,
            event=wait,
        )


_NO_SECRETS = "This security key cannot unlock a vault: it has no hmac-secret. Use a FIDO2 key that has it."


def _permission(making: bool) -> ClientPin.PERMISSION:
    return ClientPin.PERMISSION.MAKE_CREDENTIAL if making else ClientPin.PERMISSION.GET_ASSERTION


def _describe(security_key: SecurityKey) -> Mapping[str, Any]:
    return {"type": "public-key", "id": security_key.credential_id}


@contextmanager
def _explained() -> Iterator[None]:
    """Replace the library's errors within the context by L{SecurityKeyError}.

    Its messages repeat nothing that was sent.
    """
    try:
        yield
    except CtapError as error:
        name = getattr(error.code, "name", "unknown")
        generic = f"The security key refused: CTAP error {int(error.code):#04x} ({name})."
        raise SecurityKeyError(_REASONS.get(int(error.code), generic)) from None
    except OSError as error:
        raise SecurityKeyError(
            f"The security key was taken out, or cannot be read: {error.strerror}. Plug it in, and try again."
        ) from None
    except (ValueError, TypeError, LookupError, struct.error, ConnectionFailure):
        raise SecurityKeyError("The security key gave an answer that no FIDO2 key gives. Try again.") from None
