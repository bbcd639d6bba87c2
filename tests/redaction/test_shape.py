"""Of the judgement by shape: what is a secret, and what only looks a little like one."""

from __future__ import annotations

import base64
import random
import string
import uuid
from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from aileron.redaction import holds_secret, is_secret, names_secret
from tests.growth import fault

_LETTERS = string.ascii_letters + string.digits
_PLAIN = (
    "@modelcontextprotocol/server-everything@2025.11.25",
    "chrome-devtools-mcp@latest",
    "npm:foo@1.2.3",
    "mcp-server-fetch==2025.4.7",
    "git+https://github.com/org/repo.git@v1.2.3",
    f"ghcr.io/github/github-mcp-server:v0.1.2@sha256:{'ab12' * 16}",
    "/usr/lib/python3.11/site-packages/mcp_server_git/__main__.py",
    "https://github.com/modelcontextprotocol/servers/tree/main/src/everything",
    "ec2-12-34-56-78.eu-west-1.compute.amazonaws.com",
    "claude-3-5-sonnet-20241022",
    "meta-llama/Llama-3.1-8B-Instruct",
    "arn:aws:iam::123456789012:role/ReadOnly",
    "postgres://localhost:5432/db",
    "2026-11-28T18:47:31Z",
    "20240115T120000Z",
    "iPhoneXSMaxPro",
    "Ed25519PrivateKey",
    "internationalization2024",
    "--max-old-space-size=4096",
    "--sort=key",
    "user@host.example",
    "mailto:a@b.example",
    "com.auth0:java-jwt",
    "the basic settings of token counting",
)


class ShapeTests(SynchronousTestCase):
    """A text by itself."""

    def test_random(self) -> None:
        """Of what services make at random nearly all is found, alone and within a URL."""
        draw = random.Random(7)

        def some(alphabet: str, length: int) -> Callable[[], str]:
            return lambda: "".join(draw.choice(alphabet) for _ in range(length))

        for make, least in (
            (some(_LETTERS, 32), 0.99),
            (some(_LETTERS, 20), 0.95),
            (some("0123456789abcdef", 32), 1.0),
            (some(string.ascii_lowercase + string.digits, 32), 0.95),
            (lambda: base64.b64encode(draw.randbytes(30)).decode(), 0.97),
            (lambda: base64.urlsafe_b64encode(draw.randbytes(24)).decode(), 0.97),
            (lambda: str(uuid.UUID(bytes=draw.randbytes(16))), 1.0),
        ):
            for form in ("{}", "https://a.example/x/{}/y"):
                found = sum(holds_secret(form.format(make())) for _ in range(500)) / 500
                self.assertGreaterEqual(found, least, make())

    def test_plain(self) -> None:
        """Paths, packages, versions, numbers, names of words and plain URLs are none."""
        self.assertEqual([each for each in _PLAIN if holds_secret(each)], [])

    def test_inside(self) -> None:
        """A secret is found within a text that names it, or that says who logs in."""
        for text in (
            "Cookie: canary-012345",
            '{"apiKey": "canary"}',
            "Authorization: Bearer canary-0123",
            "https://me:secret@host.example/x",
            "app:s3cret@tcp(db:3306)/x",
            "https://a.example/x?access_token=canary",
        ):
            self.assertTrue(holds_secret(text), text)

    def test_names(self) -> None:
        """The words of a name count, and its last word may say that it is only about a secret."""
        for name in ("API_KEY", "apiKey", "X-Auth-Token", "SMTP_PASS", "JIRA_PAT", "AUTHTOKEN", "client_secret"):
            self.assertTrue(names_secret(name), name)
            self.assertTrue(is_secret(name, "some value"), name)
        for name in ("AUTHOR", "KEYCLOAK", "KEYBOARD", "TOKENIZER", "MONKEY", "PATH", "AUTH_METHOD", "KEY_FILE"):
            self.assertFalse(names_secret(name), name)

    def test_values(self) -> None:
        """Under the name of a secret a setting, an amount, a path and a plain URL are none; digits may be one."""
        for name, value in (
            ("AUTH", "none"),
            ("MAX_TOKENS", "4096"),
            ("API_KEY", ""),
            ("SSH_KEY", "~/.ssh/id_ed25519"),
            ("TOKEN", "https://a.example/token"),
        ):
            self.assertFalse(is_secret(name, value), name)
        for name, value in (("PASSWORD", "12345678"), ("TOKEN", "https://me:pass@a.example/"), ("API_KEY", "x")):
            self.assertTrue(is_secret(name, value), name)

    def test_large(self) -> None:
        """What is too long to look at counts as a secret; the time for the rest is linear."""
        self.assertTrue(holds_secret("a " * 40_000))
        for piece in ("aB3", "a:b@", "key=", "Bearer ", "a-", "1a"):
            self.assertEqual(fault(holds_secret, lambda size, piece=piece: piece * (size // len(piece))), "")  # type: ignore[misc]
