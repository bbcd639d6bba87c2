"""Who logs in, to whom, that no login or session is left behind, and the operator's own logins and passkeys."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, cast

from attrs import evolve

from aileron.cli.context import Conversation
from aileron.cli.vault import open as open_module
from aileron.client import OperatorLogin
from aileron.model.errors import InternalError
from tests.cli.daemon import AGENT_TOKEN, LAUNCH_KEY, OPERATOR_URL, PASSPHRASE, TOKEN, CommandCase, ServedCase
from tests.cli.test_open import Typing

LOCAL_KEY = "ail_c_local"
NOTHING: dict[str, Any] = {"items": [], "cursor": None}


class OperatorTests(ServedCase):
    def setUp(self) -> None:
        super().setUp()
        self.site.answer("GET", "/v1/bindings", NOTHING)

    def test_logged_in(self) -> None:
        """The command asks with a fresh operator token, ended afterwards; neither passphrase nor key is sent."""
        code, out, _ = self.as_operator("binding", "list")
        self.assertEqual((code, out), (0, "No credentials yet. Add one: aileron credential setup CONNECTOR\n"))
        used = {asked.path: asked.bearer for asked in self.site.asked}
        self.assertEqual((used["/v1/bindings"], used["/v1/operator/logout"]), (TOKEN, TOKEN))
        self.assertNotIn("/v1/vault/status", used)
        self.assertIsNone(used["/v1/operator/login"])
        self.assertNotIn(PASSPHRASE, repr(self.site.asked))
        probed: list[tuple[str, str, str | None]] = []

        def probe(url: str, path: str, token: str | None) -> Mapping[str, Any]:
            probed.append((url, path, token))
            return {"state": "unlocked"}

        self.patch(self.site, "probe", probe)
        self.as_operator("binding", "list")
        self.assertEqual(probed, [(OPERATOR_URL, "/v1/vault/status", None)])

    def test_cut_off_while_logging_in(self) -> None:
        """A login that is cut off is begun anew, but not for ever, and not where nobody listens."""
        for cut_off in (1, 2, 3):
            self.site.cut_off = cut_off
            self.assertEqual(self.as_operator("binding", "list")[0], 0)
        self.assertEqual(len(self.site.bodies("GET", "/v1/bindings")), 3)
        moments = iter(range(0, 1000, 4))
        self.patch(time, "monotonic", lambda: next(moments))
        self.site.cut_off = 1000
        self.typed = [PASSPHRASE]
        code, _, err = self.command("binding", "list")
        self.assertEqual((code, self.site.cut_off), (1, 997))
        self.assertIn("was lost", err)
        self.site.cut_off, self.site.refuses = 1000, True
        self.typed = [PASSPHRASE]
        code, _, err = self.command("binding", "list")
        self.assertEqual((code, self.site.cut_off), (1, 999))
        self.assertIn("No Aileron daemon responds", err)

    def test_logged_out_after_failure(self) -> None:
        """A command that fails logs out as well; while the vault is locked no passphrase is asked for."""
        self.site.answer("GET", "/v1/bindings", InternalError("It broke."))
        code, out, err = self.as_operator("binding", "list")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("aileron: It broke.\n", err)
        self.assertEqual(self.site.asked[-1].path, "/v1/operator/logout")
        self.site.state = "locked"
        code, _, err = self.command("binding", "list")
        self.assertEqual(code, 1)
        self.assertIn("Unlock it:\n    aileron vault unlock\n", err)

    def test_no_proof(self) -> None:
        """Who does not know the key, or answers no proof, gets none of ours; a wrong passphrase sends nothing."""
        for key, challenge, typed, says, asked in (
            (b"x" * 32, None, PASSPHRASE, "could not prove that it is your daemon", 1),
            (self.site.key, None, "not the passphrase", "aileron: This passphrase does not open the vault.\n", 1),
            (self.site.key, {"nonce": "n"}, PASSPHRASE, "not an Aileron daemon", 2),
        ):
            self.site.key, self.typed = key, [typed] * 3
            if challenge is not None:
                self.site.answer("POST", "/v1/operator/challenge", challenge)
            code, _, err = self.command("binding", "list")
            self.assertEqual((code, says in err), (1, True), err)
            self.assertEqual(self.site.bodies("POST", "/v1/operator/login"), [])
            self.assertEqual(len(self.site.bodies("POST", "/v1/operator/challenge")), asked)

    def test_mistyped(self) -> None:
        """A wrong passphrase is asked for again, three times in all; one from a descriptor is not."""
        self.site.answer("GET", "/v1/bindings", {"items": []})
        self.typed = ["wrong", "wrong again", PASSPHRASE]
        code, _, err = self.command("binding", "list")
        self.assertEqual(
            (code, err.count("This passphrase does not open the vault. Try again."), self.typed), (0, 2, [])
        )
        for arguments, asked in (((), 3), (("--passphrase-fd", "3"), 1)):
            self.typed = ["wrong"] * 4
            code, _, err = self.command("binding", "list", *arguments)
            self.assertEqual((code, len(self.typed)), (1, 4 - asked), err)
            self.assertTrue(err.endswith("aileron: This passphrase does not open the vault.\n"), err)


class WithoutLoginTests(CommandCase):
    """What reads, pauses or locks needs no passphrase."""

    def setUp(self) -> None:
        super().setUp()
        self.serve(LOCAL_KEY)

    def assert_read(self, *command: str) -> str:
        """It asked with the local key alone, and typed nothing; what it printed."""
        code, out, err = self.command(*command)
        self.assertEqual((code, self.site.logins), (0, []), err)
        self.assertEqual({asked.bearer for asked in self.site.asked}, {LOCAL_KEY})
        return out

    def test_read(self) -> None:
        """A list is asked for with the key of this life of the daemon, also where the vault is locked."""
        self.site.state = "locked"
        self.site.answer("GET", "/v1/bindings", NOTHING)
        self.assertIn("No credentials yet.", self.assert_read("binding", "list"))

    def test_stop(self) -> None:
        """So are a pause, which says where it is not saved, and the lock of the vault."""
        paused = {"since": "2026-01-01T00:00:00.000000Z", "by": "local", "reason": None, "session_id": None}
        self.site.answer("POST", "/v1/pause", {"pause": paused, "under_way": [], "saved": False, "listed": False})
        self.site.answer("POST", "/v1/vault/lock", {"state": "locked"})
        self.assert_read("pause")
        self.assertIn("is not saved yet", self.command("pause")[2])
        self.assertIn("are not listed", self.command("pause")[2])
        self.assert_read("vault", "lock")

    def test_decide(self) -> None:
        """Whatever decides, trusts, grants or binds asks for the passphrase as ever."""
        self.site.answer("POST", "/v1/resume", {"asked_anew": []})
        self.assertEqual(self.as_operator("resume")[0], 0)
        self.assertEqual({asked.bearer for asked in self.site.asked if asked.path == "/v1/resume"}, {TOKEN})
        self.assertNotIn(LOCAL_KEY, {asked.bearer for asked in self.site.asked})


class NotRunningTests(CommandCase):
    def test_not_running(self) -> None:
        """Without a daemon each command says how to start one, before it asks for anything."""
        for command in (("approval", "list"), ("action", "list"), ("status",), ("resume",)):
            code, out, err = self.command(*command)
            self.assertEqual((code, out), (1, ""), command)
            self.assertIn("Start it:\n    aileron daemon start\n", err)


class SessionTests(ServedCase):
    def test_session(self) -> None:
        """Listing actions opens a session named cli with the launch key, uses its token, and ends it in any case."""
        self.site.answer("GET", "/v1/actions", {"generation": 1, "items": [], "load_errors": []})
        code, out, _ = self.command("action", "list")
        self.assertEqual((code, out, self.site.sessions), (0, "No actions yet. Add one: aileron action add FILE\n", []))
        opened = self.site.asked[0]
        self.assertEqual((opened.path, opened.bearer, opened.body["agent"]), ("/v1/sessions", LAUNCH_KEY, "cli"))
        self.assertEqual([asked.bearer for asked in self.site.asked[1:]], [AGENT_TOKEN, AGENT_TOKEN])
        self.site.answer("GET", "/v1/actions", InternalError("It broke."))
        self.assertEqual(self.command("action", "list")[0], 1)
        self.assertEqual(self.site.sessions, [])


LOGINS = "/v1/operator/sessions"


class LoginsTests(ServedCase):
    def test_list(self) -> None:
        """Each is listed with where it is, what it may do and until when."""
        item = {"id": "ops_1", "browser": True, "started_at": "then", "used_at": "now", "expires_at": "later"}
        watching = {**item, "decides": False}
        items = [
            {**item, "yours": False},
            {**watching, "yours": False},
            {**item, "id": "ops_2", "browser": False, "yours": True},
        ]
        self.site.answer("GET", LOGINS, {"items": items})
        shown = [line.split() for line in self.as_operator("operator", "list")[1].splitlines()[1:]]
        self.assertEqual(shown[0], ["ops_1", "browser", "then", "now", "decide", "later"])
        self.assertEqual(shown[1], ["ops_1", "browser", "then", "now", "watch", "later"])
        self.assertEqual(shown[2], ["ops_2", "this", "command", "then", "now", "decide", "later"])

    def test_end(self) -> None:
        """One is ended by its id, all by --all; without a word of which nothing is."""
        self.site.answer("DELETE", f"{LOGINS}/ops_1", {"ended": ["ops_1"]})
        self.site.answer("DELETE", LOGINS, {"ended": ["ops_1", "ops_2"]})
        self.assertEqual(self.as_operator("operator", "revoke", "ops_1")[:2], (0, "Ended: ops_1.\n"))
        self.assertEqual(self.as_operator("operator", "revoke", "--all")[:2], (0, "Ended: ops_1, ops_2.\n"))
        for wrong in ((), ("ops_1", "--all")):
            self.assertEqual(self.command("operator", "revoke", *wrong)[0], 2)


PASSKEYS = "/v1/operator/passkeys"
RULE = {"everything": False, "actions": ["post", "mail-*"]}


class PasskeysTests(CommandCase):
    """What counts, and what needs it."""

    def setUp(self) -> None:
        super().setUp()
        self.serve(LOCAL_KEY)

    def test_require(self) -> None:
        """Names, or all; one of both."""
        self.site.answer("POST", f"{PASSKEYS}/rule", {"items": [], "rule": RULE})
        self.assertEqual(self.as_operator("operator", "passkey", "require", "post", "mail-*")[0], 0)
        self.assertIn(RULE, [each.body for each in self.site.asked])
        for wrong in ((), ("post", "--all")):
            self.assertEqual(self.command("operator", "passkey", "require", *wrong)[0], 2)

    def test_add_by_page(self) -> None:
        """Without a passkey that waits, a page is opened that makes one: its words are typed once, and sent twice."""
        path = "/v1/operator/handover"
        self.site.answer("GET", PASSKEYS, {"items": [], "rule": RULE, "site": "aileron.localhost", "proposed": False})
        self.site.answer("POST", path, {"code": "c0de"})
        self.site.answer("GET", path, {"state": "opened"})
        self.site.answer("POST", f"{path}/confirm", {"id": "ops_2"})
        self.site.answer("POST", f"{PASSKEYS}/confirm", {"id": "key-1", "name": "Mine"})
        typing = Typing(["baby engage"])
        cli = evolve(self.cli_context(), terminal=lambda: nullcontext(cast("Conversation", typing)))
        self.patch(self, "cli_context", lambda: cli)
        self.patch(open_module, "login_from_child", lambda *_: OperatorLogin(TOKEN, None))
        self.site.logins.append(TOKEN)
        code, out, err = self.command("operator", "passkey", "add")
        self.assertEqual((code, "Passkey Mine added." in out), (0, True), err)
        self.assertIn("Create the passkey there.", err)
        self.assertEqual(self.site.bodies("POST", path), [{"adds_passkey": True}])
        for confirmed in (f"{path}/confirm", f"{PASSKEYS}/confirm"):
            self.assertEqual(self.site.bodies("POST", confirmed), [{"words": "baby engage"}])
        self.assertEqual(self.site.logins, [TOKEN], "the browser decides no longer than this login")

    def test_add(self) -> None:
        """What counts is confirmed by the words that the person types, listed by its name, and forgotten."""
        added = {"id": "key-1", "name": "Mine", "made_at": "then", "count": 0, "site": "aileron.localhost"}
        self.site.answer("POST", f"{PASSKEYS}/confirm", added)
        self.site.answer("GET", PASSKEYS, {"items": [], "rule": RULE, "site": "aileron.localhost", "proposed": True})
        self.typed = ["baby engage", PASSPHRASE]
        self.environ["TMUX"] = "/tmp/tmux-0/default,1,0"
        _, out, err = self.command("operator", "passkey", "add")
        self.assertEqual(("Passkey Mine added." in out, "In tmux, programs of yours" in err), (True, True))
        self.assertIn({"words": "baby engage"}, [each.body for each in self.site.asked])
        items = [{**added, "count": 3}, {**added, "id": "key-2", "name": "Old", "site": "localhost"}]
        self.site.answer("GET", PASSKEYS, {"items": items, "rule": RULE, "site": "aileron.localhost"})
        shown = self.as_operator("operator", "passkey", "list")[1]
        self.assertRegex(shown, r"Mine +then +usable +key-1\nOld +then +only at localhost +key-2\n")
        self.assertIn("Approvals of these actions require a passkey: post, mail-*.", shown)
        self.site.answer("DELETE", f"{PASSKEYS}/key-2", items[1])
        removed = self.as_operator("operator", "passkey", "remove", "Old")
        self.assertEqual(removed[:2], (0, "Passkey Old removed.\n"))
        unknown = self.as_operator("operator", "passkey", "remove", "Other")
        self.assertEqual((unknown[0], "There is no passkey Other" in unknown[2]), (1, True))
        self.site.answer("DELETE", PASSKEYS, {"items": [], "rule": {"everything": False, "actions": []}})
        self.assertEqual(
            self.as_operator("operator", "passkey", "reset")[:2],
            (0, "All passkeys removed. No approval requires one.\n"),
        )
