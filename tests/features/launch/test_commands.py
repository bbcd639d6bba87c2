"""C{aileron launch}: what it refuses, what it prints, and the daemon that it ensures."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from attrs import evolve

from aileron.cli._main import run
from aileron.cli.context import Links
from aileron.cli.errors import CommandError
from aileron.features.launch.agent import UNATTENDED_WAIT_SECONDS
from aileron.features.launch.commands import MOST_WAIT_SECONDS
from aileron.features.launch.ensuring import ensure_daemon
from tests.cli.daemon import URL, CommandCase


class LaunchTests(CommandCase):
    def install(self, name: str) -> Path:
        """Install a program of that name where the command finds it, and return its directory."""
        programs = Path(self.mktemp()).absolute()
        programs.mkdir()
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
        self.environ |= {"PATH": str(programs), "HOME": str(programs)}
        return programs

    def test_locked(self) -> None:
        """Where nobody can be asked, a locked vault is only warned of, and a missing one ends a launch."""
        error = self.assertRaises(CommandError, ensure_daemon, self.cli_context())
        self.assertIn("aileron vault init", error.hint or "")
        self.serve()
        self.home.secrets.write_text("{}")
        self.site.state = "locked"
        err = io.StringIO()
        with redirect_stderr(err):
            self.assertEqual(ensure_daemon(self.cli_context()).url, URL)
        self.assertIn("aileron vault unlock", err.getvalue())

    def test_refused(self) -> None:
        """Not launched is who nobody knows, with JSON of a launch that is one, or a passphrase in the environment."""
        self.environ["AILERON_VAULT_PASSPHRASE"] = "canary"
        for arguments, expected, says in (
            (("nobody",), 2, "opencode"),
            (("--json", "opencode"), 2, "--json requires --print"),
            (("opencode",), 1, "AILERON_VAULT_PASSPHRASE is set"),
            (("--in-band", "--no-gateway", "sh"), 2, "--in-band needs the gateway"),
            (("--own-tools", "github", "opencode"), 2, "--own-tools requires --sandbox"),
            (("--sandbox", "--own-tools", "nowhere", "opencode"), 1, "No connector declares own tools for nowhere"),
            (("--in-band", "sh"), 1, "AILERON_VAULT_PASSPHRASE is set"),
        ):
            code, out, err = self.command("launch", *arguments)
            self.assertEqual((code, out, says in err, "canary" in err), (expected, "", True, False), err)

    def test_own_tools(self) -> None:
        """A preview has the services, their hosts and the variables, for people and programs; feature off, none is."""
        self.install("opencode")
        self.environ |= {"GH_TOKEN": "ghp_canary", "HOME": "/home/nobody"}
        wanted = ("--sandbox", "--own-tools", "github")
        code, out, err = self.command("launch", "--print", *wanted, "opencode")
        self.assertEqual(code, 0, err)
        self.assertIn("Own tools", out)
        self.assertIn("GH_TOKEN=aileron-placeholder, GITHUB_TOKEN=aileron-placeholder", out)
        self.assertNotIn("canary", out)
        (found,) = json.loads(self.command("launch", "--print", "--json", *wanted, "opencode")[1])["own_tools"]
        self.assertEqual(
            found,
            {
                "service": "github",
                "connector": "builtin://github",
                "hosts": ["api.github.com"],
                "variables": dict.fromkeys(("GH_TOKEN", "GITHUB_TOKEN"), "aileron-placeholder"),
            },
        )
        self.assertNotIn("Own tools", self.command("launch", "--print", "--sandbox", "opencode")[1])
        self.home.config.write_text("features: {own_tools: off}\n")
        self.home.config.chmod(0o600)
        code, out, err = self.command("launch", "--print", *wanted, "opencode")
        self.assertEqual((code, "--own-tools is off" in err), (1, True), err)

    def test_gateway_off(self) -> None:
        """Without the gateway an agent keeps its own way to its model, and in-band mode says that it is off."""
        programs = self.install("opencode")
        whole = self.command("launch", "--print", "--json", "opencode")
        self.home.config.write_text("features: {gateway: off}\n")
        self.home.config.chmod(0o600)
        code, out, err = self.command("launch", "--print", "--json", "opencode")
        self.assertEqual((code, json.loads(out)["gateway"]), (0, None), err)
        self.assertIsNotNone(json.loads(whole[1])["gateway"])
        code, _out, err = self.command("launch", "--in-band", "--print", f"{programs}/opencode")
        self.assertEqual((code, "--in-band is off" in err), (1, True), err)

    def test_gateway_off_untrusted(self) -> None:
        """A config.yaml that may not be trusted keeps no agent that is started away from the gateway."""
        self.install("opencode")
        self.home.config.write_text("features: {gateway: off}\n")
        self.home.config.chmod(0o600)
        found = []

        def drive(work: Callable[[Links], Any]) -> Any:
            launching = work(self.site)
            found.append(launching.cr_frame.f_locals["options"]["no_gateway"])
            launching.close()
            return 0

        code = run(("launch", "opencode"), evolve(self.cli_context(), drive=drive))
        self.assertEqual((code, found), (0, [False]))

    def test_printed(self) -> None:
        """What a launch would do is printed without a daemon; none is started, and no vault is made."""
        programs = self.install("opencode")
        self.environ["OPENAI_API_KEY"] = "sk-canary"
        code, out, err = self.command("launch", "--print", "opencode", "run", "hi")
        self.assertEqual((code, "The daemon is not running" in err), (0, True))
        self.assertIn(f"  │ {programs}/opencode\n  │ run\n  │ hi\n", out)
        self.assertIn("<the session's token>", out)
        self.assertNotIn("canary", out)
        self.assertNotIn("AILERON_LISTED_ACTIONS", out)
        self.assertIn("AILERON_LISTED_ACTIONS", self.command("launch", "--lean", "--print", "opencode")[1])
        self.assertIn("600", self.command("launch", "--wait", "600", "--print", "opencode", "run", "hi")[1])
        self.assertEqual(self.command("launch", "--wait", "3600", "--print", "opencode")[0], 2)
        self.assertEqual(self.command("launch", "--wait", "9", "--in-band", "--print", "opencode")[0], 2)
        self.assertEqual(MOST_WAIT_SECONDS, UNATTENDED_WAIT_SECONDS)
        out = self.command("launch", "--in-band", "--print", f"{programs}/opencode", "hi")[1]
        self.assertIn("/s/<the session's in-band key>/inband/openai/v1", out)
        self.assertNotIn("<the session's token>", out)
        code, out, err = self.command("launch", "--print", "--json", "opencode")
        self.assertEqual((code, json.loads(out)["agent"], json.loads(out)["daemon"]), (0, "opencode", False))
        self.assertEqual((self.home.secrets.exists(), self.home.discovery.exists()), (False, False))
