"""The transit engine as a key source, and how a command adds one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from zope.interface import implementer

from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.model.errors import Forbidden, InvalidRequest, NetworkError, VaultDamaged
from aileron.model.interfaces.vault import IKeySource
from aileron.model.vault import KeySourceKind

from .client import SECRET_BYTES, TransitClient
from .secret_file import read_secret
from .settings import TransitSettings, read_settings

if TYPE_CHECKING:
    from aileron.vault.keys import DerivedSource

_FAILURES = (Forbidden, InvalidRequest, NetworkError, VaultDamaged)


@implementer(IKeySource)
@frozen
class TransitSource:
    """All transit engines that the vault's file names, asked in turn until one gives the secret.

    :ivar cli: the context of the command.
    """

    cli: CliContext

    def read(self) -> bytes | None:
        from aileron.vault.keys import find_derived_sources

        failed: list[Forbidden | InvalidRequest | NetworkError | VaultDamaged] = []
        for each in find_derived_sources(self.cli.home.secrets, KeySourceKind.TRANSIT):
            try:
                return self._ask(each)
            except _FAILURES as error:
                failed.append(error)
        if failed:
            # An engine that may answer later counts more than one that refused.
            raise next((each for each in failed if isinstance(each, NetworkError)), failed[0])
        return None

    def _ask(self, derived: DerivedSource) -> bytes:
        # guard of signing: a process with the token and the secret is closed to readers
        #    -> features.key_sources.test_transit.SourceTests.test_concealed
        self.cli.conceal()
        try:
            settings = read_settings(derived.source.settings)
        except ValueError:
            raise VaultDamaged("The settings of a transit key source are malformed.") from None
        client = TransitClient(settings, derived.vault, self.cli.post)
        secret = client.decrypt(client.log_in())
        try:
            return derived.private_key(secret)
        except VaultDamaged:
            raise InvalidRequest(
                f"The transit server {settings.server} decrypted the secret of another key source."
            ) from None


def encrypt_secret(
    cli: CliContext, vault: str, settings: TransitSettings, encrypt_token_file: Path | None
) -> tuple[bytes, TransitSettings]:
    """Make a secret, have the engine encrypt it, and decrypt it again as a daemon will.

    :param vault: the ID of the vault.
    :param encrypt_token_file: a file with a token that may encrypt, or None if the daemons' own may.
    :return: the secret, and the settings with its ciphertext.
    :raises CommandError: if the engine cannot be asked or refuses, or decrypts something else.
    """
    cli.conceal()
    secret = cli.randomness(SECRET_BYTES)
    client = TransitClient(settings, vault, cli.post)
    try:
        token = client.log_in() if encrypt_token_file is None else read_secret(encrypt_token_file)
        complete = evolve(settings, ciphertext=client.encrypt(secret, token))
        checking = TransitClient(complete, vault, cli.post)
        found = checking.decrypt(checking.log_in())
    except ValueError:
        raise CommandError("The transit server sent no ciphertext. Nothing was added.") from None
    except (Forbidden, InvalidRequest, NetworkError) as error:
        raise CommandError(f"{error.message} Nothing was added.") from None
    # guard of signing: a source is stored only after it opened what it sealed
    #    -> features.key_sources.test_transit.AddTests.test_proved
    if found != secret:
        raise CommandError("The transit server decrypted something else. Nothing was added.")
    return secret, complete
