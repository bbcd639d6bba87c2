"""A FIDO2 security key in software: it answers CTAP 2.1's commands in CBOR, with real cryptography and no touch sensor.

Its credential IDs contain the credentials, encrypted under the key's seed, as those of keys with little memory do.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from threading import Event
from typing import Any

from attrs import define, field
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from fido2 import cbor
from fido2.cose import ES256, CoseKey
from fido2.ctap import STATUS, CtapDevice, CtapError
from fido2.ctap2.pin import PinProtocol, PinProtocolV1, PinProtocolV2
from fido2.hid import CAPABILITY, CTAPHID
from fido2.webauthn import Aaguid, AttestedCredentialData, AuthenticatorData

ERR = CtapError.ERR
_FLAG = AuthenticatorData.FLAG
_MAKE, _GET, _INFO, _PIN = 1, 2, 4, 6
_PROTOCOLS: Mapping[int, PinProtocol] = {1: PinProtocolV1(), 2: PinProtocolV2()}
_INFOS = (b"CTAP2 HMAC key", b"CTAP2 AES key")  # CTAP 2.1, section 6.5.7
_NONCE_BYTES = 12
_REQUIRED = 3

Finger = Callable[[Event], None]
"""What a person does when the key waits for a touch. It raises L{CtapError} for everything but a touch."""


def touch(_wait: Event) -> None:
    """Touch the key."""


def walk_away(_wait: Event) -> None:
    """Do not touch the key until it gives up."""
    raise CtapError(ERR.USER_ACTION_TIMEOUT)


def wait_for_cancel(wait: Event) -> None:
    """Do not touch the key; the program cancels the wait when its event is set, as the library does over USB."""
    while not wait.is_set():
        pass
    raise CtapError(ERR.KEEPALIVE_CANCEL)


def take_out(_wait: Event) -> None:
    """Take the key out while it waits."""
    raise OSError(19, "No such device")


@define
class SoftwareKey(CtapDevice):
    """A security key.

    :ivar seed: the secret from which all credentials of this key derive.
    :ivar pin: the PIN, or None if none is set.
    :ivar fingerprint: whether a fingerprint is set up.
    :ivar tokens: whether it has the tokens of CTAP 2.1, or those of 2.0.
    :ivar extensions: the extensions that it knows.
    :ivar protocols: the versions of the protocol of PINs that it knows.
    :ivar finger: what the person does at each touch.
    :ivar careless: whether it makes credentials without verifying the person.
    :ivar always: whether it takes no request without verification.
    :ivar busy: whether another program uses it.
    :ivar touches: the number of touches.
    :ivar closed: whether the program closed it.
    """

    seed: bytes = field(factory=lambda: secrets.token_bytes(32))
    pin: str | None = None
    fingerprint: bool = False
    tokens: bool = True
    extensions: tuple[str, ...] = ("credProtect", "hmac-secret")
    protocols: tuple[int, ...] = (2, 1)
    finger: Finger = touch
    careless: bool = False
    always: bool = False
    busy: bool = False
    touches: int = 0
    tries: int = 8
    wrong: int = 0
    closed: bool = False
    _agreement: ec.EllipticCurvePrivateKey = field(factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    _token: bytes = field(factory=lambda: secrets.token_bytes(32))
    _permissions: int = 0

    @property
    def capabilities(self) -> int:
        return int(CAPABILITY.CBOR)

    @classmethod
    def list_devices(cls) -> Iterator[CtapDevice]:
        return iter(())

    def close(self) -> None:
        self.closed = True

    def call(
        self,
        cmd: int,
        data: bytes = b"",
        event: Event | None = None,
        on_keepalive: Callable[[STATUS], None] | None = None,
    ) -> bytes:
        assert cmd == CTAPHID.CBOR
        event = event or Event()
        while self.busy:  # as the library waits over USB, which says so with an error of its own
            if event.wait(0):
                raise CtapError(ERR.CHANNEL_BUSY)
        given: Any = cbor.decode(data[1:]) if len(data) > 1 else {}
        answers = {_INFO: self._info, _PIN: self._client_pin, _MAKE: self._make, _GET: self._get}
        try:
            answer = answers[data[0]](given, event)
        except CtapError as error:
            return bytes([int(error.code)])
        return b"\0" + (cbor.encode(answer) if answer else b"")

    def _info(self, _given: Any, _wait: Event) -> Mapping[int, Any]:
        options = {"rk": True, "up": True, "clientPin": self.pin is not None, "alwaysUv": self.always}
        options |= {"uv": True} if self.fingerprint else {}
        options |= {"pinUvAuthToken": True} if self.tokens else {}
        info = {1: ["FIDO_2_0", "FIDO_2_1"], 2: list(self.extensions), 3: bytes(16), 4: options, 5: 1200}
        return {**info, 6: list(self.protocols)} if self.protocols else info

    def _client_pin(self, given: Any, wait: Event) -> Mapping[int, Any]:
        protocol = _PROTOCOLS[given[1]]
        if given[2] == 1:
            return {3: self.tries}
        if given[2] == 2:
            return {1: _point(self._agreement)}
        shared = self._shared(protocol, given[3])
        if given[2] == 6:
            self._touch(wait)
        else:
            self._check_pin(protocol.decrypt(shared, given[6]))
        self._permissions = given.get(9, 3)
        return {2: protocol.encrypt(shared, self._token)}

    def _check_pin(self, hash_: bytes) -> None:
        if self.pin is None:
            raise CtapError(ERR.PIN_NOT_SET)
        if self.wrong >= 3:
            raise CtapError(ERR.PIN_AUTH_BLOCKED)
        if hash_ != sha256(self.pin.encode()).digest()[:16]:
            self.tries -= 1
            self.wrong += 1
            self._agreement = ec.generate_private_key(ec.SECP256R1())
            raise CtapError(ERR.PIN_AUTH_BLOCKED if self.wrong >= 3 else ERR.PIN_INVALID)
        self.tries, self.wrong = 8, 0

    def _verified(self, given: Any, names: tuple[int, int, int], permission: int) -> bool:
        """Check the token or the option of a request, and return whether the person is verified."""
        hash_, proof, version = (given.get(name) for name in names)
        if proof is not None:
            if not hmac.compare_digest(_PROTOCOLS[version].authenticate(self._token, hash_), proof):
                raise CtapError(ERR.PIN_AUTH_INVALID)
            if not self._permissions & permission:
                raise CtapError(ERR.PIN_AUTH_INVALID)
            return True
        return bool(self.fingerprint and (given.get(7 if permission == 1 else 5) or {}).get("uv"))

    def _make(self, given: Any, wait: Event) -> Mapping[int, Any]:
        verified = self._verified(given, (1, 8, 9), 1)
        if not verified and not self.careless and (self.pin is not None or self.fingerprint):
            raise CtapError(ERR.PUAT_REQUIRED)
        rp = given[2]["id"]
        if any(self._open(rp, each["id"]) for each in given.get(5, ())):
            self._touch(wait)
            raise CtapError(ERR.CREDENTIAL_EXCLUDED)
        self._touch(wait)
        known = {name: value for name, value in given.get(6, {}).items() if name in self.extensions}
        protection = known.get("credProtect", 1)
        private, nonce = secrets.token_bytes(31), secrets.token_bytes(_NONCE_BYTES)
        id_ = nonce + AESGCM(self.seed).encrypt(nonce, bytes([protection]) + private, rp.encode())
        public = _public(private)
        data = AuthenticatorData.create(
            sha256(rp.encode()).digest(),
            _FLAG(_FLAG.UP | _FLAG.AT | _FLAG.ED | _FLAG.UV * (verified and not self.careless)),
            0,
            AttestedCredentialData.create(Aaguid(bytes(16)), id_, public),
            known,
        )
        self._permissions = 0
        return {1: "none", 2: bytes(data), 3: {}}

    def _get(self, given: Any, wait: Event) -> Mapping[int, Any]:
        verified = self._verified(given, (2, 6, 7), 2)
        if self.always and not verified:
            raise CtapError(ERR.PUAT_REQUIRED)
        rp = given[1]
        opened = ((each["id"], self._open(rp, each["id"])) for each in given[3])
        found = [(id_, content[1:]) for id_, content in opened if content and (verified or content[0] < _REQUIRED)]
        if not found:
            raise CtapError(ERR.NO_CREDENTIALS)
        ((id_, private), *_) = found
        present = (given.get(5) or {}).get("up", True)
        if present:
            self._touch(wait)
            self._permissions = 0
        known: dict[str, bytes] = {}
        if present and "hmac-secret" in given.get(4, {}):
            known["hmac-secret"] = self._secret(given[4]["hmac-secret"], private, verified=verified)
        flags = _FLAG.UP * present | _FLAG.UV * verified | _FLAG.ED * bool(known)
        data = AuthenticatorData.create(sha256(rp.encode()).digest(), _FLAG(flags), 0, b"", known or None)
        signature = _signing(private).sign(bytes(data) + given[2], ec.ECDSA(SHA256()))
        return {1: {"id": id_, "type": "public-key"}, 2: bytes(data), 3: signature}

    def _secret(self, given: Any, private: bytes, *, verified: bool) -> bytes:
        protocol = _PROTOCOLS[given.get(4, 1)]
        shared = self._shared(protocol, given[1])
        if not hmac.compare_digest(protocol.authenticate(shared, given[2]), given[3]):
            raise CtapError(ERR.PIN_AUTH_INVALID)
        # Two random keys for each credential: one for requests with verification, and one for those without.
        random = sha256(private + bytes([verified])).digest()
        return protocol.encrypt(shared, hmac.digest(random, protocol.decrypt(shared, given[2]), sha256))

    def _open(self, rp: str, id_: bytes) -> bytes | None:
        try:
            return AESGCM(self.seed).decrypt(id_[:_NONCE_BYTES], id_[_NONCE_BYTES:], rp.encode())
        except (InvalidTag, ValueError):
            return None

    def _shared(self, protocol: PinProtocol, theirs: Any) -> bytes:
        numbers = ec.EllipticCurvePublicNumbers(
            int.from_bytes(theirs[-2], "big"), int.from_bytes(theirs[-3], "big"), ec.SECP256R1()
        )
        agreed = self._agreement.exchange(ec.ECDH(), numbers.public_key())
        if protocol.VERSION == 1:
            return sha256(agreed).digest()
        return b"".join(HKDF(SHA256(), 32, bytes(32), info).derive(agreed) for info in _INFOS)

    def _touch(self, wait: Event) -> None:
        self.finger(wait)
        self.touches += 1


def _point(key: ec.EllipticCurvePrivateKey) -> Mapping[int, Any]:
    numbers = key.public_key().public_numbers()
    return {1: 2, 3: -25, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}


def _public(private: bytes) -> CoseKey:
    numbers = _signing(private).public_key().public_numbers()
    return ES256({1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})


def _signing(private: bytes) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(private, "big"), ec.SECP256R1())
