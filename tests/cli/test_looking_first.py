"""A mistyped name or ID, and what a pause stops, is told before any passphrase is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import cast

import click
from attrs import evolve

from aileron.cli._main import aileron
from aileron.cli.context import CliContext, Conversation
from aileron.model.errors import NotFound
from tests.cli.daemon import DECIDE, ONE, RUN, CommandCase, approval
from tests.cli.test_trust import item

WHOLE = "01M8HR84TEK1J0CZE2HENJ0E8A"
PATHS = ("action-approvals", "runs", "grants", "sessions", "bindings")
COMMANDS: Sequence[Sequence[str]] = (
    ("approve", WHOLE),
    ("approve", WHOLE, WHOLE[:-1] + "B"),
    ("deny", WHOLE),
    ("deny", WHOLE, "--end-session"),
    ("approval", "approve", WHOLE),
    ("approval", "deny", WHOLE),
    ("open", "approval", WHOLE),
    ("approval", "edit", WHOLE, "--arg", "a=b"),
    ("approval", "cancel", WHOLE),
    ("approval", "allow-retry", WHOLE),
    ("approval", "snooze", WHOLE),
    ("run", "settle", WHOLE, "--happened"),
    ("run", "settle", WHOLE, "--run-again"),
    ("run", "reconcile", WHOLE),
    ("run", "undo", WHOLE),
    ("run", "cancel", WHOLE),
    ("run", "save", WHOLE, "/nowhere"),
    ("session", "end", WHOLE),
    ("session", "end", WHOLE, "--deny"),
    ("resume", "--session", WHOLE),
    ("grant", "revoke", WHOLE),
    ("operator", "revoke", WHOLE),
    ("approver", "remove", WHOLE),
    ("passkey", "remove", "none"),
    ("vault", "key-source", "remove", "none"),
    ("credential", "setup", "local://me/none"),
    ("credential", "rebind", "none"),
    ("credential", "replace", "none"),
    ("credential", "renew", "none"),
    ("credential", "revoke", "none"),
    ("notification", "add", "none"),
    ("notification", "remove", "none"),
    ("network", "allow", "none.example"),
    ("network", "deny", "none.example"),
    ("action", "trust", "none"),
    ("action", "distrust", "none"),
    ("connector", "trust", "none"),
    ("connector", "distrust", "none"),
    ("config", "distrust", "config.yaml"),
    ("action", "enable", "none"),
    ("action", "disable", "none"),
    ("ask", "allow", "none"),
    ("ask", "deny", "none"),
    ("ask", "show", "none"),
    ("cap", "remove", "none", "--per-day"),
    ("package", "install", "/nowhere/none"),
    ("package", "update", "none"),
    ("package", "uninstall", "none"),
)
PAUSE = {"since": "2026-01-01T00:00:00.000000Z", "by": "o", "reason": None, "session_id": None}


class LookingCase(CommandCase):
    """A daemon that lists without a login, and has nothing."""

    def setUp(self) -> None:
        super().setUp()
        self.serve("ail_c_local")
        self.site.answer_unknown = NotFound("There is no such thing.")
        for path in ("operator/sessions", "actions", "caps", "connectors", "notifications", "egress", "asks", "trust"):
            self.site.answer("GET", f"/v1/{path}", {"items": []})

    def cli_context(self) -> CliContext:
        """A context with a terminal in which nothing is typed."""
        return evolve(super().cli_context(), terminal=lambda: nullcontext(cast("Conversation", None)))

    def refused(self, *arguments: str) -> str:
        """What a command says that fails without a login, a question or a change."""
        self.site.asked.clear()
        self.typed = []
        code, _, err = self.command(*arguments)
        changes = [each.path for each in self.site.asked if each.method != "GET"]
        self.assertEqual((code, changes, "Internal error" in err), (1, [], False), (arguments, err))
        return err


class LookingTests(LookingCase):
    """Commands that are about one thing."""

    def test_missing(self) -> None:
        """A thing that there is not is told at once."""
        for arguments in COMMANDS:
            self.assertRegex(self.refused(*arguments), "no such|not found|There is no|No |is not (installed|trusted)")

    def test_complete(self) -> None:
        """The commands above are all that take an ID and ask for the passphrase."""
        known = {command[:length] for command in COMMANDS for length in (1, 2, 3)}
        self.assertEqual([path for path in _find_with_id(aileron, ()) if path not in known], [])

    def test_opened(self) -> None:
        """The page of a request is opened only if there is one; else the command that lists them is told."""
        self.assertIn("aileron approval list", self.refused("open", "approval", WHOLE))
        self.assertIn("aileron session list", self.refused("resume", "--session", WHOLE))

    def test_nothing_pending(self) -> None:
        """Where nothing is pending, approve and deny say so."""
        self.site.answer("GET", "/v1/action-approvals?limit=20", {"items": [], "cursor": None})
        for name in ("approve", "deny"):
            self.assertIn("There is no pending approval.", self.refused(name))

    def test_decided(self) -> None:
        """What is decided already, or is another request, is told at once; of several, one is enough to go on."""
        decided = {**approval()["run"], "state": "denied"}
        self.site.answer("GET", ONE, approval(run=decided))
        self.assertIn("Already denied; nothing was decided.", self.refused("approve", RUN))
        self.assertIn("Already denied", self.refused("approval", "edit", RUN, "--arg", "a=b"))
        self.one_waits()
        self.assertIn("different digest", self.refused("deny", RUN, "--digest", "sha256:x"))
        code, _, err = self.as_operator("deny", RUN, WHOLE)
        self.assertEqual((code, "1 of 2 were denied" in err), (1, True), err)
        self.assertEqual(len(self.site.bodies("POST", DECIDE)), 1)

    def test_other_state(self) -> None:
        """What cannot be done with a run in its state is told at once, with the state."""
        self.site.answer("GET", f"/v1/runs/{WHOLE}", {"id": WHOLE, "state": "failed"})
        self.site.answer("GET", f"/v1/action-approvals/{WHOLE}", approval(run={"id": WHOLE, "state": "failed"}))
        commands = ("settle --happened", "settle --run-again", "reconcile", "undo", "cancel")
        for command in commands:
            name, *options = command.split()
            self.assertIn("The run is failed. Nothing was changed.", self.refused("run", name, WHOLE, *options))
        self.assertIn("so there is no denial to lift", self.refused("approval", "allow-retry", WHOLE))

    def test_cap(self) -> None:
        """A limit that was set is found, and removed after a login."""
        one = {"action": "a", "argument": None, "per_session": False, "window": "per_day", "most": 1, "set_at": None}
        self.site.answer("GET", "/v1/caps", {"items": [one]})
        self.site.answer("DELETE", "/v1/caps", {"items": []})
        for which in (("a", "--per-hour"), ("a", "--per-day", "--per-session"), ("--per-day",)):
            self.assertIn("You have set no such limit.", self.refused("cap", "remove", *which))
        self.assertEqual(self.as_operator("cap", "remove", "a", "--per-day")[0], 0)

    def test_nothing_new(self) -> None:
        """Where there is nothing new to trust nobody is asked for a passphrase."""
        self.site.answer("GET", "/v1/trust", {"items": [item("a", state="trusted")]})
        self.site.answer("GET", "/v1/actions", {"items": [], "load_errors": []})
        self.assertEqual(self.command("action", "trust")[:2], (0, "Nothing new to trust.\n"))
        self.assertEqual(self.site.logins, [])


def _find_with_id(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the names of the listed commands that take an ID and need a login."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from _find_with_id(command, (*path, name))
        asks = any(each.name == "passphrase_fd" and not getattr(each, "hidden", True) for each in command.params)
        if asks and any(each.metavar in ("ID", "[ID]", "[ID]...") for each in command.params):
            yield (*path, name)


class PausedTests(LookingCase):
    """Commands that a pause would stop half-way."""

    def test_paused(self) -> None:
        """They say first that everything is paused, and how to go on."""
        self.site.answer("GET", "/v1/status", {"pause": PAUSE})
        self.one_waits()
        for arguments in (("approve", RUN), ("run", "undo", RUN), ("run", "settle", RUN, "--run-again")):
            err = self.refused(*arguments)
            self.assertIn("Everything is paused. Nothing was ", err)
            self.assertIn("aileron resume", err)
        code, out, err = self.as_operator("deny", RUN)
        self.assertEqual((code, "Denied" in out), (0, True), err)
