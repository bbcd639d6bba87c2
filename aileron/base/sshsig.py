"""OpenSSH public keys and the signatures that C{ssh-keygen -Y sign} makes with them (C{PROTOCOL.sshsig}).

Of OpenSSH's kinds of key, Ed25519, ECDSA, and both kinds of security key (C{PROTOCOL.u2f}) are supported.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping

from attrs import field, frozen
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm

HASH = "sha512"
"""The only accepted hash of the signed text: C{ssh-keygen} uses it unless told otherwise."""

_MAGIC, _VERSION = b"SSHSIG", 1
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_LENGTH_BYTES, _MAX_ARMORED, _MAX_KEY_LINE = 4, 16 * 1024, 16 * 1024
_PRESENT, _VERIFIED = 0x01, 0x04
_ED25519, _ECDSA = "ssh-ed25519", "ecdsa-sha2-"
_SK_ED25519, _SK_ECDSA = "sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"
_CURVES: Mapping[str, tuple[type[ec.EllipticCurve], Callable[[], HashAlgorithm]]] = {
    "nistp256": (ec.SECP256R1, SHA256),
    "nistp384": (ec.SECP384R1, SHA384),
    "nistp521": (ec.SECP521R1, SHA512),
}


class _FieldReader:
    """Reads the fields of OpenSSH's binary format (RFC 4251, section 5)."""

    def __init__(self, data: bytes) -> None:
        self._left = data

    def take(self, count: int) -> bytes:
        """Return the next C{count} bytes of the text that is being read.

        :raises ValueError: there are fewer.
        """
        if count > len(self._left):
            raise ValueError("is cut short")
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(_LENGTH_BYTES), "big")

    def string(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.string().decode("ascii")

    def end(self) -> None:
        """Check that everything was read.

        :raises ValueError: if bytes are left.
        """
        if self._left:
            raise ValueError("has surplus bytes")


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


@frozen
class SshPublicKey:
    """An OpenSSH public key.

    :ivar kind: the name of the kind, such as C{ssh-ed25519}.
    :ivar blob: the whole key in OpenSSH's binary format.
    :ivar application: the application of a security key, or an empty text.
    """

    kind: str
    blob: bytes = field(repr=False)
    key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey = field(eq=False, repr=False)
    application: str = ""

    @property
    def is_hardware(self) -> bool:
        """True for a security key, whose private key cannot be copied."""
        return self.kind in (_SK_ED25519, _SK_ECDSA)

    @property
    def fingerprint(self) -> str:
        """The key's fingerprint, in the form that C{ssh-keygen -l} prints."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).rstrip(b"=").decode("ascii")

    def hash_application(self) -> bytes:
        """Return the hash of the application, with which the data that a security key signs begins."""
        return hashlib.sha256(self.application.encode()).digest()

    def write(self) -> str:
        """Return the kind and the key in base64, as in a C{.pub} file without its comment."""
        return f"{self.kind} {base64.b64encode(self.blob).decode('ascii')}"


def read_ssh_key(line: str) -> tuple[SshPublicKey, str]:
    """Parse a line of a C{.pub} file and return the key and its comment, which may be empty.

    :raises ValueError: if the line is no public key, or one of another kind. The message completes a sentence that
        begins with "the key".
    """
    parts = line.split(None, 2)
    if len(line) > _MAX_KEY_LINE or len(parts) < 2:
        raise ValueError("is not an OpenSSH public key")
    try:
        key = _read_blob(base64.b64decode(parts[1], validate=True))
    except binascii.Error:
        raise ValueError("is not an OpenSSH public key") from None
    if key.kind != parts[0]:
        raise ValueError("is not an OpenSSH public key")
    return key, parts[2].strip() if len(parts) > 2 else ""


def _read_blob(blob: bytes) -> SshPublicKey:
    reader = _FieldReader(blob)
    kind = reader.text()
    key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey
    if kind in (_ED25519, _SK_ED25519):
        key = ed25519.Ed25519PublicKey.from_public_bytes(reader.string())
    elif kind == _SK_ECDSA or (kind.startswith(_ECDSA) and kind.removeprefix(_ECDSA) in _CURVES):
        curve = reader.text()
        if curve != (kind.removeprefix(_ECDSA) if kind.startswith(_ECDSA) else "nistp256"):
            raise ValueError("names another curve than its kind")
        key = ec.EllipticCurvePublicKey.from_encoded_point(_CURVES[curve][0](), reader.string())
    else:
        raise ValueError("is of a kind that is not supported: use Ed25519, ECDSA or a security key")
    application = reader.text() if kind in (_SK_ED25519, _SK_ECDSA) else ""
    reader.end()
    return SshPublicKey(kind, blob, key, application)


@frozen
class SshSignature:
    """A signature by C{ssh-keygen -Y sign}, parsed and not yet verified.

    :ivar key: the key that is said to have signed.
    :ivar namespace: the purpose that was named when signing (option C{-n}).
    :ivar hash: the name of the hash of the signed text.
    """

    key: SshPublicKey
    namespace: str
    reserved: bytes
    hash: str
    signature: bytes = field(repr=False)

    def verify(self, data: bytes, namespace: str) -> bool:
        """Verify the signature over C{data}.

        :return: whether the security key checked who touched it, such as by a PIN or a fingerprint.
        :raises ValueError: if the signature is invalid, for another namespace, or made without a touch of the security
            key. The message completes a sentence that begins with "the signature".
        """
        # guard of signing: a signature for another purpose decides nothing
        #    -> base.test_sshsig.SignatureTests.test_namespace
        if self.namespace != namespace:
            raise ValueError(f"was not made for this purpose: sign with -n {namespace}")
        # guard of signing: one hash, which no signer chooses -> base.test_sshsig.SignatureTests.test_hash
        if self.hash != HASH:
            raise ValueError(f"uses another hash than {HASH}: sign without -O hashalg")
        parts = namespace.encode(), self.reserved, HASH.encode(), hashlib.sha512(data).digest()
        signed, reader = _MAGIC + b"".join(map(_string, parts)), _FieldReader(self.signature)
        if reader.text() != self.key.kind:
            raise ValueError("is of another kind than its key")
        raw, flags = reader.string(), 0
        if self.key.is_hardware:
            given = reader.take(1 + _LENGTH_BYTES)
            flags = given[0]
            # guard of signing: a security key was touched -> base.test_sshsig.SecurityKeyTests.test_untouched
            if not flags & _PRESENT:
                raise ValueError("was made without a touch of the security key")
            signed = self.key.hash_application() + given + hashlib.sha256(signed).digest()
        reader.end()
        try:
            self._check(raw, signed)
        except InvalidSignature:
            raise ValueError("is not valid for this text") from None
        return self.key.is_hardware and bool(flags & _VERIFIED)

    def _check(self, raw: bytes, signed: bytes) -> None:
        key = self.key.key
        if isinstance(key, ed25519.Ed25519PublicKey):
            key.verify(raw, signed)
            return
        reader = _FieldReader(raw)
        first, second = (int.from_bytes(reader.string(), "big") for _ in range(2))
        reader.end()
        hashes = next(make for curve, make in _CURVES.values() if isinstance(key.curve, curve))
        key.verify(encode_dss_signature(first, second), signed, ec.ECDSA(hashes()))


def read_ssh_signature(blob: bytes) -> SshSignature:
    """Parse a signature in its binary form.

    :raises ValueError: if it is malformed. The message completes a sentence that begins with "the signature".
    """
    reader = _FieldReader(blob)
    if reader.take(len(_MAGIC)) != _MAGIC or reader.number() != _VERSION:
        raise ValueError("is not a signature by ssh-keygen -Y sign")
    key, namespace = _read_blob(reader.string()), reader.text()
    found = SshSignature(key, namespace, reader.string(), reader.text(), reader.string())
    reader.end()
    return found


def read_armored(text: str) -> bytes:
    """Return the binary form of a signature in the text form of C{ssh-keygen}.

    :raises ValueError: if the text has another form. The message completes a sentence that begins with "the signature".
    """
    lines = text.split()
    joined = " ".join(lines)
    if len(text) > _MAX_ARMORED or not (joined.startswith(f"{_BEGIN} ") and joined.endswith(f" {_END}")):
        raise ValueError("is not a signature by ssh-keygen -Y sign")
    inner = joined.removeprefix(_BEGIN).removesuffix(_END)
    try:
        return base64.b64decode("".join(inner.split()), validate=True)
    except binascii.Error:
        raise ValueError("is not a signature by ssh-keygen -Y sign") from None
