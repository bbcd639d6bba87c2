"""The key that makes a row a decision, and what a mark under it turns out to be."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from hashlib import sha256

from attrs import field, frozen

from aileron.values import JSON, Mark, canonical

from ._cipher import DataKey

_ID_BYTES = 8
_MARK_BYTES = _ID_BYTES + sha256().digest_size


@frozen
class ControlKey:
    """One data key's control key.  Nothing of it changes, so any thread may use it.

    :ivar id: tells this key from that of any other data key, and nothing else about it.
    """

    id: bytes
    _secret: bytes = field(repr=False)

    @classmethod
    def of(cls, key: DataKey) -> ControlKey:
        """The control key of C{key}."""
        return cls(sha256(key.subkey("aileron control id v1")).digest()[:_ID_BYTES], key.subkey("aileron control v1"))

    def sign(self, statement: Mapping[str, JSON]) -> bytes:
        """The mark of C{statement}: the key's id, and HMAC-SHA256 over its RFC 8785 form.

        :raises ValueError: the statement has no such form.
        """
        return self.id + hmac.digest(self._secret, canonical(statement), sha256)

    def verify(self, statement: Mapping[str, JSON], mark: bytes | None) -> Mark:
        """What C{mark} under C{statement} is; never raises, whatever a row may hold."""
        if not isinstance(mark, bytes) or len(mark) != _MARK_BYTES:
            return Mark.FALSE
        if not mark.startswith(self.id):
            return Mark.EARLIER
        try:
            return Mark.SOUND if hmac.compare_digest(self.sign(statement), mark) else Mark.FALSE
        except (ValueError, TypeError, RecursionError):
            return Mark.FALSE
