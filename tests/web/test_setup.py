"""What the daemon may do and by what: actions, connectors, grants, settings."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.base.load_error import LoadError
from aileron.base.text import visible
from aileron.model.actions import Cap, Input
from aileron.model.audit import Actor
from aileron.model.authority import NewGrant, OwnCap, Passkey, PasskeyRule, Predicate, PredicateKind
from aileron.model.runs import Decision
from aileron.model.vault import VaultState
from aileron.testing import SoftwareAuthenticator, scripted_offer
from tests.api.case import NOW
from tests.web.case import ADDRESS, WebCase, notifying, read

HOSTILE = "<b onclick=x>\u202e</b>"
VISIBLE = visible("\u202e")
OPERATOR = Actor("human", "operator-1")


class ActionPagesTests(WebCase):
    """C{/actions} and C{/actions/…}."""

    def test_list(self) -> None:
        """Each action says whether it asks, and has a switch for what it is not; what did not load says where."""
        self.runner.offer(
            scripted_offer(), scripted_offer("off", enabled=False), load_errors=[LoadError("x", HOSTILE, "bad.md", 3)]
        )
        text = self.fragment("/actions").text
        acts = {each["data-act"]: each["data-body"] for _, each in read(text).tags if "data-act" in each}
        self.assertEqual(
            acts,
            {"PATCH /v1/actions/ship-update": '{"enabled": false}', "PATCH /v1/actions/off": '{"enabled": true}'},
        )
        for part in ("bad.md", VISIBLE, "Required"):
            self.assertIn(part, text)

    def test_one(self) -> None:
        """One action is shown as the model reads it, with its schema and its last runs."""
        run = self.ask()
        text = self.fragment("/actions/ship-update").text
        for part in ("ship_update", "JSON Schema", f'href="/approvals/{run.id}"', "Tool description"):
            self.assertIn(part, text)
        self.assertNotIn("may ask you for", text)
        self.assertEqual(self.fragment("/actions/none").status, 404)

    def test_asks(self) -> None:
        """What the agent may leave to the person is named, in order."""
        offer = scripted_offer()
        inputs = (Input("a", "string", "A", ask=True), Input("b", "string", "B"), Input("c", "boolean", "C", ask=True))
        self.runner.offer(evolve(offer, action=evolve(offer.action, inputs=inputs)))
        self.assertIn("may ask you for: a, c.", read(self.fragment("/actions/ship-update").text).text)


class GrantPageTests(WebCase):
    """C{/grants}."""

    def test_nothing(self) -> None:
        """Without any it says so."""
        text = self.fragment("/grants").text
        self.assertIn("No active grants", text)
        self.assertIn("No limits set", text)

    def test_standing(self) -> None:
        """A grant is told in words and can be revoked; limits can be set and removed."""
        run = self.ask(HOSTILE)
        digest = self.successResultOf(Deferred.fromCoroutine(self.runner.approval(run.id))).digest
        wish = NewGrant((Predicate("text", PredicateKind.PATTERN, HOSTILE),), 5, utc(NOW) + timedelta(hours=1), False)
        decision = Decision(True, digest, "operator-1")
        _, grant = self.successResultOf(Deferred.fromCoroutine(self.runner.approve_and_grant(run.id, decision, wish)))
        cap = OwnCap(Cap(3, 3600.0), utc(NOW), "operator-1", "ship-update")
        self.successResultOf(Deferred.fromCoroutine(self.runner.set_caps([cap], OPERATOR)))
        text = self.fragment("/grants").text
        for part in (f'data-act="DELETE /v1/grants/{grant.id}"', VISIBLE, "5 of 5", "All sessions", "3 per hour"):
            self.assertIn(part, text)
        self.assertIn("DELETE /v1/caps", text)
        self.assertIn('name="per_hour"', text)


class SettingsPageTests(WebCase):
    """C{/settings}."""

    def test_shown(self) -> None:
        """Version, vault, record and logins; one's own login cannot be ended here by mistake."""
        other = self.operators.log_in()[1]
        text = self.fragment("/settings").text
        for part in (
            "1.2.3",
            VaultState.UNLOCKED.value.capitalize(),
            f"DELETE /v1/operator/sessions/{other.id}",
            "POST /v1/vault/lock",
        ):
            self.assertIn(part, text)
        self.assertEqual(text.count('data-act="DELETE /v1/operator/sessions/'), len(self.operators.list()) - 1)
        self.assertIn("No channels configured", text)

    def test_parts(self) -> None:
        """What changes with each record is a part of its own, so that the script leaves the buttons as they are."""
        _, _, after = self.fragment("/settings").text.partition('<div data-part="record">')
        part, _, rest = after.partition("</dl></div>")
        self.assertIn("Signed by", part)
        self.assertNotIn("<button", part)
        self.assertIn('data-part="Logins"', rest)

    def test_channels(self) -> None:
        """Channels are shown with how they do, and can be tried."""
        self.build(features=notifying(HOSTILE))
        text = self.fragment("/settings").text
        self.assertIn("POST /v1/notifications/test", text)
        self.assertIn(VISIBLE, text)


class PasskeysPageTests(WebCase):
    """What it shows."""

    def text(self) -> str:
        """The page's text."""
        heard = self.fragment("/settings/passkeys")
        self.assertEqual(heard.status, 200)
        return read(heard.text).text

    def test_listed(self) -> None:
        """Each is listed by its name, made visible, with what needs one; where there is none it says so."""
        self.assertIn("No passkeys yet", self.text())
        self.assertIn('<p class="back"><a href="/settings">', self.fragment("/settings/passkeys").text)
        self.assertIn("No approval requires a passkey.", self.text())
        passkeys = self.deps.passkeys
        made = SoftwareAuthenticator(ADDRESS).create(passkeys.offer())
        passkeys.confirm(passkeys.propose("<b>My\u202e key", made))
        passkeys.require(PasskeyRule(False, ("post", "mail-*")))
        shown = self.text()
        self.assertIn("<b>My\\u202e key", shown)
        self.assertIn("Approvals of these actions require a passkey: post, mail-*.", shown)
        self.assertNotIn("No passkeys yet", shown)
        passkeys.require(PasskeyRule(everything=True))
        self.assertIn("Every approval requires a passkey.", self.text())

    def test_of_another_address(self) -> None:
        """One that was made for another address of the pages says that it cannot be used at this one."""
        own = Passkey("AAAA", "Mine", b"key", utc(NOW))
        self.passkey_book.keep_passkeys(
            (own, evolve(own, id="BBBB", name="Old", site="aileron.localhost")), PasskeyRule()
        )
        text = " ".join(self.text().split())
        self.assertIn("Old", text)
        self.assertEqual(text.count("cannot be used here"), 1)
        self.assertIn("cannot be used here, since it was made for aileron.localhost", text)
