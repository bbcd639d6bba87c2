"""Notifications on the command line."""

from __future__ import annotations

from typing import Any

from tests.cli.daemon import PASSPHRASE, CommandCase

ADDRESS = "ntfys://ntfy.invalid/canary"


def channel(**changed: Any) -> dict[str, Any]:
    """One as the daemon shows it."""
    return {
        "name": "phone",
        "kind": "apprise",
        "sent": 3,
        "failed": 0,
        "waiting": 0,
        "problem": None,
        "problem_at": None,
        "sent_at": "2026-01-01T00:00:00.000000Z",
        "needs_secret": True,
        "bound": True,
        **changed,
    }


class NotificationTests(CommandCase):
    def setUp(self) -> None:
        """A daemon."""
        super().setUp()
        self.serve()

    def test_list(self) -> None:
        """Each channel is shown with its state, and with what to do where something is to be done."""
        items = [channel(), channel(name="mail", bound=False), channel(name="office", problem="It answered 500.\x1b")]
        self.site.answer("GET", "/v1/notifications", {"items": items})
        code, out, err = self.as_operator("notification", "list")
        self.assertEqual(code, 0, err)
        for part in ("ready", "not in the vault yet", "failing"):
            self.assertIn(part, out)
        self.assertIn("aileron notification add mail", err)
        self.assertIn("It answered 500.", err)
        self.assertNotIn("\x1b", out + err)

    def test_none(self) -> None:
        """Where nothing is configured it is said where that is done; a test of nothing is no success."""
        for method, path in (("GET", "/v1/notifications"), ("POST", "/v1/notifications/test")):
            self.site.answer(method, path, {"items": []})
        self.assertIn("config.yaml", self.as_operator("notification", "list")[1])
        self.assertEqual(self.as_operator("notification", "test")[0], 1)

    def test_test(self) -> None:
        """A test succeeds only if every channel took it."""
        self.site.answer("POST", "/v1/notifications/test", {"items": [channel()]})
        self.assertEqual(self.as_operator("notification", "test")[0], 0)
        self.site.answer("POST", "/v1/notifications/test", {"items": [channel(), channel(problem="No.")]})
        self.assertEqual(self.as_operator("notification", "test")[0], 1)

    def test_add(self) -> None:
        """What a channel wants is asked for by its name, is sent once, and shown nowhere."""
        prompts: list[str] = []

        def secret(prompt: str, _descriptor: int | None) -> str:
            prompts.append(prompt)
            return ADDRESS

        self.secret = secret
        self.site.answer("POST", "/v1/bindings/setup", {"name": "api_key/notice/phone"})
        for scope, prompt in (
            ({"base_url": "apprise", "header": "address"}, "Address of phone"),
            (
                {"base_url": "https://example.com/hook", "header": "Aileron-Signature"},
                "Key that signs what goes to https://example.com/hook",
            ),
        ):
            self.site.answer("POST", "/v1/bindings/target", {"connector": "notice://phone", "scope": scope})
            code, out, err = self.as_operator("notification", "add", "phone")
            self.assertEqual((code, "canary" in out + err, prompts.pop()), (0, False, prompt), err)
            sent = self.site.bodies("POST", "/v1/bindings/setup")[-1]
            body = {"connector": "notice://phone", "service": "notice", "identity": "phone", "secret": ADDRESS}
            self.assertEqual(sent, body)

    def test_remove(self) -> None:
        """What was put there is taken out again."""
        self.site.answer("DELETE", "/v1/bindings/api_key%2Fnotice%2Fphone", {"name": "api_key/notice/phone"})
        self.typed = [PASSPHRASE]
        code, out, _ = self.command("notification", "remove", "phone")
        self.assertEqual((code, "phone" in out), (0, True))
