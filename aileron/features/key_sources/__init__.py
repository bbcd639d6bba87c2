"""Key sources unlock the vault without a passphrase: security keys, systemd credentials, transit (ADR 83, 90, 111).

None is set up until the operator adds one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command

if TYPE_CHECKING:
    from aileron.features.core import Core
    from aileron.model.interfaces.vault import IKeySource


class KeySources(Feature):
    """The feature with the commands that add and remove sources of the vault's key, such as security keys."""

    name = "key_sources"
    summary = "Lets a security key, a credential of systemd, or a transit key of HashiCorp Vault unlock the vault."

    def commands(self) -> Mapping[str, Command]:
        return {"vault key-source": Command("aileron.features.key_sources.commands:key_source")}

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "vault.key_source_added": EventName("Key source of the vault added", "setup"),
            "vault.key_source_removed": EventName("Key source of the vault removed", "setup"),
        }

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)

    def key_sources(self, cli: Any) -> Sequence[IKeySource]:
        from .security_key import SecurityKeySource

        return (SecurityKeySource(cli),)

    def unattended_key_sources(self, cli: Any) -> Sequence[IKeySource]:
        from .transit.source import TransitSource

        return (TransitSource(cli),)

    async def start(self, core: Core) -> RunningFeature:
        from .routes import RunningKeySources

        return RunningKeySources(core.vault.key_sources)


FEATURE = KeySources()
