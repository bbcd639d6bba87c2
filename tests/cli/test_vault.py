"""Another passphrase and another vault: what fails leaves everything as it was."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import TypeVar

import attrs

from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.vault import unlocking
from aileron.cli.vault.command import make_vault
from aileron.features.launch.ensuring import ensure_daemon
from aileron.home.discovery import Discovery
from aileron.model.errors import StoreUnavailable, WeakPassphrase, WrongPassphrase
from aileron.vault import keys
from aileron.vault.keys import DataKey
from tests.cli.daemon import KEY, OPERATOR_URL, PASSPHRASE, URL, CommandCase

T = TypeVar("T")

_NEW = "Rote Wiese 48 Kuchen Turm"
_FOUND = Discovery(URL, OPERATOR_URL, 1, "life", "0.1.0", "2026-01-01T00:00:00.000000Z", "lk")
_COMMANDS: Mapping[str, Callable[[CliContext], Discovery]] = {
    "change": lambda cli: unlocking.change_passphrase(cli, None, None),
    "reset": lambda cli: unlocking.reset(cli, None),
}


class ChangeTests(CommandCase):
    """Another passphrase, and an empty vault in the place of the old one.

    :ivar done: what is done to the daemon and the file, in order; a start with the key that it was given.
    :ivar fails: the steps that fail.
    """

    def setUp(self) -> None:
        super().setUp()
        self.done: list[str] = []
        self.fails: set[str] = set()
        self.ran, self.new = True, _NEW
        self.patch(unlocking, "stop", lambda _cli: self._did("stop", self.ran))
        self.patch(unlocking, "start", self._start)
        self.patch(keys, "change_passphrase", lambda _path, old, new: self._did(f"change {old} to {new}", _new_key()))
        self.patch(keys, "reset", lambda _path, new, **_: self._did(f"reset to {new}", _new_key()))

    def cli_context(self) -> CliContext:
        """Those of the case, with a new passphrase in them."""
        return attrs.evolve(super().cli_context(), new_passphrase=self._new_passphrase)

    def _new_passphrase(self, _descriptor: int | None) -> str:
        keys.check_passphrase(self.new)
        return self.new

    def _start(self, _cli: CliContext, key: DataKey | None, _confirmed: str | None = None) -> Discovery:
        names = {None: "none", _mark(DataKey(KEY)): "old", _mark(_new_key()): "new"}
        return self._did(f"start {names[_mark(key)]}", _FOUND)

    def _did(self, what: str, answer: T) -> T:
        self.done.append(what)
        if what.split(" ", maxsplit=1)[0] in self.fails:
            raise StoreUnavailable("The disk is full.")
        return answer

    def given(self, command: str, typed: str, error: type[Exception] | None = None) -> str:
        """Give the command, with what the person types, and return what it says; C{error}: it fails so."""
        self.done, self.typed = [], [typed] * 3
        cli, out = self.cli_context(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            if error is None:
                _COMMANDS[command](cli)
            else:
                self.assertRaises(error, _COMMANDS[command], cli)
        return out.getvalue()

    def test_changed(self) -> None:
        """The daemon ends, the file is written, the daemon starts with the new key; what follows is said before."""
        said = self.given("change", PASSPHRASE)
        self.assertEqual(self.done, ["stop", f"change {PASSPHRASE} to {_NEW}", "start new"])
        self.assertIn("need your approval again", said)
        self.assertNotIn(_NEW, said)
        self.fails = {"start"}
        self.assertIn("Passphrase changed", self.given("change", PASSPHRASE, StoreUnavailable))

    def test_refused(self) -> None:
        """With a wrong passphrase, a new one that is weak, or another word than the one asked, nothing is stopped."""
        for command, typed, new, error in (
            ("change", "Falsche Wiese 47 Kuchen", _NEW, WrongPassphrase),
            ("change", PASSPHRASE, "short", WeakPassphrase),
            ("reset", "reset", "short", WeakPassphrase),
            *(("reset", word, _NEW, CommandError) for word in ("", "yes", "RESET", "reset it")),
        ):
            self.new = new
            self.given(command, typed, error)
            self.assertEqual(self.done, [], (command, typed))

    def test_failed(self) -> None:
        """While the daemon does not end no file is touched; one that is not written leaves all as it was."""
        change, reset = f"change {PASSPHRASE} to {_NEW}", f"reset to {_NEW}"
        for command, typed, fails, ran, done in (
            ("change", PASSPHRASE, "stop", True, ["stop"]),
            ("change", PASSPHRASE, "change", True, ["stop", change, "start old"]),
            ("reset", "reset", "stop", True, ["stop"]),
            ("reset", "reset", "reset", True, ["stop", reset, "start none"]),
            ("reset", "reset", "reset", False, ["stop", reset]),
        ):
            self.fails, self.ran = {fails}, ran
            self.given(command, typed, StoreUnavailable)
            self.assertEqual(self.done, done)

    def test_reset(self) -> None:
        """It says what is void before it asks, and begins anew."""
        said = self.given("reset", "reset")
        self.assertEqual(self.done, ["stop", f"reset to {_NEW}", "start new"])
        for word in ("credential", "trust", "approval", "restore it instead"):
            self.assertIn(word, said)
        self.home.secrets.write_text("{}")
        self.assertIn("before-reset", self.given("reset", "reset"))

    def test_next(self) -> None:
        """A command that makes the vault says at its end what comes next; one in the midst of others does not."""
        self.patch(keys, "create", lambda _path, _passphrase: _new_key())
        self.home.secrets.unlink(missing_ok=True)
        code, out, _ = self.command("vault", "init")
        self.assertEqual((code, out.count("aileron open"), self.done), (0, 1, ["stop", "start new"]))
        self.assertIn("aileron open", out.splitlines()[-1])
        with redirect_stdout(io.StringIO()) as heard:
            make_vault(self.cli_context(), None)
        self.assertIn("Vault created", heard.getvalue())
        self.assertNotIn("aileron open", heard.getvalue())

    def test_new_key(self) -> None:
        """A vault in the place of another one signs the audit log with another key, which is shown."""
        key = "ed25519:0123456789abcdef0123456789abcdef"
        self.site.answer("GET", "/v1/status", {"record": {"key": key}})
        self.typed = ["reset"]
        code, out, _ = self.command("vault", "reset")
        self.assertEqual((code, self.done), (0, ["stop", f"reset to {_NEW}", "start new"]))
        self.assertIn(key, out)


class LostTests(CommandCase):
    """A vault that is gone is told from one that never was."""

    def setUp(self) -> None:
        super().setUp()
        self.home.database.touch()

    def test_not_made_by_the_way(self) -> None:
        """Where the daemon remembers a vault none is made, and no agent launched; else one is offered."""
        self.serve()
        self.site.state = "lost"
        code, _, err = self.command("vault", "init")
        self.assertEqual((code, "aileron vault reset" in err, self.home.secrets.exists()), (1, True, False))
        for state, typed, hint in (("lost", ["a person is there"], "vault reset"), ("missing", [], "vault init")):
            self.site.state, self.typed = state, typed
            error = self.assertRaises(CommandError, ensure_daemon, self.cli_context())
            self.assertIn(f"aileron {hint}", error.hint or "")

    def test_status(self) -> None:
        """The status says lost, and what to do; without a daemon it does not guess."""
        self.assertEqual(self.command("vault", "status")[1], "no vault file (the daemon is not running)\n")
        self.serve()
        self.site.state = "lost"
        for arguments in (("vault", "status"), ("daemon", "status")):
            self.assertIn("aileron vault reset", self.command(*arguments)[2])


def _new_key() -> DataKey:
    return DataKey(b"n" * 32)


def _mark(key: DataKey | None) -> bytes | None:
    return None if key is None else key.subkey("test")
