"""C{doc/gateway.md}, played: a provider's key is bound, and a token for Prometheus made."""

from __future__ import annotations

import hashlib
import stat

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, PageTestCase, Play

KEY = "sk-canary-2f60d1"


class GatewayTests(PageTestCase):
    """A user with a key of OpenAI's."""

    page = "gateway.md"

    @seldom
    async def test_played(self) -> None:
        """The key is kept without being shown; the digest of the token is that of a file which nobody else can read."""
        await self.furnish()
        self.secrets.append(KEY)
        await self.play(
            Play("aileron credential setup gateway://openai", answers=[LOG_IN, (r"\(not shown\): ", KEY)]),
            Play("(umask 077; openssl rand -hex 32 | tr -d '\\n' > scraper.token)"),
        )
        token = self.home.project / "scraper.token"
        digest = hashlib.sha256(token.read_bytes()).hexdigest()
        await self.play(Play("openssl dgst -sha256 scraper.token", shows=[digest]))
        self.assertEqual((token.stat().st_size, stat.S_IMODE(token.stat().st_mode)), (64, 0o600))
