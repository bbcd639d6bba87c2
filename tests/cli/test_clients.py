"""C{aileron mcp config}: other clients."""

from __future__ import annotations

import json

import yaml
from attrs import evolve
from twisted.internet.defer import succeed

from aileron.cli._clients import CLIENTS
from aileron.cli.context import CliContext

from .daemon import LAUNCH_KEY, CommandCase, ServedCase

ENTRY = {"command": "/opt/a b/aileron-mcp", "args": [], "env": {"AILERON_CLIENT": "x", "AILERON_HOME": '/h "q"'}}


class SnippetTests(CommandCase):
    """What is printed."""

    def test_every_client(self) -> None:
        """Each snippet is sound in its client's language and words, and names the program and its variables."""
        for name, client in CLIENTS.items():
            text = client.text(ENTRY)
            whole = yaml.safe_load(text) if name == "continue" else json.loads(text)
            [servers] = whole.values()
            [entry] = servers if isinstance(servers, list) else servers.values()
            entry = entry.get("transport", entry)
            command = entry["command"] if isinstance(entry["command"], str) else entry["command"][0]
            variables = entry["environment" if name == "kilo" else "env"]
            self.assertEqual((command, variables), (ENTRY["command"], ENTRY["env"]), name)
        keys = {name: next(iter(json.loads(CLIENTS[name].text(ENTRY)))) for name in ("cursor", "vscode", "zed")}
        self.assertEqual(keys, {"cursor": "mcpServers", "vscode": "servers", "zed": "context_servers"})

    def test_offered_without_a_person(self) -> None:
        """Clients that hide tools, or ask by themselves before a call, are told not to: Aileron asks."""
        entries = {
            name: next(iter(next(iter(json.loads(CLIENTS[name].text(ENTRY)).values())).values()))
            for name in ("gemini", "qwen", "copilot", "kilo")
        }
        self.assertTrue(entries["gemini"]["trust"] and entries["qwen"]["trust"] and entries["qwen"]["alwaysLoadTools"])
        self.assertEqual((entries["copilot"]["type"], entries["copilot"]["tools"]), ("local", ["*"]))
        self.assertEqual((entries["kilo"]["type"], entries["kilo"]["enabled"]), ("local", True))
        for name, entry in entries.items():
            self.assertEqual(entry["timeout"], 3_600_000, name)

    def test_printed(self) -> None:
        """The snippet alone goes to standard output; where it goes and how the client is let in to standard error."""
        self.serve()
        code, out, err = self.command("mcp", "config", "cursor")
        self.assertEqual(code, 0)
        [entry] = json.loads(out)["mcpServers"].values()
        self.assertEqual(entry["env"], {"AILERON_CLIENT": "cursor", "AILERON_HOME": str(self.home.root)})
        for word in ("~/.cursor/mcp.json", "clients: [cursor]", "aileron config trust"):
            self.assertIn(word, err)
        self.assertNotIn(LAUNCH_KEY, out + err)
        self.assertEqual(self.site.asked, [])

    def test_named(self) -> None:
        """A client gets another name where the person says so, if it is one."""
        code, out, _ = self.command("mcp", "config", "--json", "zed", "--name", "zed-work")
        self.assertEqual((code, json.loads(out)["client"]), (0, "zed-work"))
        self.assertIn('"AILERON_CLIENT": "zed-work"', json.loads(out)["text"])
        self.assertEqual(self.command("mcp", "config", "zed", "--name", "../x")[0], 2)
        self.assertEqual(self.command("mcp", "config", "nobody")[0], 2)


class OpenTests(CommandCase):
    """C{aileron session open}."""

    def test_opened(self) -> None:
        """A session with an end is opened with the launch key; its token is printed once, for an environment."""
        self.serve()
        code, out, err = self.command("sessions", "open", "builder", "--hours", "2")
        self.assertEqual((code, out), (0, "AILERON_URL=http://127.0.0.1:9\nAILERON_TOKEN=ail_a_agent\n"))
        self.assertIn("aileron session end S", err)
        self.assertNotIn("ail_a_agent", err)
        [asked] = self.site.asked
        self.assertEqual((asked.bearer, asked.body["minutes"]), (LAUNCH_KEY, 120))
        self.assertNotIn("lease", asked.body)


class WatchTests(ServedCase):
    """C{aileron session watch}."""

    def cli_context(self) -> CliContext:
        """Without a wait."""
        return evolve(super().cli_context(), pause=lambda _seconds: succeed(None))

    def watched(self, *options: str) -> tuple[int, str, str]:
        """Watch a session whose second record, its end, comes while it is watched."""
        told = [
            {"sequence": 3, "at": "T1", "type": "session.started", "payload": {}, "action": None, "run_id": None},
            {"sequence": 5, "at": "T2", "type": "session.ended", "payload": {"ending": "orphaned", "exit_code": None}},
        ]
        looks = iter((told[:1], told[:1], told[::-1]))
        path = "/v1/audit?session=S&limit=200"
        self.site.answer("GET", "/v1/sessions/S", {"agent": "cursor", "started_at": "T0"})
        self.site.answer("GET", "/v1/events", lambda _: b"event: ready\n\n")
        self.site.answer("GET", path, lambda _: {"items": next(looks), "cursor": None})
        return self.as_operator("sessions", "watch", "S", *options)

    def test_followed(self) -> None:
        """Each record is told once and in order, until the session ends; for programs each is an object."""
        code, out, _ = self.watched()
        self.assertEqual((code, out), (0, "T1  session.started\nT2  session.ended  ending orphaned\n"))
        code, out, _ = self.watched("--json")
        self.assertEqual((code, out.count('"sequence"')), (0, 2))
