"""Private keys for SSH: one that logs in at a server, and is neither sent nor placed in a request."""

from __future__ import annotations

import re
from typing import ClassVar

from aileron.errors import BindingFailed
from aileron.values import Authorization, Request

from ._keys import MAX_KEPT_BYTES
from ._kind import CredentialKind, CredentialUse

_ARMOR = re.compile(r"-----[A-Z ]+-----|\s")
_ENTERED = "must be a private key in OpenSSH's format, entered from its file with --secret-fd"


class SshKey(CredentialKind):
    """A key of OpenSSH's format, Ed25519 or ECDSA, without a passphrase of its own: the vault encrypts it."""

    name: ClassVar[str] = "ssh_key"
    header: ClassVar[str] = ""
    format: ClassVar[str] = "{key}"
    placed: ClassVar[bool] = False

    def check(self, kept: bytes) -> None:
        """Refuse what nobody could log in with."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_ssh_private_key

        if len(kept) > MAX_KEPT_BYTES or not kept.isascii():
            raise ValueError(_ENTERED)
        try:
            key = load_ssh_private_key(kept, None)
        except TypeError:
            raise ValueError("must have no passphrase of its own; to remove it, run: ssh-keygen -p -f FILE") from None
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError(_ENTERED) from None
        if not isinstance(key, Ed25519PrivateKey | EllipticCurvePrivateKey):
            raise ValueError("must be Ed25519 or ECDSA; to make such a key, run: ssh-keygen -t ed25519")

    async def reveal(self, use: CredentialUse) -> bytes:
        """Reveal nothing: the key is for no header."""
        raise BindingFailed("This credential logs in over SSH, and is never sent itself.")

    async def make_ready(self, use: CredentialUse) -> None:
        """Find it ready: it logs in at any time."""

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return the key as it is kept, and what its lines make together."""
        text = kept.decode("ascii")
        return text, _ARMOR.sub("", text)

    async def authorize(self, use: CredentialUse, request: Request) -> Authorization:
        """Hand out the key, for the connection that C{request} is made on."""
        return Authorization(private_key=use.kept.decode("ascii"), secrets=self.secrets(use.kept))
