"""The provider confirms who is signed in."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.credentials import TokenAnswer, TokenRequest
from aileron.features.oidc._confirmations import MOST_SECONDS
from aileron.model.queries import AuditQuery

from .case import OidcCase


class SilentTests(OidcCase):
    """Nothing is heard of the provider."""

    def test_ends(self) -> None:
        """A confirmation ends after the configured time, and does not begin again by itself."""
        self.signed_in()
        account = self.only_account().id
        self.clock.advance(899)
        self.assertTrue(self.confirmations.is_confirmed(account))
        self.clock.advance(1)
        self.assertFalse(self.confirmations.is_confirmed(account))
        self.renew()
        self.clock.rightNow -= 900
        self.assertFalse(self.confirmations.is_confirmed(account))

    def test_set_back(self) -> None:
        """A clock that is set back does not make it longer; a second back does not end it."""
        self.signed_in()
        account = self.only_account().id
        self.clock.rightNow -= 1
        self.assertTrue(self.confirmations.is_confirmed(account))
        self.clock.rightNow -= 3600
        self.assertFalse(self.confirmations.is_confirmed(account))

    def test_longest(self) -> None:
        """After twelve hours the person signs in again, whatever the provider confirms."""
        page = self.signed_in()
        while self.clock.seconds() < self.started + MOST_SECONDS - 200:
            self.clock.advance(200)
            self.renew()
        self.assertEqual(self.looks(page), 200)
        self.clock.advance(200)
        self.renew()
        self.assertEqual(self.looks(page), 401)

    def setUp(self) -> None:
        super().setUp()
        self.started = self.clock.seconds()

    def test_tried_again(self) -> None:
        """A provider that was down is asked again, and the confirmation counts from the answer on."""
        self.signed_in()
        account = self.only_account().id
        self.clock.advance(300)
        self.issuer.is_down = True
        self.renew()
        self.renew()
        self.issuer.is_down = False
        self.clock.advance(300)
        self.renew()
        self.clock.advance(850)
        self.assertTrue(self.confirmations.is_confirmed(account))


class ChangedTests(OidcCase):
    """The provider says something else than before."""

    def test_role(self) -> None:
        """Another role, or none, ends the login. The next sign-in gives the new role."""
        for groups, now in ((["boss"], "administrator"), ([], None)):
            page = self.signed_in()
            self.issuer.person["groups"] = groups
            self.clock.advance(300)
            self.renew()
            self.assertEqual(self.looks(page), 401)
            [record, *_] = self.now(self.store.audit.list(AuditQuery(types=("oidc.withdrawn",)))).items
            self.assertEqual(record.event.payload["now"], now)
            self.issuer.person["groups"] = ["ops"]

    def test_other_person(self) -> None:
        """A token about somebody else ends the login."""
        page = self.signed_in()
        self.issuer.claims = {"sub": "u-2"}
        self.clock.advance(300)
        self.renew()
        self.assertEqual(self.looks(page), 401)

    def test_signed_in_meanwhile(self) -> None:
        """A refusal that arrives after a new sign-in does not end the new login."""
        self.signed_in()
        held, through = Deferred[None](), self.issuer.exchange

        async def slow(asked: TokenRequest) -> TokenAnswer:
            await held
            return TokenAnswer(400, b'{"error": "invalid_grant"}')

        self.clock.advance(300)
        self.provider._exchange = slow
        asked = Deferred.fromCoroutine(self.confirmations.renew({self.only_account().id}))
        self.provider._exchange = through
        page = self.signed_in()
        held.callback(None)
        self.successResultOf(asked)
        self.assertEqual(self.looks(page), 200)
        self.assertNotIn("oidc.withdrawn", self.events())

    def test_logged_out(self) -> None:
        """Nobody is asked about who has logged out, and the refresh token is forgotten."""
        page = self.signed_in()
        account = self.only_account().id
        self.assertEqual(self.send("POST", "/v1/operator/logout", {}, page).status, 200)
        self.clock.advance(300)
        self.renew()
        self.assertEqual(len(self.issuer.forms), 1)
        self.assertFalse(self.confirmations.is_confirmed(account))

    def test_not_due(self) -> None:
        """The provider is asked three times while a confirmation lasts."""
        self.signed_in()
        for _ in range(30):
            self.clock.advance(30)
            self.renew()
        self.assertEqual(len(self.issuer.forms), 1 + 3)
