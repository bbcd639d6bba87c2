"""The commands that show one thing whole: a connector, a binding, the gateway, an action that is not offered."""

from __future__ import annotations

from typing import Any

from aileron.errors import NotFound
from tests.cli.daemon import CommandCase
from tests.cli.test_binding import MOVED, NAME, PATH, binding

CONNECTOR: dict[str, Any] = {
    "name": "local://me/chat",
    "version": "1.0.0",
    "content_hash": "sha256:c",
    "base_url": "https://chat.invalid",
    "bindable": True,
    "hosts": ["chat.invalid:443"],
    "credential": {"kind": "api_key", "header": "Authorization"},
    "operations": [
        {
            "name": "post",
            "effect": "write",
            "idempotent": False,
            "reconcilable": True,
            "timeout_seconds": 10.0,
            "description": "Posts\x1b[2J.",
        }
    ],
}
PROVIDER = {
    "name": "openai",
    "requests": 3,
    "input_tokens": 1200,
    "output_tokens": 34,
    "cached_tokens": 1000,
    "under_way": 1,
    "answers": {"2xx": 2, "5xx": 0},
    "endings": {"whole": 2, "cut": 0},
    "sent_bytes": 10,
    "received_bytes": 20,
}


class LookingTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()

    def test_connector(self) -> None:
        """A connector is shown with where it may send and what it can do; nothing of it acts on the terminal."""
        self.site.answer("GET", "/v1/connectors", {"items": [CONNECTOR], "problems": []})
        self.site.answer("GET", "/v1/trust", {"items": []})
        out = self.as_operator("connector", "show", "local://me/chat")[1]
        for part in ("a binding may choose another", "chat.invalid:443", "api_key, in Authorization", "Posts␛[2J."):
            self.assertIn(part, out)
        self.assertIn("can be looked for  10", out)
        code, _, err = self.as_operator("connector", "show", "local://me/other")
        self.assertEqual((code, "aileron connector list" in err), (1, True))

    def test_binding(self) -> None:
        """A binding is shown with what it opens for, and what to do where that no longer fits."""
        self.site.answer("GET", PATH, binding())
        self.assertIn("It opens for nothing but:", self.as_operator("binding", "show", NAME)[1])
        self.site.answer("GET", PATH, binding(**MOVED))
        _, out, err = self.as_operator("binding", "show", NAME)
        self.assertIn("must be rebound", out)
        self.assertIn(f"aileron binding rebind {NAME}", err)

    def test_misaddressed(self) -> None:
        """A binding to an address that is refused is shown with what is wrong, and cannot be rebound."""
        self.site.answer("GET", PATH, binding(base_url="https://127.1", fits=False))
        _, out, err = self.as_operator("binding", "show", NAME)
        self.assertIn("must be set up anew", out)
        self.assertIn("must have a proper address", err)
        self.assertIn(f"aileron binding revoke {NAME}", err)
        code, _, err = self.as_operator("binding", "rebind", NAME)
        self.assertEqual((code, "Nothing was rebound" in err, "aileron binding setup" in err), (1, True, True))

    def test_gateway(self) -> None:
        """Of each provider what was counted is told, and nothing of what was not."""
        self.site.answer("GET", "/v1/status", {"gateway": {"totals": {"providers": [PROVIDER]}}})
        out = self.command("gateway")[1]
        self.assertIn("openai    3      1          1 200 in, 34 out  1000    2xx: 2   whole: 2", out)
        self.site.answer("GET", "/v1/status", {})
        self.assertEqual(self.command("gateway")[1], "Nothing went through the gateway yet.\n")

    def test_not_offered(self) -> None:
        """Of an action that is not offered the reason is told, and what to do about it."""
        self.site.answer("GET", "/v1/actions/hello", NotFound("There is no such action."))
        fault = {"kind": "invalid", "file": "/h/actions/hello.md", "line": 3, "message": "It has no name."}
        self.site.answer("GET", "/v1/actions", {"load_errors": [fault]})
        _, _, err = self.as_operator("action", "show", "hello")
        self.assertIn("hello is not offered: /h/actions/hello.md:3: It has no name.", err)
        self.assertIn("aileron action edit hello", err)
        self.site.answer("GET", "/v1/actions", {"load_errors": [{**fault, "kind": "untrusted"}]})
        self.assertIn("aileron action trust hello", self.as_operator("action", "show", "hello")[2])
        self.site.answer("GET", "/v1/actions", {"load_errors": []})
        self.assertIn("There is no such action.", self.as_operator("action", "show", "hello")[2])

    def test_schema(self) -> None:
        """With --schema the schema that the model is given is shown too."""
        item: dict[str, Any] = dict.fromkeys(("tool_name", "source", "digest", "description"), "x")
        item |= {"name": "hello", "version": "1", "gated": True, "enabled": True, "connectors": [], "preview": None}
        self.site.answer("GET", "/v1/actions/hello", {**item, "input_schema": {"additionalProperties": False}})
        self.assertNotIn("additionalProperties", self.as_operator("action", "show", "hello")[1])
        self.assertIn("additionalProperties", self.as_operator("action", "show", "hello", "--schema")[1])
