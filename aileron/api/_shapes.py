"""The collaborators of the routes that one other room implements: what the routes need of them, and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Protocol

from aileron.values import JSON, ActionFile, Checkpoint, Passkey, PasskeyRule, Verdict


class RecordSigner(Protocol):
    """Signs how far the record came, and verifies it.  Its properties are for showing."""

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the public key, or L{None}: there is none yet."""

    @property
    def latest(self) -> Checkpoint | None:
        """The newest checkpoint, or L{None}."""

    @property
    def head(self) -> tuple[int, str] | None:
        """The sequence and hash of the newest record that this life wrote, or else found when it began."""

    @property
    def tampered(self) -> int:
        """The number of signs of tampering that were put on record in this life."""

    async def tell_locked(self) -> None:
        """Hand the record over to the time in which nothing can be signed; before the vault is locked.  Twice is safe.

        :raises StoreUnavailable: some of it could not be written.
        """

    async def verify(self) -> Verdict:
        """Verify the whole record, slice by slice: others are served meanwhile.

        :raises StoreUnavailable: it cannot be read.
        """

    def export(self, since: datetime | None, until: datetime | None) -> AsyncIterator[bytes]:
        """Export the record of a time as lines of JSON, read as they are taken; in constant memory.

        :raises StoreUnavailable: (while it is taken) it cannot be read.
        """


class ActionFiles(Protocol):
    """Checks, reads and writes the user's action files.  It trusts none of them, and follows no link."""

    def check(self, text: str) -> ActionFile:
        """Judge a text as the file of an action."""

    def read(self, name: str) -> ActionFile | None:
        """Read the file of an action, sound or not; L{None}: there is none.

        :raises NotFound, Forbidden, InvalidRequest: no action can have this name; it is a link; it is too large.
        """

    def write(self, name: str, text: str, before: str | None) -> ActionFile:
        """Write the file of an action; a crash leaves the old one or the new one.

        :param before: the digest of what it replaces; L{None}: nothing, and it must be called as its action.
        :raises Conflict: something else is there; C{details["digest"]} is what.
        :raises InvalidRequest: the text has errors, each listed with its line, or another name.
        :raises NotFound, Forbidden, StoreUnavailable: as of L{read}; or it cannot be written.
        """


class PasskeyRegistry(Protocol):
    """Adds passkeys, forgets them, and makes what an authenticator is asked (WebAuthn, level 3)."""

    def passkeys(self) -> tuple[Passkey, ...]:
        """All, oldest first."""

    def passkey_rule(self) -> PasskeyRule:
        """Return what may not be approved without one."""

    def offer(self) -> Mapping[str, JSON]:
        """Offer what a page hands to C{navigator.credentials.create}, good for one answer within a minute.

        :raises Conflict: passkeys cannot be had: they need C{localhost}, and what C{aileron[passkey]} installs.
        """

    def propose(self, name: str, credential: Mapping[str, JSON]) -> str:
        """Take what the page got for L{offer}; it counts once its words were confirmed in a terminal.

        :return: two words for the page to show, good for two minutes; what was proposed before is void.
        :raises InvalidRequest: it answers no offer, or not as a passkey of this site must.
        :raises Conflict: as of L{offer}; or it counts already.
        """

    def confirm(self, words: str) -> Passkey:
        """Let what was proposed count, if these are its words; there is one try.

        :raises Conflict: no passkey was proposed.
        :raises Forbidden: these are not the words.
        :raises VaultLocked, BindingFailed, StoreUnavailable: as of L{IPasskeyBook.keep_passkeys}.
        """

    def require(self, rule: PasskeyRule) -> None:
        """Ask for a passkey by this rule from now on.

        :raises Conflict: there is no passkey that could be asked for; or the present rule asks for more.
        """

    def reset(self) -> None:
        """Forget every passkey and the rule.  Twice is safe."""

    def ask(self, about: Mapping[str, JSON]) -> tuple[str, Mapping[str, JSON]]:
        """Make what a page hands to C{navigator.credentials.get}, for exactly this, once, within a minute.

        :return: the nonce to bring with the answer, and the options.
        :raises Conflict: as of L{offer}, or there is no passkey.
        """
