"""Where LLM traffic goes after one daemon has replaced another that was started elsewhere."""

from __future__ import annotations

import io
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.vault import unlocking
from aileron.features.gateway import routing
from aileron.features.launch.ensuring import ensure_daemon
from aileron.home.discovery import Discovery, live_discovery
from aileron.vault.keys import DataKey
from tests.cli.daemon import KEY, CommandCase

COMPANY, DEFAULT, OTHER = "https://llm.company.test/v1", "https://api.openai.com", "https://other.test"
VARIABLE = "AILERON_OPENAI_BASE_URL"


def status(base_url: str, source: str, *proxies: tuple[str, str]) -> Mapping[str, Any]:
    """What a locked daemon tells of its gateway."""
    return {
        "state": "locked",
        "service": "aileron",
        "gateway": {
            "providers": [{"name": "openai", "base_url": base_url, "prefix": "/openai", "source": source}],
            "proxies": [{"variable": name, "value": value} for name, value in proxies],
        },
    }


class RoutingCase(CommandCase):
    """A daemon runs, with a locked vault.

    :ivar started: the environments that daemons were started from.
    """

    def setUp(self) -> None:
        super().setUp()
        self.site.state = "locked"
        self.serve()
        self.started: list[Mapping[str, str]] = []
        self.stopped = 0
        self.patch(unlocking, "stop", self._stop)
        self.patch(unlocking, "start", self._start)

    def _stop(self, _cli: CliContext) -> bool:
        self.stopped += 1
        return True

    def _start(self, cli: CliContext, _key: DataKey | None, _confirmed: str | None = None) -> Discovery:
        self.started.append(cli.environ)
        self.site.state = "unlocked"
        found = live_discovery(self.home)
        assert found is not None
        return found

    def unlock(self, *typed: str, told: Mapping[str, Any]) -> str:
        """Unlock from this terminal, and return what is said."""
        self.site.answer("GET", "/v1/status", told)
        self.typed = [*typed]
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            unlocking.restart_with(self.cli_context(), DataKey(KEY))
        return out.getvalue()

    def routed(self) -> str | None:
        """The address of the provider that the last daemon was started with."""
        return self.started[-1].get(VARIABLE)


class UnlockTests(RoutingCase):
    """Unlocking from another terminal than that in which the daemon was started."""

    def test_same(self) -> None:
        """Where both say the same, nobody is asked."""
        self.assertEqual(self.unlock(told=status(DEFAULT, "default")), "")
        self.site.state = "locked"
        self.environ |= {VARIABLE: COMPANY + "/", "HTTPS_PROXY": "http://me:secret@proxy.test:3128/"}
        self.unlock(told=status(COMPANY, "environment", ("https_proxy", "http://proxy.test:3128")))
        self.assertEqual((self.routed(), len(self.started)), (COMPANY + "/", 2))

    def test_kept(self) -> None:
        """The daemon's addresses are kept if the person says so, also where this terminal has others."""
        told = status(COMPANY, "environment", ("https_proxy", "http://proxy.test:3128"))
        said = self.unlock("daemon", told=told)
        self.assertIn(f"{VARIABLE}: daemon {COMPANY}, this terminal not set", said)
        self.assertEqual((self.routed(), self.started[-1]["https_proxy"]), (COMPANY, "http://proxy.test:3128"))
        for source in ("default", "config"):
            self.site.state = "locked"
            self.environ |= {VARIABLE: OTHER, "HTTPS_PROXY": "http://me:secret@other.test:1"}
            said = self.unlock("daemon", told=status(DEFAULT, source))
            self.assertIn(f"{VARIABLE}: daemon not set, this terminal {OTHER}", said)
            self.assertNotIn("secret", said)
            self.assertEqual((self.routed(), "HTTPS_PROXY" in self.started[-1]), (None, False))

    def test_this_terminal(self) -> None:
        """This terminal's are used if the person says so."""
        self.unlock("terminal", told=status(COMPANY, "environment"))
        self.assertIsNone(self.routed())

    def test_neither(self) -> None:
        """Any other word leaves the daemon as it is, and so does nobody who could be asked."""
        for typed in (["y"], [""], []):
            with self.assertRaises(CommandError) as caught:
                self.unlock(*typed, told=status(COMPANY, "environment"))
            self.assertIn("Nothing was changed.", str(caught.exception))
        self.assertEqual((self.stopped, self.started), (0, []))

    def test_no_daemon(self) -> None:
        """A daemon that replaces none has the environment of the terminal."""
        for module in (unlocking, routing):
            self.patch(module, "live_discovery", lambda _home: None)
        self.environ |= {VARIABLE: COMPANY}
        self.unlock(told=status(DEFAULT, "default"))
        self.assertEqual(self.routed(), COMPANY)


class LaunchTests(RoutingCase):
    """A launch whose environment sends a provider's traffic somewhere."""

    def launch(self, told: Mapping[str, Any]) -> None:
        """Do what a launch does first; the vault is open."""
        self.site.state = "unlocked"
        self.home.secrets.write_text("{}")
        self.site.answer("GET", "/v1/status", told)
        ensure_daemon(self.cli_context())

    def test_elsewhere(self) -> None:
        """It is refused where the daemon that runs sends that traffic elsewhere, with both addresses."""
        self.environ |= {VARIABLE: COMPANY}
        with self.assertRaises(CommandError) as caught:
            self.launch(status(DEFAULT, "default"))
        for text in (COMPANY, "No agent was started."):
            self.assertIn(text, str(caught.exception))

    def test_there(self) -> None:
        """It goes on where the daemon sends it there, whatever says so, and where the environment says nothing."""
        self.launch(status(COMPANY, "environment"))
        self.environ |= {VARIABLE: COMPANY}
        self.launch(status(COMPANY, "environment"))
        self.launch(status(COMPANY, "config"))
