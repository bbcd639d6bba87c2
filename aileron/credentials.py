"""The kinds of credential: what may be kept of one, and how what is sent follows from what is kept.

A kind is one class here and its place in L{KINDS}; connectors' files, the vault, the daemon's API and the commands read
from there which kinds there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

MAX_KEPT_BYTES = 8192
"""Most that is kept of one credential."""


class CredentialKind(Protocol):
    """One kind of credential.  What is kept of it is its state, which the vault seals and nobody else sees."""

    @property
    def name(self) -> str:
        """The kind's name: in the vault, in connectors' files and at the beginning of a binding's name."""

    def check(self, kept: bytes) -> None:
        """Refuse what cannot be kept.

        :raises ValueError: and why, without repeating it.
        """

    async def present(self, kept: bytes, keep: Callable[[bytes], None]) -> bytes:
        """Make what is sent of what is kept, now.

        It is asked for one thing at a time for each binding, so that a kind that renews does so once.

        :param keep: has something else kept from now on, durably: before it is relied upon.
        :return: what stands for C{{key}} in a header's value.
        :raises BindingFailed: nothing can be sent with it any more.
        """


class ApiKey:
    """A key that a service gave out once, and that is sent as it is."""

    name = "api_key"

    def check(self, kept: bytes) -> None:
        """Refuse what could not be one header's value."""
        if not 1 <= len(kept) <= MAX_KEPT_BYTES:
            raise ValueError(f"must have 1 to {MAX_KEPT_BYTES} bytes")
        if not all(0x21 <= byte <= 0x7E for byte in kept):
            raise ValueError("must be visible ASCII without spaces")

    async def present(self, kept: bytes, keep: Callable[[bytes], None]) -> bytes:
        """Return the key as it is kept."""
        return kept


DEFAULT_KIND = ApiKey.name
"""What a credential is where nobody says of what kind."""

KINDS: Mapping[str, CredentialKind] = {kind.name: kind for kind in (ApiKey(),)}
"""Every kind, by its name."""
