"""C{doc/oidc.md}, played: the client secret is stored, and the provider shown."""

from __future__ import annotations

from tests.extent import seldom
from tests.features.oidc.issuer import SECRET
from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.oidc_provider import OidcProvider
from tests.functional.phoned import NAME, config
from tests.functional.ports import free_port


class OidcTests(PageTestCase):
    """A daemon with a public name and a provider."""

    page = "oidc.md"

    @seldom
    async def test_played(self) -> None:
        """The secret is asked for, and the provider is shown with the address to register there."""
        provider = OidcProvider.listen(self.reactor)
        self.finally_(provider.stop)
        issuer = provider.issuer.url
        await self.furnish(config() + provider.config())
        await self.play(
            Play(
                "aileron oidc secret",
                answers=[LOG_IN, (f"Client secret for {issuer}.*: ", SECRET)],
                shows=["The client secret is stored."],
            ),
            Play(
                "aileron oidc show",
                shows=[issuer, f"https://{NAME}:{free_port()}/signin/oidc/return", "in the vault"],
            ),
        )
