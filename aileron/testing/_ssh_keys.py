"""SSH keys in memory, and a signer that works as C{ssh-keygen -Y sign} does, also with a security key."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from attrs import define, field
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from zope.interface import implementer

from aileron.model.authority import EnrolledSshKey
from aileron.model.interfaces.authority import ISshKeyBook

from ._vault import MemoryVault

_LENGTH_BYTES = 4
_PRESENT, _VERIFIED = 0x01, 0x04


@implementer(ISshKeyBook)
class MemorySshKeyBook:
    """An L{ISshKeyBook} in memory.

    :param vault: the vault whose state applies, by default an unlocked one.
    """

    def __init__(self, vault: MemoryVault | None = None) -> None:
        self._vault = MemoryVault() if vault is None else vault
        self._keys: tuple[EnrolledSshKey, ...] = ()

    def ssh_keys(self) -> tuple[EnrolledSshKey, ...]:
        return self._keys

    def keep_ssh_keys(self, keys: Sequence[EnrolledSshKey]) -> None:
        self._vault.check()
        self._keys = tuple(keys)


@define
class SoftwareSshKey:
    """An OpenSSH key for tests that signs in this process, without C{ssh-keygen}.

    :ivar application: the application of a security key, or empty for a plain key.
    :ivar touches: whether the person touches the security key.
    :ivar verifies: whether the security key verifies the person.
    :ivar hash: the hash of the signed text.
    """

    key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey = field(
        factory=ed25519.Ed25519PrivateKey.generate, repr=False
    )
    application: str = ""
    touches: bool = True
    verifies: bool = True
    hash: str = "sha512"

    @property
    def kind(self) -> str:
        """The name of the key's type, such as C{ssh-ed25519}."""
        plain = "ssh-ed25519" if isinstance(self.key, ed25519.Ed25519PrivateKey) else "ecdsa-sha2-nistp256"
        return f"sk-{plain}@openssh.com" if self.application else plain

    @property
    def blob(self) -> bytes:
        """The public key in OpenSSH's binary format."""
        public = self.key.public_key()
        if isinstance(public, ed25519.Ed25519PublicKey):
            parts = [public.public_bytes(Encoding.Raw, PublicFormat.Raw)]
        else:
            parts = [b"nistp256", public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)]
        more = [self.application.encode()] if self.application else []
        return _strings(self.kind.encode(), *parts, *more)

    @property
    def public_key(self) -> str:
        """The line of its C{.pub} file, without a comment."""
        return f"{self.kind} {base64.b64encode(self.blob).decode()}"

    def sign(self, text: str, namespace: str) -> str:
        """Return a signature in the form that C{ssh-keygen -Y sign -n namespace} writes."""
        hashed = hashlib.new(self.hash, text.encode()).digest()
        head = namespace.encode(), b"", self.hash.encode()
        signature = self._sign(b"SSHSIG" + _strings(*head, hashed))
        whole = b"SSHSIG" + (1).to_bytes(_LENGTH_BYTES, "big") + _strings(self.blob, *head, signature)
        body = base64.encodebytes(whole).decode()
        return f"-----BEGIN SSH SIGNATURE-----\n{body}-----END SSH SIGNATURE-----\n"

    def _sign(self, data: bytes) -> bytes:
        tail = b""
        if self.application:
            flags = (_PRESENT if self.touches else 0) | (_VERIFIED if self.verifies else 0)
            tail = bytes([flags]) + (7).to_bytes(_LENGTH_BYTES, "big")
            data = hashlib.sha256(self.application.encode()).digest() + tail + hashlib.sha256(data).digest()
        if isinstance(self.key, ed25519.Ed25519PrivateKey):
            raw = self.key.sign(data)
        else:
            numbers = decode_dss_signature(self.key.sign(data, ec.ECDSA(SHA256())))
            raw = _strings(*(each.to_bytes(each.bit_length() // 8 + 1, "big") for each in numbers))
        return _strings(self.kind.encode(), raw) + tail


def _strings(*parts: bytes) -> bytes:
    return b"".join(len(each).to_bytes(_LENGTH_BYTES, "big") + each for each in parts)
