"""Passkeys: kept in the vault, asked for by the page, looked at where a decision is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zope.interface import Interface

from aileron.values import JSON, Assertion, Passkey, PasskeyRule


class IPasskeyBook(Interface):
    """The operator's passkeys and the rule, kept where no other program can write them: in the vault, under its key.

    What was verified once is remembered for this life of the daemon, as with L{ITrust}.
    """

    def passkeys() -> tuple[Passkey, ...]:
        """All, oldest first."""

    def passkey_rule() -> PasskeyRule:
        """What may not be approved without one."""

    def keep_passkeys(keys: Sequence[Passkey], rule: PasskeyRule) -> None:
        """Keep both in the place of what was kept, in one write; durable when it returns.

        :raises VaultLocked: the vault is not unlocked.
        :raises BindingFailed: the vault's file is damaged, or another program wrote it.
        :raises StoreUnavailable: the file could not be written; nothing was kept.
        """


class IPasskeys(Interface):
    """What passkeys are asked, and what they answer (WebAuthn, level 3)."""

    def passkeys() -> tuple[Passkey, ...]:
        """See L{IPasskeyBook.passkeys}."""

    def passkey_rule() -> PasskeyRule:
        """See L{IPasskeyBook.passkey_rule}."""

    def offer() -> Mapping[str, JSON]:
        """What a page hands to C{navigator.credentials.create}, good for one answer within a minute.

        :raises Conflict: passkeys cannot be had: they need C{localhost}, and what C{aileron[passkey]} installs.
        """

    def propose(name: str, credential: Mapping[str, JSON]) -> str:
        """Take what the page got for L{offer}; it counts once its words were confirmed in a terminal.

        :return: two words for the page to show, good for two minutes; what was proposed before is void.
        :raises InvalidRequest: it answers no offer, or not as a passkey of this site must.
        :raises Conflict: as of L{offer}; or it counts already.
        """

    def confirm(words: str) -> Passkey:
        """Let what was proposed count, if these are its words; there is one try.

        :raises Conflict: nothing waits.
        :raises Forbidden: these are not the words.
        :raises VaultLocked, BindingFailed, StoreUnavailable: as of L{IPasskeyBook.keep_passkeys}.
        """

    def require(rule: PasskeyRule) -> None:
        """Ask for a passkey by this rule from now on.

        :raises Conflict: there is no passkey that could be asked for; or the present rule asks for more.
        """

    def reset() -> None:
        """Forget every passkey and the rule.  Twice is safe."""

    def ask(about: Mapping[str, JSON]) -> tuple[str, Mapping[str, JSON]]:
        """What a page hands to C{navigator.credentials.get}, for exactly this, once, within a minute.

        :return: the nonce to bring with the answer, and the options.
        :raises Conflict: as of L{offer}, or there is no passkey.
        """

    def check(action: str, about: Mapping[str, JSON], assertion: Assertion | None) -> None:
        """Pass what needs no passkey, and what one was used for: exactly this.

        One that was used is looked at in any case.

        :raises Forbidden: one is needed and was not used, or not for this; C{details["passkey"]} is true.
        :raises VaultLocked, BindingFailed, StoreUnavailable: its use could not be noted.
        """
