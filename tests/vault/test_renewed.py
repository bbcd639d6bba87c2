"""OAuth 2 in the vault: renewed once for all, kept before it is used, and a person told when that ends."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import timestamp, utc
from aileron.credentials import TokenAnswer, TokenRequest
from aileron.model.connectors import Request
from aileron.model.errors import BindingFailed, CredentialNeedsYou, NetworkError, StoreUnavailable, VaultLocked
from aileron.model.vault import Authorization, Binding, CredentialState, CredentialStatus
from aileron.testing import example_scope, new_binding
from aileron.vault import Renewals, Vault

from .case import OpenCase

REQUEST = Request("builtin://slack", "post", "write", False, "POST", "https://slack.com/")


def document(**more: Any) -> bytes:
    """What is kept of a credential whose token has to be obtained."""
    members = {"grant": "authorization_code", "client_id": "c", "token_url": "https://login.example/token", **more}
    return json.dumps({"refresh_token": "canary-refresh-1", **members}).encode()


class RenewedTests(OpenCase):
    """A vault whose token endpoint is in the test's hand."""

    def setUp(self) -> None:
        super().setUp()
        self.asked: list[tuple[TokenRequest, Deferred[TokenAnswer]]] = []
        self.told: list[tuple[str, str]] = []
        self.vault = self.with_endpoint()
        self.made = self.set_up(evolve(new_binding(secret=document()), kind="oauth2"))

    def with_endpoint(self) -> Vault:
        """The vault of another life."""
        renewals = Renewals(self._exchange, lambda binding, reason: self.told.append((binding.name, reason)))
        return Vault(self.path, self.clock, lambda: True, self.key(), renewals)

    async def _exchange(self, asked: TokenRequest) -> TokenAnswer:
        answer: Deferred[TokenAnswer] = Deferred()
        self.asked.append((asked, answer))
        return await answer

    def start(self) -> Deferred[Authorization]:
        """Begin to use it."""
        return Deferred.fromCoroutine(self.vault.credential(self.made, example_scope()).authorize(REQUEST))

    def gives(self, token: str, refresh: str, status: int = 200, **more: Any) -> None:
        """The endpoint answers what it was asked last."""
        given = {"access_token": token, "refresh_token": refresh, **more}
        self.asked[-1][1].callback(TokenAnswer(status, json.dumps(given).encode()))

    def sent(self, started: Deferred[Authorization]) -> str:
        """The header that is sent."""
        ((_, value),) = self.successResultOf(started).headers
        return value

    def test_once_for_all(self) -> None:
        """Many that use it at once have it renewed once."""
        started = [self.start() for _ in range(5)]
        self.assertEqual(len(self.asked), 1)
        self.gives("canary-1", "canary-refresh-2", expires_in=3600)
        self.assertEqual({self.sent(each) for each in started}, {"Bearer canary-1"})
        self.assertEqual(len(self.asked), 1)

    def test_in_another_life(self) -> None:
        """A rotated refresh token is what the next life renews with."""
        started = self.start()
        self.gives("canary-1", "canary-refresh-2", expires_in=60)
        self.sent(started)
        self.vault = self.with_endpoint()
        self.start()
        self.assertIn(b"canary-refresh-2", self.asked[-1][0].body)

    def test_given_up(self) -> None:
        """Who gives up waiting does not lose what the endpoint gives."""
        started = self.start()
        started.addErrback(lambda _: None)
        started.cancel()
        self.gives("canary-1", "canary-refresh-2", expires_in=3600)
        self.assertEqual((self.sent(self.start()), len(self.asked)), ("Bearer canary-1", 1))

    def test_limited(self) -> None:
        """A credential that was not given all that its connector asks for is ready, and it is said what is missing."""
        scope = evolve(example_scope(), settings={"scopes": "read write"})
        given = document(access_token="canary-1", scopes=["read"])
        new = evolve(new_binding("other", secret=given), kind="oauth2", scope=scope)
        token_url = json.loads(given)["token_url"]
        limited = CredentialState(CredentialStatus.READY, reason="It was not given: write.", token_url=token_url)
        self.assertEqual(self.vault.credential_state(self.set_up(new)), limited)

    def test_at_rest(self) -> None:
        """Who ends the daemon waits for what is being renewed, and for nothing else."""
        self.successResultOf(Deferred.fromCoroutine(self.vault.at_rest()))
        started = self.start()
        resting = Deferred.fromCoroutine(self.vault.at_rest())
        self.assertNoResult(resting)
        self.gives("canary-1", "canary-refresh-2", expires_in=3600)
        self.successResultOf(resting)
        self.sent(started)

    def test_not_written(self) -> None:
        """What cannot be kept is not used."""
        started = self.start()
        self.break_disk()
        self.gives("canary-1", "canary-refresh-2")
        failure = self.failureResultOf(started)
        self.assertTrue(failure.check(StoreUnavailable))

    def test_locked_meanwhile(self) -> None:
        """Nor is what comes after the vault was locked."""
        started = self.start()
        self.vault.lock()
        self.gives("canary-1", "canary-refresh-2")
        self.failureResultOf(started, VaultLocked)

    def test_needs_you(self) -> None:
        """When the server will renew it no more, that is told once, shown, and survives; another secret ends it."""
        for _ in range(2):
            started = self.start()
            if self.asked:
                self.gives("x", "y", 400, error="invalid_grant")
                self.asked.clear()
            failure = self.failureResultOf(started, CredentialNeedsYou).value
            assert isinstance(failure, CredentialNeedsYou)
            self.assertEqual(failure.kind, BindingFailed.kind)
        reason = "The authorization server refused to renew it (invalid_grant)."
        self.assertEqual(self.told, [(self.made.name, reason)])
        again = self.with_endpoint()
        state = again.credential_state(self.made)
        self.assertEqual((state.status, state.reason), (CredentialStatus.NEEDS_YOU, reason))
        replaced = Deferred.fromCoroutine(again.replace(self.made.name, document(access_token="canary-new")))
        self.assertEqual(self.successResultOf(replaced), self.made)
        self.assertIs(again.credential_state(self.made).status, CredentialStatus.READY)

    def test_transient(self) -> None:
        """A failure that may pass tells nobody, and leaves what is kept as it is."""
        before = self.path.read_bytes()
        started = self.start()
        self.gives("x", "y", 503)
        self.failureResultOf(started, NetworkError)
        self.assertEqual((self.path.read_bytes(), self.told), (before, []))

    def test_refused(self) -> None:
        """A refusal is noted durably; where it cannot be, the request is as it was."""
        started = self.start()
        self.gives("canary-1", "canary-refresh-2")
        sent = self.successResultOf(started)
        self.clock.advance(61)
        credential = self.vault.credential(self.made, example_scope())
        self.assertTrue(self.successResultOf(Deferred.fromCoroutine(credential.refused(sent))))
        self.vault = self.with_endpoint()
        started = self.start()
        self.assertEqual(len(self.asked), 2)
        self.vault.lock()
        self.gives("canary-3", "canary-refresh-3")
        self.failureResultOf(started, VaultLocked)
        gone = self.vault.credential(self.made, example_scope())
        self.assertFalse(self.successResultOf(Deferred.fromCoroutine(gone.refused(sent))))

    def test_refused_for_good(self) -> None:
        """A refused token that nothing renews needs a person: told once, shown, and sent no more, in any life."""
        kept = json.loads(document(access_token="canary-1"))
        del kept["refresh_token"]
        self.made = self.set_up(evolve(new_binding("other", json.dumps(kept).encode()), kind="oauth2"))
        self.assertIs(self.vault.credential_state(self.made).status, CredentialStatus.READY)
        sent, credential = self.successResultOf(self.start()), self.vault.credential(self.made, example_scope())
        for _ in range(2):
            self.assertFalse(self.successResultOf(Deferred.fromCoroutine(credential.refused(sent))))
        self.vault = self.with_endpoint()
        state = self.vault.credential_state(self.made)
        self.assertIs(state.status, CredentialStatus.NEEDS_YOU)
        self.assertEqual(self.told, [(self.made.name, state.reason)])
        self.failureResultOf(self.start(), CredentialNeedsYou)
        self.assertEqual(self.asked, [])

    def test_refused_once(self) -> None:
        """A token that nothing renews goes on being used while it may be one operation alone that was refused."""
        kept = json.loads(document(access_token="canary-1"))
        del kept["refresh_token"]
        self.made = self.set_up(evolve(new_binding("other", json.dumps(kept).encode()), kind="oauth2"))
        sent, credential = self.successResultOf(self.start()), self.vault.credential(self.made, example_scope())
        for operation, status in (("read", CredentialStatus.READY), ("list", CredentialStatus.NEEDS_YOU)):
            refused = Deferred.fromCoroutine(credential.refused(sent, operation=operation))
            self.assertFalse(self.successResultOf(refused))
            self.assertIs(self.vault.credential_state(self.made).status, status)

    def test_denied(self) -> None:
        """A service that wants more scopes has the person told once, and what is kept says which."""
        started = self.start()
        self.gives("canary-1", "canary-refresh-2", scope="read")
        sent, credential = self.successResultOf(started), self.vault.credential(self.made, example_scope())
        challenge = 'Bearer error="insufficient_scope", scope="admin"'
        for _ in range(2):
            refused = Deferred.fromCoroutine(credential.refused(sent, challenge))
            self.assertFalse(self.successResultOf(refused))
        self.assertEqual(self.told, [(self.made.name, "The service wants more scopes than it was given.")])
        self.assertEqual(self.vault.credential_state(self.made).wanted, ("admin",))
        self.failureResultOf(self.start(), CredentialNeedsYou)

    def test_state(self) -> None:
        """A token that nothing renews shows when it ends."""
        end = utc(self.clock.seconds()) + timedelta(hours=1)
        kept = json.loads(document(access_token="canary-1", expires_at=timestamp(end)))
        del kept["refresh_token"]
        made: Binding = self.set_up(evolve(new_binding("other", json.dumps(kept).encode()), kind="oauth2"))
        state = self.vault.credential_state(made)
        self.assertEqual((state.status, state.expires_at), (CredentialStatus.EXPIRES, end))

    def test_sealed(self) -> None:
        """No token is in the vault's file."""
        started = self.start()
        self.gives("canary-1", "canary-refresh-2")
        self.sent(started)
        self.assertNotIn(b"canary", self.path.read_bytes())


class RefusedTests(OpenCase):
    """A key that the service does not accept."""

    def setUp(self) -> None:
        super().setUp()
        self.told: list[str] = []
        renewals = Renewals(needs_you=lambda binding, reason: self.told.append(reason))
        self.vault = Vault(self.path, self.clock, lambda: True, self.key(), renewals)
        self.made = self.set_up(new_binding())

    def authorize(self) -> Deferred[Authorization]:
        """Begin to use it."""
        return Deferred.fromCoroutine(self.vault.credential(self.made, example_scope()).authorize(REQUEST))

    def refuse(self, sent: Authorization, operation: str = "") -> bool:
        """Let the service refuse what was sent."""
        credential = self.vault.credential(self.made, example_scope())
        return self.successResultOf(Deferred.fromCoroutine(credential.refused(sent, operation=operation)))

    def state(self) -> CredentialState:
        """How it stands."""
        return self.vault.credential_state(self.made)

    def test_refused(self) -> None:
        """It needs a person, who is told once and with the command; it is sent no more until it is replaced."""
        sent = self.successResultOf(self.authorize())
        self.assertEqual((self.refuse(sent), self.refuse(sent)), (False, False))
        (reason,) = self.told
        self.assertIn(f"aileron credential replace {self.made.name}", reason)
        self.assertEqual(self.state(), CredentialState(CredentialStatus.NEEDS_YOU, reason=reason))
        self.failureResultOf(self.authorize(), CredentialNeedsYou)
        ready = Deferred.fromCoroutine(self.vault.credential(self.made, example_scope()).make_ready())
        self.failureResultOf(ready, CredentialNeedsYou)
        self.successResultOf(Deferred.fromCoroutine(self.vault.replace(self.made.name, b"another")))
        self.assertIs(self.state().status, CredentialStatus.READY)
        self.successResultOf(self.authorize())

    def test_one_operation(self) -> None:
        """One refused operation says nothing of the key, nor does it twice; what is accepted between ends the doubt."""
        sent = self.successResultOf(self.authorize())
        credential = self.vault.credential(self.made, example_scope())
        for operation in ("read", "read", "", "list", "list"):
            if operation:
                self.assertFalse(self.refuse(sent, operation))
            else:
                credential.accepted(sent)
            self.assertEqual((self.state().status, self.told), (CredentialStatus.READY, []))
            self.successResultOf(self.authorize())

    def test_certain(self) -> None:
        """A second operation in a row, or the same for the third time, shows that it is the key."""
        for operations in (("read", "list"), ("read", "read", "read")):
            self.told.clear()
            self.successResultOf(Deferred.fromCoroutine(self.vault.replace(self.made.name, b"canary-secret")))
            sent = self.successResultOf(self.authorize())
            self.vault.credential(self.made, example_scope()).accepted(sent)
            for operation in operations:
                self.assertEqual(self.told, [])
                self.refuse(sent, operation)
            self.assertEqual((self.state().status, len(self.told)), (CredentialStatus.NEEDS_YOU, 1))

    def test_another_key(self) -> None:
        """What another key was refused says nothing of this one."""
        self.refuse(self.successResultOf(self.authorize()), "read")
        self.successResultOf(Deferred.fromCoroutine(self.vault.replace(self.made.name, b"another")))
        self.refuse(self.successResultOf(self.authorize()), "list")
        self.assertIs(self.state().status, CredentialStatus.READY)

    def test_same_again(self) -> None:
        """Whoever enters the same key has it tried again."""
        self.refuse(self.successResultOf(self.authorize()))
        self.successResultOf(Deferred.fromCoroutine(self.vault.replace(self.made.name, b"canary-secret")))
        self.successResultOf(self.authorize())

    def test_replaced_meanwhile(self) -> None:
        """A refusal of the key before says nothing of the one that took its place, nor does a 403 of this one."""
        sent = self.successResultOf(self.authorize())
        self.successResultOf(Deferred.fromCoroutine(self.vault.replace(self.made.name, b"another")))
        self.refuse(sent)
        credential = self.vault.credential(self.made, example_scope())
        sent = self.successResultOf(self.authorize())
        self.successResultOf(Deferred.fromCoroutine(credential.refused(sent, 'Bearer error="insufficient_scope"')))
        self.assertEqual((self.state().status, self.told), (CredentialStatus.READY, []))
