"""Who logs in, to whom, and that no login or session is left behind."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from aileron.errors import InternalError
from tests.cli.daemon import AGENT_TOKEN, LAUNCH_KEY, OPERATOR_URL, PASSPHRASE, TOKEN, CommandCase

NOTHING: dict[str, Any] = {"items": [], "cursor": None}


class OperatorTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.site.answer("GET", "/v1/bindings", NOTHING)

    def test_logged_in(self) -> None:
        """The command asks with a fresh operator token, ended afterwards; neither passphrase nor key is sent."""
        code, out, _ = self.as_operator("binding", "list")
        self.assertEqual((code, out), (0, "Nothing is bound yet: aileron binding setup CONNECTOR\n"))
        used = {asked.path: asked.bearer for asked in self.site.asked}
        self.assertEqual((used["/v1/bindings"], used["/v1/operator/logout"]), (TOKEN, TOKEN))
        self.assertNotIn("/v1/vault/status", used)
        self.assertIsNone(used["/v1/operator/login"])
        self.assertNotIn(PASSPHRASE, repr(self.site.asked))

    def test_vault_is_asked_on_the_operators_site(self) -> None:
        """Whether the vault is open is asked where no agent can be in the way, and without a credential."""
        probed: list[tuple[str, str, str | None]] = []

        def probe(url: str, path: str, token: str | None) -> Mapping[str, Any]:
            probed.append((url, path, token))
            return {"state": "unlocked"}

        self.patch(self.site, "probe", probe)
        self.as_operator("binding", "list")
        self.assertEqual(probed, [(OPERATOR_URL, "/v1/vault/status", None)])

    def test_cut_off_while_logging_in(self) -> None:
        """A login that is cut off, as in a site that is flooded, is begun anew; what was asked then is asked once."""
        for cut_off in (1, 2, 3):
            self.site.cut_off = cut_off
            self.assertEqual(self.as_operator("binding", "list")[0], 0)
        self.assertEqual(len(self.site.bodies("GET", "/v1/bindings")), 3)

    def test_cut_off_for_good(self) -> None:
        """Not for ever, and not where nobody listens."""
        moments = iter(range(0, 1000, 4))
        self.patch(time, "monotonic", lambda: next(moments))
        self.site.cut_off = 1000
        self.typed = [PASSPHRASE]
        code, _, err = self.command("binding", "list")
        self.assertEqual((code, self.site.cut_off), (1, 997))
        self.assertIn("was cut off", err)
        self.site.cut_off, self.site.refuses = 1000, True
        self.typed = [PASSPHRASE]
        code, _, err = self.command("binding", "list")
        self.assertEqual((code, self.site.cut_off), (1, 999))
        self.assertIn("No Aileron daemon answers", err)

    def test_logged_out_after_failure(self) -> None:
        """A command that fails logs out as well."""
        self.site.answer("GET", "/v1/bindings", InternalError("It broke."))
        code, out, err = self.as_operator("binding", "list")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("aileron: It broke.\n", err)
        self.assertEqual(self.site.asked[-1].path, "/v1/operator/logout")

    def test_no_proof(self) -> None:
        """Who does not know the key, or answers no proof, gets none of ours; a wrong passphrase sends nothing."""
        for key, challenge, typed, says, asked in (
            (b"x" * 32, None, PASSPHRASE, "could not prove that it is your daemon", 1),
            (self.site.key, None, "not the passphrase", "aileron: This passphrase does not open the vault.\n", 1),
            (self.site.key, {"nonce": "n"}, PASSPHRASE, "not an Aileron daemon", 2),
        ):
            self.site.key, self.typed = key, [typed]
            if challenge is not None:
                self.site.answer("POST", "/v1/operator/challenge", challenge)
            code, _, err = self.command("binding", "list")
            self.assertEqual((code, says in err), (1, True), err)
            self.assertEqual(self.site.bodies("POST", "/v1/operator/login"), [])
            self.assertEqual(len(self.site.bodies("POST", "/v1/operator/challenge")), asked)

    def test_locked(self) -> None:
        """While the vault is locked no passphrase is asked for, and the way out is said."""
        self.site.state = "locked"
        code, _, err = self.command("binding", "list")
        self.assertEqual(code, 1)
        self.assertIn("Unlock it: aileron vault unlock", err)


class NotRunningTests(CommandCase):
    def test_not_running(self) -> None:
        """Without a daemon each command says how to start one, before it asks for anything."""
        for command in (("approval", "list"), ("action", "list"), ("status",), ("open",)):
            code, out, err = self.command(*command)
            self.assertEqual((code, out), (1, ""), command)
            self.assertIn("Start it: aileron daemon start", err)


class SessionTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        self.serve()

    def test_session(self) -> None:
        """Listing actions opens a session named cli with the launch key, uses its token, and ends it."""
        self.site.answer("GET", "/v1/actions", {"generation": 1, "items": [], "load_errors": []})
        code, out, _ = self.command("action", "list")
        self.assertEqual((code, out, self.site.sessions), (0, "There are no actions yet.\n", []))
        opened = self.site.asked[0]
        self.assertEqual((opened.path, opened.bearer, opened.body["agent"]), ("/v1/sessions", LAUNCH_KEY, "cli"))
        self.assertEqual([asked.bearer for asked in self.site.asked[1:]], [AGENT_TOKEN, AGENT_TOKEN])

    def test_ended_after_failure(self) -> None:
        """The session ends when the daemon says no."""
        self.site.answer("GET", "/v1/actions", InternalError("It broke."))
        self.assertEqual(self.command("action", "list")[0], 1)
        self.assertEqual(self.site.sessions, [])
