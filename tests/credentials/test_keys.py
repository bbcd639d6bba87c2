"""API keys, and names with passwords."""

from __future__ import annotations

import base64

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.credentials import place
from aileron.model.errors import BindingFailed
from aileron.model.vault import CredentialStatus
from tests.credentials.kind import KindCase, KindContract


class ApiKeyTests(KindCase, KindContract):
    """A key."""

    name = "api_key"
    good = b"canary-k3y"
    bad = (b"", b"canary two words", b"canary\r\nX-Evil: 1", "canary-ä".encode(), b"c" * 8193)
    sent_secrets = ("canary-k3y",)

    def test_header(self) -> None:
        """It stands in the header that its connector names, in the format that it says."""
        self.held.scope = evolve(self.held.scope, header="X-Api", format="Token {key}")
        self.assertEqual(self.authorized().headers, (("X-Api", "Token canary-k3y"),))

    def test_pasted(self) -> None:
        """What was copied with more than the key says what to leave out; a key that only begins so is one."""
        for pasted, left_out in (
            ("Bearer canary-k3y", "without 'Bearer'"),
            ("Authorization: bearer canary-k3y", "without 'bearer'"),
            ("token canary-k3y", "without 'token'"),
            ('"canary-k3y"', "without quotes"),
        ):
            with self.assertRaises(ValueError) as raised:
                self.kind.check(pasted.encode())
            self.assertIn(f"paste only the key, {left_out}", str(raised.exception))
        self.kind.check(b"BearerToken-canary-k3y")

    def test_query(self) -> None:
        """Where its connector names a parameter, it is that parameter and in no header."""
        self.held.scope = evolve(self.held.scope, header="", settings={"query": "key"})
        sent = self.authorized()
        self.assertEqual((sent.query, sent.headers), ((("key", "canary-k3y"),), ()))

    def test_path(self) -> None:
        """Where its connector says how the path begins, it is there, encoded, and cannot lead to another path."""
        self.held.scope = evolve(self.held.scope, header="", settings={"path": "/bot{key}"})
        sent = self.authorized()
        self.assertEqual((sent.prefix, sent.query, sent.headers), ("/botcanary-k3y", (), ()))
        self.assertEqual(place("1:A/b?", self.held.scope).prefix, "/bot1:A%2Fb%3F")
        for key in (".", ".."):
            with self.assertRaises(BindingFailed):
                place(key, evolve(self.held.scope, settings={"path": "/v1/{key}"}))

    def test_never_renewed(self) -> None:
        """Refused, it stays what it is, and is ready."""
        self.assertFalse(self.kind.refused(self.held.use(), self.authorized()))
        self.assertIs(self.status(), CredentialStatus.READY)


class BasicTests(KindCase, KindContract):
    """A name and its password."""

    name = "basic"
    good = "ada:canary päss:word".encode()
    bad = (b"", b"canary", b":canary", b"ada:", b"ada:canary\n", b"\xffcanary:x", b"a:" + b"c" * 8192)
    sent_secrets = ("canary päss:word", "ada:canary päss:word", base64.b64encode(good).decode())

    def test_header(self) -> None:
        """It is what RFC 7617 says; the name is no secret."""
        sent = self.authorized()
        encoded = base64.b64encode(self.good).decode()
        self.assertEqual(sent.headers, (("Authorization", f"Basic {encoded}"),))
        self.assertNotIn("ada", sent.secrets)

    def test_reveal(self) -> None:
        """A connector written in Python gets what stands for the key."""
        revealed = Deferred.fromCoroutine(self.kind.reveal(self.held.use()))
        self.assertEqual(base64.b64decode(self.successResultOf(revealed)), self.good)
