"""The commands that look back, those that show one thing whole, and those that change a little."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aileron.model.errors import CapabilityDenied, NotFound, Unauthorized, VaultLocked
from tests.cli.daemon import RUN, ServedCase, answered
from tests.cli.test_binding import MOVED, NAME, PATH, binding

SINCE = "2026-03-01T12:00:00Z"
RECORD = answered(
    "record",
    audit_id="A1",
    type="approval.approved",
    actor={"type": "human", "id": "ops_1"},
    payload={"reason": "ok\u202e"},
    run_id=RUN,
    action="ship-update",
    previous_hash="p",
)
RUN_ROW = answered(
    "run",
    id=RUN,
    arguments={"channel": "#eng"},
    state="unknown",
    result=None,
    failure={"class": "outcome_unknown", "message": "It may have happened."},
    attempts=[
        {
            "step": "post",
            "number": 1,
            "state": "unknown",
            "started_at": "t",
            "failure": None,
            "answer": "<p>Oops",
            "answer_type": "text/html",
        }
    ],
    reconcilable=True,
)


class RecordsTests(ServedCase):
    def test_audit_show(self) -> None:
        """Filters are passed on under the daemon's names; one record is shown with its place in the chain."""
        self.site.answer("GET", "/v1/audit/A1", RECORD)
        out = self.as_operator("audit", "show", "A1")[1]
        self.assertIn('"reason": "ok\\u202e"', out)
        self.assertRegex(out, r"previous hash +p\n")
        self.assertEqual(json.loads(self.as_operator("audit", "show", "A1", "--json")[1]), RECORD)
        self.site.answer("GET", f"/v1/audit?since={quote(SINCE)}&class=y&limit=5", {"items": [RECORD], "cursor": None})
        code, out, _ = self.as_operator("audit", "list", "--since", SINCE, "--class", "y", "--limit", "5")
        self.assertEqual(code, 0)
        self.assertIn("approval.approved  you    ship-update  01RUN", out)

    def test_audit_logins(self) -> None:
        """The list leaves out logins by commands and says so, unless it is called with --all, --json or a type."""
        listed = {"items": [RECORD], "cursor": None}
        for query in ("limit=50&logins=false", "limit=50", "type=operator.login&limit=50"):
            self.site.answer("GET", f"/v1/audit?{query}", listed)
        code, _, err = self.as_operator("audit", "list")
        self.assertEqual(
            (code, err), (0, "The login and logout of each command are left out. To list them too, add --all.\n")
        )
        for more in (("--all",), ("--json",), ("--type", "operator.login")):
            self.assertEqual(self.as_operator("audit", "list", *more)[::2], (0, ""), more)

    def test_audit_about(self) -> None:
        """Each row says what it is about, such as the file that was trusted, and by whom."""
        you, agent = RECORD["actor"], {"type": "agent", "id": "01M8HR840MWP5VE45TMHBFDGM9"}
        bare = {**RECORD, "action": None, "connector": None, "run_id": "01M8HR84TEK1J0CZE2HENJ0E8A"}
        rows = [
            {**bare, "type": "trust.given", "payload": {"kind": "config", "name": "config.yaml"}, "actor": you},
            {**bare, "type": "trust.given", "connector": "local://me/chat", "actor": you},
            {**bare, "type": "session.started", "payload": {"agent": "codex\x1b"}, "actor": agent},
        ]
        self.site.answer("GET", "/v1/audit?limit=50&logins=false", {"items": rows, "cursor": None})
        lines = [" ".join(line.split()) for line in self.as_operator("audit", "list")[1].splitlines()]
        for line, told in zip(
            lines[1:],
            (
                "trust.given you config.yaml NJ0E8A",
                "trust.given you local://me/chat NJ0E8A",
                "session.started agent BFDGM9 codex␛ NJ0E8A",
            ),
            strict=True,
        ):
            self.assertTrue(line.endswith(told), line)
        self.site.answer("GET", "/v1/audit/A1", {**RECORD, "actor": you})
        self.assertRegex(self.as_operator("audit", "show", "A1")[1], r"actor +you\n")

    def test_sessions_of_commands(self) -> None:
        """The ended sessions of commands are left out, unless they are asked for, or a program reads the list."""
        for query in ("limit=50&commands=false", "limit=50"):
            self.site.answer("GET", f"/v1/sessions?{query}", {"items": [], "cursor": None})
        for more, left_out in (((), True), (("--all",), False), (("--json",), False)):
            self.site.asked.clear()
            self.assertEqual(self.as_operator("sessions", "list", *more)[0], 0)
            asked = [each.path for each in self.site.asked if each.path.startswith("/v1/sessions")]
            self.assertEqual(["commands=false" in path for path in asked], [left_out])

    def test_runs(self) -> None:
        """A run tells its state, attempts and why, and how to settle it."""
        self.site.answer("GET", f"/v1/runs/{RUN}", RUN_ROW)
        out = self.as_operator("runs", "show", RUN)[1]
        for part in (
            "unknown",
            "#eng",
            "outcome_unknown: It may have happened.",
            "post  1",
            "run settle 01RUN",
            "attempt 1 (text/html)\n  │ <p>Oops",
        ):
            self.assertIn(part, out)
        self.assertIn("To ask the service: aileron run reconcile 01RUN\nOr check it yourself", out)
        self.site.answer("GET", f"/v1/runs/{RUN}", {**RUN_ROW, "reconcilable": False})
        out = self.as_operator("runs", "show", RUN)[1]
        self.assertIn(
            "Aileron cannot look up the outcome of this run.\nCheck it yourself and record the outcome: ", out
        )
        self.assertEqual(("run settle 01RUN" in out, "reconcile" in out), (True, False))
        self.site.answer("GET", "/v1/runs?gated=true&limit=50", {"items": [RUN_ROW], "cursor": None})
        self.assertIn("01RUN", self.as_operator("runs", "list", "--gated")[1])

    def test_missing(self) -> None:
        """Of a run that there is not, the command that lists runs is told, on a line of its own."""
        self.site.answer("GET", "/v1/runs/nope", NotFound("There is no such run."))
        code, _, err = self.as_operator("runs", "show", "nope")
        self.assertEqual((code, "  See what exists:\n    aileron run list\n" in err), (1, True), err)

    def test_filters(self) -> None:
        """A time or a state that there is not is refused, and what it can be is told."""
        for arguments, told in (
            (("audit", "list", "--since", "yesterday"), "--since must be a time, such as 2026-01-31T12:00:00Z."),
            (("audit", "list", "--until", "now"), "--until must be a time"),
            (("runs", "list", "--state", "done"), "--state done: use received, pending_approval"),
        ):
            code, out, err = self.as_operator(*arguments)
            self.assertEqual((code, out, told in err), (2, "", True), err)

    def test_save(self) -> None:
        """What is attached to a result, or to an earlier step of a run that failed, becomes files that replace none."""
        picture = {"media_type": "image/png", "base64": "AAEC"}
        output = {"caption": "c", "shown": [picture, {"media_type": "application/x-odd", "text": "ü"}]}
        row = {**RUN_ROW, "state": "completed", "failure": None, "result": {"output": output, "steps": {"a": output}}}
        self.site.answer("GET", f"/v1/runs/{RUN}", row)
        out = self.as_operator("runs", "show", RUN)[1]
        self.assertEqual(("attachment 1: image/png" in out, "AAEC" in out), (True, False))
        self.assertIn(f"aileron run save {RUN} DIRECTORY", out)
        directory = Path(self.mktemp()) / "there"
        code, out, _ = self.as_operator("runs", "save", RUN, str(directory))
        files = {each.name: each.read_bytes() for each in directory.iterdir()}
        self.assertEqual((code, files), (0, {f"{RUN}-1.png": b"\0\1\2", f"{RUN}-2": "ü".encode()}))
        self.assertEqual(out, f"{directory / f'{RUN}-1.png'}\n{directory / f'{RUN}-2'}\n")
        (directory / f"{RUN}-1.png").write_bytes(b"mine")
        code, _, err = self.as_operator("runs", "save", RUN, str(directory))
        self.assertEqual((code, "File exists" in err, (directory / f"{RUN}-1.png").read_bytes()), (1, True, b"mine"))
        picture = {"media_type": "image/png", "base64": "AAEC"}
        failed = {"state": "failed", "result": None, "steps": [{"id": "a", "output": {"shown": picture}}]}
        for row, names in (
            (failed, [f"{RUN}-1.png"]),
            ({"result": None}, []),
            ({"result": {"output": "done", "steps": {}}}, []),
        ):
            self.site.answer("GET", f"/v1/runs/{RUN}", {**RUN_ROW, **row})
            said = self.as_operator("runs", "show", RUN)[1]
            self.assertEqual(f"aileron run save {RUN} DIRECTORY" in said, bool(names))
            directory = Path(self.mktemp())
            code, out, _ = self.as_operator("runs", "save", RUN, str(directory))
            self.assertEqual((code, out == "Nothing is attached to it.\n"), (0, not names))
            self.assertEqual([each.name for each in directory.iterdir()] if directory.exists() else [], names)

    def test_settle(self) -> None:
        """Settling says what was found out; without saying which it is a usage error."""
        self.site.answer("POST", f"/v1/runs/{RUN}/resolve", {**RUN_ROW, "state": "failed"})
        self.assertEqual(self.command("runs", "settle", RUN)[0], 2)
        code, out, _ = self.as_operator("runs", "settle", RUN, "--did-not-happen", "--note", "not there")
        self.assertEqual((code, out), (0, "The run is now failed.\n"))
        sent = self.site.bodies("POST", f"/v1/runs/{RUN}/resolve")
        self.assertEqual(sent, [{"outcome": "did_not_happen", "note": "not there"}])
        self.site.answer("POST", f"/v1/runs/{RUN}/resolve", {**RUN_ROW, "id": "R2", "state": "pending_approval"})
        out = self.as_operator("runs", "settle", RUN, "--run-again")[1]
        self.assertEqual(out, "Requested again as R2. It may happen twice if you approve it: aileron approve R2\n")

    def test_undo(self) -> None:
        """Undoing says under which ID it is requested."""
        self.site.answer("POST", f"/v1/runs/{RUN}/undo", {**RUN_ROW, "id": "R2", "state": "pending_approval"})
        code, out, _ = self.as_operator("runs", "undo", RUN)
        self.assertEqual((code, out), (0, "Requested as R2. Review it: aileron approval show R2\n"))

    def test_reconcile(self) -> None:
        """Looking for it says what was found, why nothing could be, and how the run stands then."""
        path, fault = f"/v1/runs/{RUN}/reconcile", {"class": "network_error", "message": "Nobody there."}
        for happened, failure, said in (
            (True, None, "It happened: the service found it by its key.\nThe run is completed.\n"),
            (False, None, "It did not happen.\nThe run is failed.\n"),
            (
                None,
                fault,
                "does not prove that it did not happen.\n  network_error: Nobody there.\nThe run is unknown.\n",
            ),
        ):
            state = {True: "completed", False: "failed", None: "unknown"}[happened]
            answer = {"run": {**RUN_ROW, "state": state}, "happened": happened, "failure": failure}
            self.site.answer("POST", path, answer)
            code, out, _ = self.as_operator("runs", "reconcile", RUN)
            self.assertEqual(code, 0)
            self.assertTrue(out.endswith(said), out)
            self.assertEqual(json.loads(self.as_operator("runs", "reconcile", RUN, "--json")[1]), answer)

    def test_no_lookup(self) -> None:
        """Where nothing can be looked up, the command says what else can be done."""
        self.site.answer("POST", f"/v1/runs/{RUN}/reconcile", CapabilityDenied("local/x cannot look that up."))
        code, _, err = self.as_operator("runs", "reconcile", RUN)
        settle = "  Check it yourself and record the outcome:\n    aileron run settle 01RUN --happened (or"
        self.assertEqual(code, 1)
        self.assertIn(f"local/x cannot look that up. Nothing was sent.\n{settle}", err)
        self.assertNotIn("connector show", err)
        self.site.answer("POST", f"/v1/runs/{RUN}/reconcile", VaultLocked("The vault is locked."))
        self.assertIn("aileron vault unlock", self.as_operator("runs", "reconcile", RUN)[2])

    def test_session(self) -> None:
        """A session tells its claims as claims, the process that was seen or that none was, and what its calls cost."""
        peer = {"pid": 7, "executable": "/bin/x\x1b", "working_dir": None}
        row = {"id": "S", "state": "running", "started_at": "t", "agent": "a", "working_dir": "/w", "peer": peer}
        self.site.answer("GET", "/v1/sessions/S", row)
        out = self.as_operator("sessions", "show", "S")[1]
        for part in (
            "agent (self-reported)      a\n",
            "directory (self-reported)  /w\n",
            "PID 7, /bin/x␛ in (hidden)\n",
        ):
            self.assertIn(part, out)
        self.assertEqual(json.loads(self.as_operator("sessions", "show", "S", "--json")[1]), row)
        self.site.answer("GET", "/v1/sessions/S", {**row, "peer": None})
        self.assertRegex(self.as_operator("sessions", "show", "S")[1], "process +unknown\n")
        row = {"id": "S", "state": "running", "started_at": "t", "agent": "evil\x1b[2J", "working_dir": "/w"}
        self.site.answer("GET", "/v1/sessions?live=true&limit=50&commands=false", {"items": [row], "cursor": None})
        out = self.as_operator("sessions", "list", "--live")[1]
        self.assertIn("AGENT (SELF-REPORTED)", out)
        self.assertIn("PROCESS", out)
        self.assertIn("evil␛[2J", out)
        row = {"id": "S", "state": "running", "started_at": "t", "agent": "a", "working_dir": "/w"}
        busy = {**row, "gateway": {"requests": 3, "input_tokens": 12345, "output_tokens": 678}}
        self.site.answer("GET", "/v1/sessions?limit=50&commands=false", {"items": [busy, row], "cursor": None})
        titles, *lines = self.as_operator("sessions", "list")[1].splitlines()
        self.assertEqual([line[titles.index("TOKENS") :] for line in lines], ["12 345 in, 678 out", "-"])
        self.site.answer("GET", "/v1/sessions/S", busy)
        self.assertRegex(self.as_operator("sessions", "show", "S")[1], "tokens +12 345 in, 678 out\n")

    def test_switch(self) -> None:
        """Actions are switched on and off."""
        self.site.answer("PATCH", "/v1/actions/x", {})
        self.assertEqual(self.as_operator("action", "disable", "x")[:2], (0, "x is disabled.\n"))
        self.assertEqual(self.as_operator("action", "enable", "x")[:2], (0, "x is enabled.\n"))
        self.assertEqual(self.site.bodies("PATCH", "/v1/actions/x"), [{"enabled": False}, {"enabled": True}])

    def test_lock(self) -> None:
        """Locking ends the login that asked for it, which is no error."""

        def lock(_body: object) -> object:
            self.site.logins.clear()
            return {"state": "locked"}

        self.site.answer("POST", "/v1/vault/lock", lock)
        self.site.answer("POST", "/v1/operator/logout", Unauthorized("Nobody knows this token."))
        self.assertEqual(self.as_operator("vault", "lock")[0], 0)


_OPERATION = {**answered("connector")["operations"][0], "precondition": [], "description": "Posts\x1b[2J."}
CONNECTOR = answered("connector", name="local://me/chat", hosts=["chat.invalid:443"], operations=[_OPERATION])


class LookingTests(ServedCase):
    def test_connector(self) -> None:
        """A connector is shown with where it may send and what it can do; nothing of it acts on the terminal."""
        self.site.answer("GET", "/v1/connectors", {"items": [CONNECTOR], "problems": []})
        self.site.answer("GET", "/v1/trust", {"items": []})
        out = self.as_operator("connector", "show", "local://me/chat")[1]
        for part in ("a binding can set another", "chat.invalid:443", "api_key, in Authorization", "Posts␛[2J."):
            self.assertIn(part, out)
        self.assertIn("no, but can be looked up  7", out)
        variable = {"name": "site", "title": "Site", "pattern": "[a-z]+", "example": "acme", "default": None}
        template = {"text": "https://{site}.invalid", "variables": [variable]}
        self.site.answer("GET", "/v1/connectors", {"items": [{**CONNECTOR, "template": template}], "problems": []})
        out = self.as_operator("connector", "show", "local://me/chat")[1]
        self.assertIn("https://{site}.invalid (a binding sets site)", out)
        for settings, said in (
            ({"api": "https://api.invalid"}, "requests to https://api.invalid, which Aileron adds it to"),
            ({"variable": "TOKEN"}, "the environment variable TOKEN: the program and what it starts can read it"),
        ):
            local = {**CONNECTOR, "credential": {**CONNECTOR["credential"], "settings": settings}}
            self.site.answer("GET", "/v1/connectors", {"items": [local], "problems": []})
            self.assertIn(said, self.as_operator("connector", "show", "local://me/chat")[1])
        code, _, err = self.as_operator("connector", "show", "local://me/other")
        self.assertEqual((code, "aileron connector list" in err), (1, True))

    def test_binding(self) -> None:
        """A binding is shown with what it opens for, what is wrong, and what to do where that no longer fits."""
        self.site.answer("GET", PATH, binding())
        self.assertIn("It can be used only for:", self.as_operator("binding", "show", NAME)[1])
        self.site.answer("GET", PATH, binding(**MOVED))
        _, out, err = self.as_operator("binding", "show", NAME)
        self.assertIn("needs rebind", out)
        self.assertIn(f"aileron credential rebind {NAME}", err)
        self.site.answer("GET", PATH, binding(base_url="https://127.1", fits=False))
        _, out, err = self.as_operator("binding", "show", NAME)
        self.assertIn("needs setup", out)
        self.assertIn("must have a proper address", err)
        self.assertIn(f"aileron credential revoke {NAME}", err)
        code, _, err = self.as_operator("binding", "rebind", NAME)
        self.assertEqual((code, "Nothing was rebound" in err, "aileron credential setup" in err), (1, True, True))

    def test_gateway(self) -> None:
        """Of each provider what was counted is told, and nothing of what was not."""
        self.site.answer("GET", "/v1/status", {"gateway": {"totals": answered("traffic")}})
        out = self.command("gateway")[1]
        self.assertIn("claude    3      1            6 in, 7 out  8       2xx: 1     complete: 1, cut: 1", out)
        tools = [{"provider": "openai", "kind": "web_search", "requests": 1234, "refused": 2}]
        self.site.answer("GET", "/v1/status", {"gateway": {"totals": {**answered("traffic"), "provider_tools": tools}}})
        self.assertIn("openai was asked to run web_search: 1 234 requests (refused: 2)", self.command("gateway")[1])
        self.site.answer("GET", "/v1/status", {})
        self.assertEqual(self.command("gateway")[1], "No LLM traffic yet.\n")

    def test_not_offered(self) -> None:
        """Of an action that is not offered the reason is told, and what to do; with --schema its schema is shown."""
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
        item: dict[str, Any] = dict.fromkeys(("tool_name", "source", "digest", "description"), "x")
        item |= {"name": "hello", "version": "1", "gated": True, "enabled": True, "connectors": [], "preview": None}
        self.site.answer("GET", "/v1/actions/hello", {**item, "input_schema": {"additionalProperties": False}})
        self.assertNotIn("additionalProperties", self.as_operator("action", "show", "hello")[1])
        self.assertIn("additionalProperties", self.as_operator("action", "show", "hello", "--schema")[1])
