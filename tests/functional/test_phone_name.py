"""The inbox on a phone: paired by a code and two words, signed in and approved by passkey, over real TLS."""

import socket
import ssl
from typing import Any

from twisted.internet.defer import Deferred

from tests.functional.operated import kinds
from tests.functional.phoned import NAME, PhonedTestCase
from tests.functional.ports import LOOPBACK, free_port


class PhoneNameTests(PhonedTestCase):
    """A user, a terminal and a phone."""

    def setUp(self) -> Any:
        """Start it."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def test_whole(self) -> None:
        """Pair, sign in, deny, approve, and lose it: the removed phone is out at once, its open page too."""
        page, authenticator = await self.tab()
        await self.pair(page)
        await self.keep(page, "phone-paired")
        await page.tap("#done a")
        await page.shows("Use the passkey")
        await self.keep(page, "phone-sign-in")
        await page.tap("#go:not(:disabled)")
        await page.shows("No pending approvals.")
        await self.keep(page, "phone-inbox")

        denied = await self.ask("To deny")
        await self.verify(page, authenticator, False)
        await page.open(f"{self.public}/approvals/{denied}")
        await self.ready(page)
        await self.keep(page, "phone-request")
        await page.tap("#deny:not(:disabled)")
        await self.stands(page, "denied")

        approved = await self.ask("To approve")
        await page.open(f"{self.public}/approvals/{approved}")
        await self.ready(page)
        await page.tap("#approve:not(:disabled)")
        await page.shows("Your passkey was not used. Nothing was decided.")
        self.assertEqual((await self.outcome(approved))[0], "pending_approval")
        await self.verify(page, authenticator, True)
        await page.tap("#approve:not(:disabled)")
        await self.stands(page, "completed")
        verdict = await self.command("audit", "verify")
        self.assertEqual(verdict.exit_code, 0, verdict.stdout)

        await page.open(f"{self.public}/approvals")
        await page.until("document.querySelector('#main > [data-title]') !== null")
        await self.operator("phone", "remove", "Mine")
        await page.shows("Sign in with your passkey")
        await self.keep(page, "phone-removed")
        await page.open(f"{self.public}/signin")
        await page.tap("#go:not(:disabled)")
        await page.shows("not paired here")
        self.assertEqual((await self.told("phone", "list"))["items"], [])
        told = kinds(await self.audit())
        for kind in (
            "phone.pairing_begun",
            "phone.pairing_opened",
            "operator.passkey_added",
            "operator.passkey_removed",
        ):
            self.assertIn(kind, told)
        expected = ("401", "403", "404")
        self.assertEqual([each for each in page.problems if not any(code in each for code in expected)], [])

    async def test_tls(self) -> None:
        """The authority vouches for the name alone; TLS 1.2 at least; a locked vault closes the listener."""
        self.presented()
        self.assertRaises(ssl.SSLError, self.presented, "other.example.org")
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with socket.create_connection((LOOPBACK, free_port()), 10) as plain:
            self.assertRaises(OSError, old.wrap_socket, plain, server_hostname=NAME)
        await self.command("vault", "lock")
        self.assertRaises(OSError, self.presented)
