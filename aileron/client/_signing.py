"""The login of a command: its token, and the key with which the command signs decisions."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from aileron.base.json import JSON

_SEED_BYTES, _NONCE_BYTES = 32, 16


@frozen
class TerminalKey:
    """An Ed25519 key that one command makes and keeps in memory. The daemon learns its public key at the login.

    :ivar instance: the id of the daemon process that the signatures are for.
    :ivar seed: the private key.
    """

    instance: str
    seed: bytes = field(repr=False)

    @classmethod
    def make(cls, instance: str, randomness: Callable[[int], bytes] = secrets.token_bytes) -> TerminalKey:
        """Return a new key. Its signatures are valid for the daemon process with the id C{instance} only."""
        return cls(instance, randomness(_SEED_BYTES))

    def write(self) -> str:
        """Return the key as text, for a pipe to another process of ours."""
        return f"{self.instance} {self.seed.hex()}"

    @property
    def public_key(self) -> str:
        """The public key as text, in the form in which a login sends it to the daemon."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        from aileron.base.signatures import write_public_key

        return write_public_key(Ed25519PrivateKey.from_private_bytes(self.seed).public_key())

    def sign(self, decisions: Sequence[Mapping[str, JSON]], seconds: float) -> dict[str, JSON]:
        """Return the C{signed} of a request: the text of the decisions and its signature.

        :param seconds: the present time.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        from aileron.base.signatures import write_base64url
        from aileron.model.signing import write_statement

        nonce = f"{round(seconds * 1000)}.{write_base64url(secrets.token_bytes(_NONCE_BYTES))}"
        statement = write_statement(self.instance, nonce, decisions)
        signature = Ed25519PrivateKey.from_private_bytes(self.seed).sign(statement.encode())
        return {"statement": statement, "signature": write_base64url(signature)}


@frozen
class OperatorLogin:
    """A login of the operator.

    :ivar key: the key that signs its decisions, or None if the daemon, of an earlier version, takes no key.
    """

    token: str = field(repr=False)
    key: TerminalKey | None = None

    def write(self) -> str:
        """Return the login as one line, for a pipe to another process of ours."""
        return self.token if self.key is None else f"{self.token} {self.key.write()}"

    @classmethod
    def read(cls, line: str) -> OperatorLogin:
        """Parse a line written by L{write}.

        :raises ValueError: the line is malformed. The message repeats none of it.
        """
        token, *more = line.split(" ")
        try:
            return cls(token, TerminalKey(more[0], bytes.fromhex(more[1])) if more else None)
        except (ValueError, IndexError):
            raise ValueError("a login is malformed") from None


def item_of(approval_id: str, decision: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a decision in the form in which it is a member of a signed list.

    :param decision: the body of the request that sends the decision.
    """
    return {
        "run": approval_id,
        "digest": decision["digest"],
        "verdict": ("forced" if decision.get("forced") else "approved") if decision["approved"] is True else "denied",
        "reason": decision.get("reason"),
        "not_before": decision.get("not_before"),
        "grant": decision.get("grant"),
    }
