"""C{aileron} alone says how things are and what to do next; a mistyped command is answered with the one meant."""

from __future__ import annotations

from typing import Any

from tests.cli.daemon import CommandCase


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

    def test_daemon(self) -> None:
        """Of a daemon all is told that C{status} tells, and the step that its state asks for."""
        self.serve()
        for state, counts, step in (
            ("missing", {}, "aileron setup"),
            ("locked", {"pending_approvals": 1}, "aileron vault unlock"),
            ("unlocked", {"pending_approvals": 1, "actions": 1}, "aileron approval watch, or aileron open"),
            ("unlocked", {"actions": 0}, "aileron setup, or aileron action add FILE"),
            ("unlocked", {"actions": 1}, "aileron launch AGENT (claude, codex, goose, opencode or pi)"),
        ):
            status: dict[str, Any] = {"vault_state": state, "counts": counts, "uptime_seconds": 61}
            self.site.answer("GET", "/v1/status", status)
            out = self.overview()
            self.assertIn(f"\nNext: {step}\n", out)
            self.assertTrue(out.startswith(self.command("status")[1]))


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
            ("approve", "'approval approve'"),
            ("aprove", "'approval approve'"),
            ("deny", "'approval deny' or 'egress deny'"),
            ("stat", "'status'"),
        ):
            self.assertIn(f"No such command '{name}'. Did you mean {meant}?\n", self.command(name)[2])
        self.assertNotIn("mean", self.command("list")[2])
