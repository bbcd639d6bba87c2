"""The contract of bindings as far as it is about what is sent with them, and about whether they can be used."""

from __future__ import annotations

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.credentials import DEFAULT_KIND
from aileron.model.connectors import Request
from aileron.model.errors import BindingFailed, InvalidRequest, NotFound
from aileron.model.interfaces.vault import IBindings
from aileron.model.vault import Binding, CredentialState, CredentialStatus
from aileron.testing import example_scope, new_binding, opened
from aileron.testing._vault_contract import CANARY, BindingsContract


class AuthorizedContract(BindingsContract):
    """Mix in instead of the shipped contract."""

    def test_replaced(self) -> None:
        """Another secret may be kept in the same binding, of the same revision: what was approved with it holds."""
        bindings = self.make_bindings()
        made, before = self.set_up(bindings, new_binding()), bindings.bindings_generation()
        self.assertEqual(self.successResultOf(self.replacing(bindings, made.name, b"other")), made)
        self.assertEqual(opened(self, bindings.credential(made, example_scope())), b"other")
        self.assertGreater(bindings.bindings_generation(), before)

    def test_not_replaced(self) -> None:
        """What is not there, or no secret of that kind, is not kept."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        self.failureResultOf(self.replacing(bindings, f"{DEFAULT_KIND}/slack/you", b"other"), NotFound)
        self.failureResultOf(self.replacing(bindings, made.name, b"two words"), InvalidRequest)
        self.assertEqual(opened(self, bindings.credential(made, example_scope())), CANARY)

    def replacing(self, bindings: IBindings, name: str, secret: bytes) -> Deferred[Binding]:
        """Replace one's secret."""
        return Deferred.fromCoroutine(bindings.replace(name, secret))

    def test_equal(self) -> None:
        """Two credentials are equal if they are of the same binding, with the same scope."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        credential = bindings.credential(made, example_scope())
        self.assertEqual(credential, bindings.credential(made, example_scope()))
        self.assertNotEqual(credential, bindings.credential(evolve(made, revision=2), example_scope()))
        self.assertNotEqual(credential, bindings.credential(made, evolve(example_scope(), header="X-Key")))

    def test_authorized(self) -> None:
        """What a request is sent with stands where the scope says, and all that is secret in it is named."""
        bindings = self.make_bindings()
        made = self.set_up(bindings, new_binding())
        request = Request("builtin://slack", "post", "write", False, "POST", "https://slack.com/")
        credential = bindings.credential(made, example_scope())
        sent = self.successResultOf(Deferred.fromCoroutine(credential.authorize(request)))
        self.assertEqual(sent.headers, (("Authorization", f"Bearer {CANARY.decode()}"),))
        self.assertEqual((sent.query, sent.secrets), ((), (CANARY.decode(),)))
        self.assertIsNone(self.successResultOf(Deferred.fromCoroutine(credential.make_ready())))
        self.assertFalse(self.successResultOf(Deferred.fromCoroutine(credential.refused(sent))))
        self.assertNotIn("canary", repr(sent))

    def test_other_host(self) -> None:
        """It opens for requests to the hosts and ports that its scope names, and for no other."""
        bindings = self.make_bindings()
        scope = evolve(example_scope(), hosts=("slack.com:443", "files.slack.com:443"))
        made = self.set_up(bindings, evolve(new_binding(), scope=scope))
        for url, opens in (
            ("https://slack.com/", True),
            ("https://files.slack.com/x", True),
            ("https://slack.com:444/", False),
            ("https://evil.invalid/slack.com:443", False),
            ("smtp://slack.com:443", True),
            ("smtp://slack.com:25", False),
            ("smtp://slack.com:443@evil.invalid", False),
            ("file:///bin/slack.com:443", False),
        ):
            request = Request("builtin://slack", "post", "write", False, "POST", url)
            sending = Deferred.fromCoroutine(bindings.credential(made, scope).authorize(request))
            if opens:
                self.assertTrue(self.successResultOf(sending).headers)
            else:
                self.assertNotIn("canary", str(self.failureResultOf(sending, BindingFailed).value))

    def test_state(self) -> None:
        """A key is ready, gone once it is revoked, and of unknown state while the vault is locked."""
        bindings = self.make_bindings()
        made, other = self.set_up(bindings, new_binding()), self.set_up(bindings, new_binding("other"))
        self.assertEqual(bindings.credential_state(made), CredentialState(CredentialStatus.READY))
        self.revoke(bindings, other.name)
        self.assertEqual(bindings.credential_state(other), CredentialState(CredentialStatus.REVOKED))
        self.lock()
        self.assertEqual(bindings.credential_state(made), CredentialState(CredentialStatus.LOCKED))
