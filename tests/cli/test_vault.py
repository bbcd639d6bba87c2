"""Another passphrase and another vault: what fails leaves everything as it was."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from typing import TypeVar

import attrs

from aileron.cli._context import CliContext
from aileron.cli._errors import CommandError
from aileron.cli.daemon.launch import ensure_daemon
from aileron.cli.vault.unlocking import Steps, change_passphrase, reset
from aileron.errors import StoreUnavailable
from aileron.home import Discovery
from aileron.vault.keys import DataKey, WeakPassphrase, WrongPassphrase
from tests.cli.daemon import KEY, OPERATOR_URL, PASSPHRASE, URL, CommandCase

T = TypeVar("T")

_NEW, _NEW_KEY = "Rote Wiese 48 Kuchen Turm", b"n" * 32
_FOUND = Discovery(URL, OPERATOR_URL, 1, "life", "0.1.0", "2026-01-01T00:00:00.000000Z", "lk")


class VaultCase(CommandCase):
    """Records what is done to the daemon and the file.

    :ivar done: in order; a start with the key that it was given.
    :ivar fails: the steps that fail.
    """

    def setUp(self) -> None:
        super().setUp()
        self.done: list[str] = []
        self.fails: set[str] = set()
        self.ran = True
        self.new = _NEW

    def cli_context(self) -> CliContext:
        """Those of the case, with a new passphrase in them."""
        return attrs.evolve(super().cli_context(), new_passphrase=lambda _descriptor: self.new)

    def steps(self) -> Steps:
        """Steps that only remember."""
        return Steps(
            stop=lambda _cli: self._did("stop", self.ran),
            change=lambda _path, old, new: self._did(f"change {old} to {new}", DataKey(_NEW_KEY)),
            reset=lambda _path, new: self._did(f"reset to {new}", DataKey(_NEW_KEY)),
            start=self._start,
        )

    def _start(self, _cli: CliContext, key: DataKey | None) -> Discovery:
        names = {None: "none", _mark(DataKey(KEY)): "old", _mark(DataKey(_NEW_KEY)): "new"}
        return self._did(f"start {names[_mark(key)]}", _FOUND)

    def _did(self, what: str, answer: T) -> T:
        self.done.append(what)
        if what.split(" ", maxsplit=1)[0] in self.fails:
            raise StoreUnavailable("The disk is full.")
        return answer

    def told(self, call: Callable[[], object]) -> str:
        """What it says."""
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            call()
        return out.getvalue()

    def refused(self, error: type[Exception], call: Callable[[], object]) -> None:
        """Assert that it fails so."""
        self.told(lambda: self.assertRaises(error, call))


class PassphraseTests(VaultCase):
    def change(self, *typed: str) -> Callable[[], Discovery]:
        """The change, with what the person types."""
        self.typed = list(typed or (PASSPHRASE,))
        return lambda: change_passphrase(self.cli_context(), None, None, self.steps())

    def test_changed(self) -> None:
        """The daemon ends, the file is written, the daemon starts with the new key; it says what follows."""
        said = self.told(self.change())
        self.assertEqual(self.done, ["stop", f"change {PASSPHRASE} to {_NEW}", "start new"])
        self.assertIn("asked again", said)
        self.assertNotIn(_NEW, said)

    def test_wrong(self) -> None:
        """With a wrong passphrase nothing is even stopped."""
        self.refused(WrongPassphrase, self.change("Falsche Wiese 47 Kuchen"))
        self.assertEqual(self.done, [])

    def test_weak(self) -> None:
        """With a new passphrase that is refused nothing is stopped either."""

        def refuse(_descriptor: int | None) -> str:
            raise WeakPassphrase("too short")

        self.typed = [PASSPHRASE]
        cli = attrs.evolve(self.cli_context(), new_passphrase=refuse)
        self.refused(WeakPassphrase, lambda: change_passphrase(cli, None, None, self.steps()))
        self.assertEqual(self.done, [])

    def test_not_stopped(self) -> None:
        """While the daemon does not end the file is not touched."""
        self.fails = {"stop"}
        self.refused(StoreUnavailable, self.change())
        self.assertEqual(self.done, ["stop"])

    def test_not_written(self) -> None:
        """If the file cannot be written the daemon starts with the old key."""
        self.fails = {"change"}
        self.refused(StoreUnavailable, self.change())
        self.assertEqual(self.done[2:], ["start old"])

    def test_not_started(self) -> None:
        """If the daemon does not start again, that the passphrase is another was said before."""
        self.fails = {"start"}
        said = self.told(lambda: self.assertRaises(StoreUnavailable, self.change()))
        self.assertIn("The passphrase is changed", said)


class ResetTests(VaultCase):
    def reset(self, typed: str) -> Callable[[], Discovery]:
        """The reset, with what the person types."""
        self.typed = [typed]
        return lambda: reset(self.cli_context(), None, self.steps())

    def test_reset(self) -> None:
        """It says what is void before it asks, and begins anew."""
        said = self.told(self.reset("reset"))
        self.assertEqual(self.done, ["stop", f"reset to {_NEW}", "start new"])
        for word in ("credential", "trust", "approval", "put it back instead"):
            self.assertIn(word, said)
        self.home.secrets.write_text("{}")
        self.assertIn("before-reset", self.told(self.reset("reset")))

    def test_another_word(self) -> None:
        """Anything but the word changes nothing."""
        for typed in ("", "yes", "RESET", "reset it"):
            self.refused(CommandError, self.reset(typed))
        self.assertEqual(self.done, [])

    def test_not_written(self) -> None:
        """If the file cannot be written, a daemon that ran starts again, locked."""
        self.fails = {"reset"}
        self.refused(StoreUnavailable, self.reset("reset"))
        self.assertEqual(self.done[2:], ["start none"])
        self.done, self.ran = [], False
        self.refused(StoreUnavailable, self.reset("reset"))
        self.assertEqual(self.done, ["stop", f"reset to {_NEW}"])


class LostTests(VaultCase):
    """A vault that is gone is told from one that never was."""

    def setUp(self) -> None:
        super().setUp()
        self.home.database.touch()

    def test_init(self) -> None:
        """Where the daemon remembers a vault, none is made by the way."""
        self.serve()
        self.site.state = "lost"
        code, _, err = self.command("vault", "init")
        self.assertEqual((code, "aileron vault reset" in err), (1, True))
        self.assertFalse(self.home.secrets.exists())

    def test_launch(self) -> None:
        """No agent is launched, and no vault offered."""
        self.serve()
        self.site.state, self.typed = "lost", ["a person is there"]
        error = self.assertRaises(CommandError, ensure_daemon, self.cli_context())
        self.assertIn("lost", error.message)

    def test_missing(self) -> None:
        """Where it remembers none, one is offered as before."""
        self.serve()
        self.site.state = "missing"
        error = self.assertRaises(CommandError, ensure_daemon, self.cli_context())
        self.assertIn("aileron vault init", error.hint or "")

    def test_status(self) -> None:
        """The status says lost, and what to do; without a daemon it does not guess."""
        self.assertEqual(self.command("vault", "status")[1], "no vault file (no daemon runs)\n")
        self.serve()
        self.site.state = "lost"
        for arguments in (("vault", "status"), ("daemon", "status")):
            self.assertIn("aileron vault reset", self.command(*arguments)[2])


def _mark(key: DataKey | None) -> bytes | None:
    return None if key is None else key.subkey("test")
