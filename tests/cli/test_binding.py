"""Bindings and notifications on the command line: what they open, what no longer fits, and what was put there."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve

from aileron.home.discovery import live_discovery, write_discovery
from aileron.model.errors import InvalidRequest
from tests.cli.daemon import PASSPHRASE, ServedCase, answered

NAME, FQN = "api_key/chat/default", "local://me/chat"
PATH = "/v1/bindings/api_key%2Fchat%2Fdefault"
SCOPE = {
    "hosts": ["chat.invalid:443"],
    "base_url": "https://chat.invalid",
    "header": "Authorization",
    "format": "Bearer {key}",
}


def binding(**changed: Any) -> dict[str, Any]:
    """One as the daemon shows it."""
    mine = {"name": NAME, "connector": FQN, "service": "chat", "revision": 3, "base_url": None}
    state = {"status": "ready", "expires_at": None, "reason": None}
    return answered("binding", **mine, scope=SCOPE, in_force=SCOPE, fits=True, flag=None, state=state) | changed


MOVED = {"in_force": {**SCOPE, "hosts": ["evil.invalid:443\x1b[2J"]}, "fits": False}


class BindingTests(ServedCase):
    def setUp(self) -> None:
        super().setUp()
        self.site.answer("POST", f"{PATH}/rebind", lambda body: binding(revision=body["revision"] + 1))

    def rebound(self) -> list[Any]:
        """What was sent to rebind it."""
        return self.site.bodies("POST", f"{PATH}/rebind")

    def test_setup(self) -> None:
        """The secret that was typed is sent once and shown nowhere; what it can be used for is shown first."""
        self.site.answer("POST", "/v1/bindings/target", {"connector": FQN, "scope": SCOPE})
        self.site.answer("POST", "/v1/bindings/setup", binding())
        self.typed = [PASSPHRASE, "xoxb-canary"]
        code, out, err = self.command("binding", "setup", FQN, "--identity", "me", "--account", "a")
        self.assertEqual((code, "canary" in out + err), (0, False))
        for part in (f"{NAME} is bound to {FQN}.", "can be used only for", "chat.invalid:443", "Bearer {key}"):
            self.assertIn(part, out)
        (body,) = self.site.bodies("POST", "/v1/bindings/setup")
        self.assertEqual((body["service"], body["secret"], body["identity"]), ("chat", "xoxb-canary", "me"))
        self.assertEqual((body["account"], "base_url" in body), ("a", False))
        code, _, err = self.command("binding", "setup", "local://")
        self.assertEqual((code, "--service" in err), (1, True))

    def test_last_part(self) -> None:
        """Who types the last part of a connector's name is told its full name, if only one ends like that."""
        daemon = live_discovery(self.home)
        assert daemon is not None
        write_discovery(self.home, evolve(daemon, local_key="k" * 43))
        for names, told in (
            (["builtin://github", "builtin://slack"], "aileron credential setup builtin://github"),
            (["builtin://github", "local://me/github"], "aileron connector list"),
            ([], "aileron connector list"),
        ):
            found = [{"name": each} for each in names]
            self.site.answer("GET", "/v1/connectors", {"items": found, "problems": []})
            code, _, err = self.command("credential", "setup", "github")
            self.assertEqual((code, told in err), (1, True), err)

    def test_pasted(self) -> None:
        """A whole header that was typed is asked for again, with what to leave out; from a descriptor it is sent."""
        self.site.answer("POST", "/v1/bindings/target", {"connector": FQN, "scope": SCOPE})
        self.site.answer("POST", "/v1/bindings/setup", binding())
        self.typed = [PASSPHRASE, "Bearer xoxb-canary", "xoxb-canary"]
        code, _, err = self.command("binding", "setup", FQN)
        self.assertEqual((code, "paste only the key, without 'Bearer'" in err, "canary" in err), (0, True, False))
        self.typed = [PASSPHRASE, "Bearer xoxb-canary"]
        self.command("binding", "setup", FQN, "--secret-fd", "4")
        sent = [body["secret"] for body in self.site.bodies("POST", "/v1/bindings/setup")]
        self.assertEqual(sent, ["xoxb-canary", "Bearer xoxb-canary"])

    def test_variables(self) -> None:
        """Variables of the base URL are set by an option, or asked for; a wrong one is refused."""
        self.site.answer("POST", "/v1/bindings/target", {"connector": "builtin://jira", "scope": SCOPE})
        self.site.answer("POST", "/v1/bindings/setup", binding())
        setup = ("binding", "setup", "builtin://jira")
        self.typed = [PASSPHRASE, "canary"]
        self.assertEqual(self.command(*setup, "--set", "site=acme")[0], 0)
        self.typed = ["other", PASSPHRASE, "canary"]
        self.assertEqual(self.command(*setup)[0], 0)
        sent = [body["base_url"] for body in self.site.bodies("POST", "/v1/bindings/setup")]
        self.assertEqual(sent, ["https://acme.atlassian.net", "https://other.atlassian.net"])
        for option, words in (
            ("site=a.b", "must match [a-z0-9-]+"),
            ("place=a", "no variable 'place'"),
            ("site", "NAME=VALUE"),
        ):
            self.typed = ["acme", PASSPHRASE, "canary"]
            code, _, err = self.command(*setup, "--set", option)
            self.assertEqual((code != 0, words in err), (True, True), err)
        self.typed = [PASSPHRASE, "canary"]
        code, _, err = self.command("binding", "setup", "builtin://slack", "--set", "site=acme")
        self.assertEqual((code, "has no variables" in err), (1, True))
        code, _, err = self.command(*setup, "--set", "site=acme", "--base-url", "https://other.atlassian.net")
        self.assertEqual((code, "not both" in err), (1, True))
        self.assertEqual(len(self.site.bodies("POST", "/v1/bindings/setup")), 2)

    def test_variable_of_settings(self) -> None:
        """A variable that is in the credential's settings alone is asked for too, and sent unless it is the default."""
        self.site.answer("POST", "/v1/bindings/target", {"connector": "builtin://microsoft365", "scope": SCOPE})
        self.site.answer("POST", "/v1/bindings/setup", binding())
        for answers, sent in ((("con toso", "0a1b-2c"), {"tenant": "0a1b-2c"}), (("",), None)):
            self.typed = [*answers, PASSPHRASE, "canary"]
            code, _, err = self.command("binding", "setup", "builtin://microsoft365", "--secret-fd", "9")
            self.assertEqual((code, self.typed), (0, []), err)
            body = self.site.bodies("POST", "/v1/bindings/setup")[-1]
            self.assertEqual((body.get("variables"), "base_url" in body), (sent, False))
            self.assertEqual(self.site.bodies("POST", "/v1/bindings/target")[-1].get("variables"), sent)

    def test_provider(self) -> None:
        """Where a provider's key will go is shown before it is asked for, and then what config.yaml must say."""
        provider = {"connector": "gateway://openai", "scope": {**SCOPE, "header": "authorization"}}
        self.site.answer("POST", "/v1/bindings/target", provider)
        self.site.answer("POST", "/v1/bindings/setup", binding(name="api_key/openai/default", **provider))
        shown: list[str] = []

        def secret(_prompt: str, _descriptor: int | None) -> str:
            shown.append(self.out.getvalue())
            return "s3cret"

        self.secret = secret
        code, out, err = self.as_operator("binding", "setup", "gateway://openai")
        self.assertEqual((code, "s3cret" in out + err), (0, False), err)
        for part in ("gateway://openai", "chat.invalid:443", "https://chat.invalid", "authorization", "Bearer {key}"):
            self.assertIn(part, shown[0])
        self.assertIn("credential: vault:api_key/openai/default", err)
        (sent,) = self.site.bodies("POST", "/v1/bindings/setup")
        self.assertEqual((sent["service"], sent["secret"]), ("openai", "s3cret"))

    def test_no_provider(self) -> None:
        """Where there is no such provider, its key is not asked for."""
        self.site.answer("POST", "/v1/bindings/target", InvalidRequest("The credential cannot be bound."))
        code, _, err = self.as_operator("binding", "setup", "gateway://other")
        self.assertEqual((code == 0, "cannot be bound" in err, self.typed), (False, True, []))

    def test_list(self) -> None:
        """What no longer fits, or must be looked into, is told with what to do."""
        flag = {"since": "2026-01-01T00:00:00.000000Z", "reason": "Its secret came back\x1b."}
        flagged = binding(name="b", flag=flag)
        self.site.answer("GET", "/v1/bindings", {"items": [binding(name="a"), flagged, binding(**MOVED)]})
        _, out, err = self.as_operator("binding", "list")
        for part in ("bound", "check", "needs rebind"):
            self.assertIn(part, out)
        self.assertIn("b: Its secret came back␛.", err)
        self.assertIn(f"aileron credential rebind {NAME}", err)
        self.assertEqual(err.count("aileron credential rebind"), 1)

    def test_surplus(self) -> None:
        """A credential that was given more than is needed is bound, and it is told what, and how to have less."""
        state = {"status": "ready", "expires_at": None, "reason": None, "surplus": "It was given more: mail\x1b."}
        scope = {"settings": {"token_url": "https://login.example"}}
        self.site.answer("GET", "/v1/bindings", {"items": [binding(name="a", kind="oauth2", scope=scope, state=state)]})
        _, out, err = self.as_operator("binding", "list")
        self.assertIn("bound", out)
        for part in ("a: It was given more: mail␛.", "aileron credential renew a"):
            self.assertIn(part, err)

    def test_state(self) -> None:
        """When a credential runs out is told, and that it needs a person, with what to do."""
        state = {"status": "expires", "expires_at": "2026-06-01T12:00:00.000000Z", "reason": None}
        ended = {**state, "status": "needs_you", "reason": "The server refused\x1b."}
        self.site.answer(
            "GET", "/v1/bindings", {"items": [binding(name="a", state=state), binding(name="b", state=ended)]}
        )
        _, out, err = self.as_operator("binding", "list")
        for part in ("expires 2026-06-01", "needs you"):
            self.assertIn(part, out)
        self.assertIn("b cannot be used: The server refused␛.", err)
        self.assertIn("aileron credential replace b", err)

    def test_replace(self) -> None:
        """Another secret is typed, sent once and shown nowhere."""
        self.site.answer("POST", f"{PATH}/replace", binding())
        self.typed = [PASSPHRASE, "xoxb-canary"]
        code, out, err = self.command("binding", "replace", NAME)
        self.assertEqual((code, "canary" in out + err), (0, False))
        self.assertIn(f"{NAME} has another secret.", out)
        self.assertEqual(self.site.bodies("POST", f"{PATH}/replace"), [{"secret": "xoxb-canary"}])

    def test_rebind(self) -> None:
        """The difference is shown, one question is asked, and the revision that was shown is rebound."""
        self.site.answer("GET", PATH, binding(**MOVED))
        code, out, _ = self.as_operator("binding", "rebind", NAME, answers=["y"])
        self.assertEqual((code, self.rebound()), (0, [{"revision": 3}]))
        self.assertIn("hosts: evil.invalid:443␛[2J\n    before: chat.invalid:443\n", out)
        self.assertIn("header: Authorization (unchanged)", out)
        self.assertIn("revision 4", out)
        self.site.answer("GET", PATH, binding(**MOVED))
        self.assertEqual(self.command("binding", "rebind", NAME, "--json")[0], 2)
        code, out, _ = self.as_operator("binding", "rebind", NAME, "--yes", "--json")
        self.assertEqual((code, json.loads(out)["revision"]), (0, 4))

    def test_not_rebound(self) -> None:
        """Without a yes, where it fits, or where its connector is gone, nothing is rebound."""
        self.site.answer("GET", PATH, binding(**MOVED))
        for answer in ("", "n"):
            code, _, err = self.as_operator("binding", "rebind", NAME, answers=[answer])
            self.assertEqual((code, "Nothing was rebound" in err), (1, True))
        for item, said in (
            (binding(), "nothing was rebound"),
            (binding(in_force=None, fits=False), "There is no connector"),
        ):
            self.site.answer("GET", PATH, item)
            code, _, err = self.as_operator("binding", "rebind", NAME)
            self.assertEqual((code, said in err), (1, True), err)
        self.assertEqual(self.rebound(), [])

    def test_revoked(self) -> None:
        """A binding, or what was put there for notifications, is revoked by its name, slashes and all."""
        notice = "/v1/bindings/api_key%2Fnotice%2Fphone"
        for path, words in ((PATH, ("binding", "revoke", NAME)), (notice, ("notification", "remove", "phone"))):
            self.site.answer("DELETE", path, binding())
            self.assertEqual(self.as_operator(*words)[0], 0)
            self.assertEqual(len(self.site.bodies("DELETE", path)), 1)


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


class NotificationTests(ServedCase):
    def test_list(self) -> None:
        """Each channel is shown with its state, and with what to do where something is to be done."""
        items = [channel(), channel(name="mail", bound=False), channel(name="office", problem="It answered 500.\x1b")]
        self.site.answer("GET", "/v1/notifications", {"items": items})
        code, out, err = self.as_operator("notification", "list")
        self.assertEqual(code, 0, err)
        for part in ("ready", "secret missing", "failing"):
            self.assertIn(part, out)
        self.assertIn("aileron notification add mail", err)
        self.assertIn("It answered 500.", err)
        self.assertNotIn("\x1b", out + err)

    def test_test(self) -> None:
        """A test succeeds only if every channel took it; where nothing is configured it is said where that is done."""
        self.site.answer("POST", "/v1/notifications/test", {"items": [channel()]})
        self.assertEqual(self.as_operator("notification", "test")[0], 0)
        self.site.answer("POST", "/v1/notifications/test", {"items": [channel(), channel(problem="No.")]})
        self.assertEqual(self.as_operator("notification", "test")[0], 1)
        for method, path in (("GET", "/v1/notifications"), ("POST", "/v1/notifications/test")):
            self.site.answer(method, path, {"items": []})
        self.assertIn("config.yaml", self.as_operator("notification", "list")[1])
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
                "Key that signs requests to https://example.com/hook",
            ),
        ):
            self.site.answer("POST", "/v1/bindings/target", {"connector": "notice://phone", "scope": scope})
            code, out, err = self.as_operator("notification", "add", "phone")
            self.assertEqual((code, "canary" in out + err, prompts.pop()), (0, False, prompt), err)
            sent = self.site.bodies("POST", "/v1/bindings/setup")[-1]
            body = {"connector": "notice://phone", "service": "notice", "identity": "phone", "secret": ADDRESS}
            self.assertEqual(sent, body)
