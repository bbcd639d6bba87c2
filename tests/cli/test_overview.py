"""C{aileron} alone says how things are and what to do next; a mistyped command is answered with the one meant."""

from __future__ import annotations

import json
import os
from typing import Any

import attrs

from aileron.cli.errors import CommandError
from aileron.home.discovery import live_discovery, write_discovery
from tests.cli.daemon import CommandCase
from tests.cli.test_trust import item


class OverviewTests(CommandCase):
    """The command without a command."""

    def overview(self) -> str:
        """What it prints; it must succeed."""
        code, out, err = self.command()
        self.assertEqual((code, err.count("aileron:")), (0, 0))
        self.assertTrue(out.endswith("All commands: aileron --help\n"))
        return out

    def test_no_daemon(self) -> None:
        """Without a vault one is to be made; with one the daemon is to be started."""
        self.assertIn("There is no vault yet.\n\nNext: aileron demo, or aileron setup\n", self.overview())
        self.home.secrets.touch()
        self.assertIn("The daemon is not running.\n\nNext: aileron daemon start\n", self.overview())

    def test_without_setup(self) -> None:
        """Where setup is off, the overview names what makes a vault, and what adds an action."""
        self.home.config.write_text("features: {setup: off, demo: off}\n")
        self.home.config.chmod(0o600)
        self.assertIn("There is no vault yet.\n\nNext: aileron vault init\n", self.overview())
        self.serve()
        found = live_discovery(self.home)
        assert found is not None
        write_discovery(self.home, attrs.evolve(found, features_off=("setup",)))
        for state, step in (("missing", "aileron vault init"), ("unlocked", "aileron action add FILE")):
            self.site.answer("GET", "/v1/status", {"vault_state": state, "counts": {}, "uptime_seconds": 61})
            self.assertIn(f"\nNext: {step}\n", self.overview())

    def test_not_active(self) -> None:
        """Files that are not active are to be trusted; those that cannot be are looked at."""
        self.serve("ail_c_local")
        status: dict[str, Any] = {
            "vault_state": "unlocked",
            "counts": {"actions": 1, "load_errors": 2},
            "uptime_seconds": 61,
        }
        self.site.answer("GET", "/v1/status", status)
        known = item("known", state="trusted")
        for items, step in (
            ([known, item("local://me/x", "connector"), item("a")], "aileron action trust"),
            ([known, item("local://me/x", "connector", "changed")], "aileron connector trust"),
            ([known, item("config.yaml", "config")], "aileron config trust"),
            ([known, item("a", lacks=["needs a connector that is not there"])], "aileron doctor"),
            ([known], "aileron doctor"),
        ):
            self.site.answer("GET", "/v1/trust", {"items": items})
            self.assertIn(f"\nNext: {step}\n", self.overview())

    def test_daemon(self) -> None:
        """Of a daemon all is told that C{status} tells, and the step that its state asks for."""
        self.serve()
        for state, counts, step in (
            ("missing", {}, "aileron setup"),
            ("locked", {"pending_approvals": 1}, "aileron vault unlock"),
            ("unlocked", {"pending_approvals": 1, "actions": 1}, "aileron watch, or aileron open"),
            ("unlocked", {"actions": 0}, "aileron setup, or aileron action add FILE"),
            ("unlocked", {"actions": 1}, "aileron launch AGENT (claude, codex, goose, opencode or pi)"),
        ):
            status: dict[str, Any] = {"vault_state": state, "counts": counts, "uptime_seconds": 61}
            self.site.answer("GET", "/v1/status", status)
            out = self.overview()
            self.assertIn(f"\nNext: {step}\n", out)
            self.assertTrue(out.startswith(self.command("status")[1]))
            self.assertNotIn("Review pending approvals", self.command()[2], "the next step says it")


class StatusTests(CommandCase):
    """C{status}, which tells what C{daemon status} told."""

    def test_not_running(self) -> None:
        """Without a daemon it fails, and says so to a person and to a program."""
        code, out, err = self.command("status")
        self.assertEqual((code, out, "aileron daemon start" in err), (1, "", True))
        code, out, _ = self.command("status", "--json")
        self.assertEqual((code, json.loads(out)), (1, {"running": False, "pid": None, "home": str(self.home.root)}))

    def test_running(self) -> None:
        """Of a daemon it tells the process and the home, too."""
        self.serve()
        self.site.answer("GET", "/v1/status", {"vault_state": "unlocked", "uptime_seconds": 1})
        code, out, _ = self.command("status")
        self.assertEqual(code, 0)
        self.assertRegex(out, rf"process +{os.getpid()}\n")
        self.assertRegex(out, rf"home +{self.home.root}\n")
        told = json.loads(self.command("status", "--json")[1])
        self.assertEqual((told["running"], told["pid"], told["vault_state"]), (True, os.getpid(), "unlocked"))


class ShortTests(CommandCase):
    """C{status --short}, which a status line runs every few seconds."""

    def short(self) -> str:
        """What it prints; it succeeds, and no passphrase is asked for."""
        code, out, err = self.command("status", "--short")
        self.assertEqual((code, err, out.count("\n")), (0, "", 1))
        return out.removeprefix("aileron: ").strip()

    def test_no_daemon(self) -> None:
        """Without a daemon, or with one that does not answer, it says so, and is no error."""
        self.assertEqual(self.short(), "not running")
        self.serve()

        def silent(*_: object) -> dict[str, Any]:
            raise CommandError("No daemon responds.")

        self.patch(self.site, "probe", silent)
        self.assertEqual(self.short(), "not responding")

    def test_daemon(self) -> None:
        """It tells what needs a person, and nothing else."""
        self.serve()
        for status, told in (
            ({"vault_state": "unlocked", "counts": {"sessions": 3}}, "ok"),
            ({"vault_state": "unlocked", "counts": {"pending_approvals": 2}}, "2 pending"),
            (
                {"vault_state": "locked", "counts": {"unknown_outcomes": 1}, "pause": {"since": "x"}},
                "1 unknown, vault locked, paused",
            ),
            ({"vault_state": "unlocked", "record": {"tampered": 1}}, "tampering"),
        ):
            self.site.answer("GET", "/v1/status", status)
            self.assertEqual(self.short(), told)
        self.assertEqual(self.command("status", "--short", "--json")[0], 2)


class SuggestionTests(CommandCase):
    """Commands that do not exist."""

    def test_meant(self) -> None:
        """A command that is nearly one of ours is a usage error that names it; another is not guessed at."""
        code, out, err = self.command("aproval", "list")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("No such command 'aproval'. Did you mean 'approval'?", err)
        self.assertNotIn("mean", self.command("xyzzy")[2])
        self.assertNotIn("No such command", self.command("--statu")[2])

    def test_within_a_group(self) -> None:
        """What a group has under that name, or nearly, is named with its group; what most groups have is not."""
        for name, meant in (
            ("settle", "'run settle'"),
            ("setle", "'run settle'"),
            ("aprove", "'approve'"),
            ("rebind", "'credential rebind'"),
            ("stat", "'status'"),
        ):
            self.assertIn(f"No such command '{name}'. Did you mean {meant}?\n", self.command(name)[2])
        self.assertNotIn("mean", self.command("list")[2])
