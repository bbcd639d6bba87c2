"""The errors of a vault or a passphrase, as leaves of the one taxonomy."""

from __future__ import annotations

from aileron.errors import BindingFailed, InvalidRequest, Unauthorized, VaultLocked


class WrongPassphrase(Unauthorized):
    """The passphrase does not open this vault (or its wrapped key was altered: nobody can tell the two apart)."""


class WeakPassphrase(InvalidRequest):
    """A new passphrase that would be guessed."""


class NoVault(VaultLocked):
    """There is no vault file."""


class VaultDamaged(BindingFailed):
    """The vault file is not what the holder of its key wrote last.  It is never replaced; a person puts a copy back."""


def damaged(reason: str) -> VaultDamaged:
    """Make the error that says C{reason}, and what a person can do."""
    return VaultDamaged(f"{reason} Put secrets.json back from a copy, or run `aileron vault reset`.")
