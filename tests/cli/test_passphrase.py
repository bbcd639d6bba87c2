"""A passphrase comes from the terminal or a descriptor, shows nowhere, and leaves the terminal as it was."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import termios
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.vault.passphrase import VARIABLE, Unattended, from_descriptor, new_passphrase, read_passphrase
from aileron.cli.vault.terminal import Terminal
from aileron.errors import Forbidden, InvalidRequest
from aileron.vault.keys import WeakPassphrase

CANARY = "Canary battery staple 42"
_ASK = """
import sys
from aileron.cli.vault.passphrase import new_passphrase, read_passphrase
from aileron.cli._context import real_context
from aileron.errors import AileronError
print("ready", flush=True)
sys.stdin.readline()
try:
    found = {call}
except AileronError as error:
    found = str(error)
except KeyboardInterrupt:
    found = "interrupted"
print("found", [found], flush=True)
sys.stdin.readline()
"""


class Person:
    """Someone at a terminal in which one of our functions asks."""

    def __init__(self, case: SynchronousTestCase, call: str) -> None:
        self._case = case
        self._pid, self.terminal = pty.fork()
        if self._pid == 0:
            # Whoever runs the tests in the background may have had Ctrl-C ignored, and that is inherited.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execv(sys.executable, [sys.executable, "-c", _ASK.format(call=call)])
        case.addCleanup(self._end)
        self.seen = ""
        self._read_to = 0
        self.sees("ready")

    def sees(self, text: str) -> None:
        """Read on, after what was asked for before, until C{text} shows."""
        while (found := self.seen.find(text, self._read_to)) < 0:
            ready, _, _ = select.select([self.terminal], [], [], 30)
            self._case.assertTrue(ready, f"{text!r} does not show after {self.seen!r}")
            self.seen += os.read(self.terminal, 4096).decode()
        self._read_to = found + len(text)

    def types(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.terminal)[3] & termios.ECHO)

    def is_closed(self) -> bool:
        """Whether L{aileron.hardening.harden} was called there."""
        status = Path(f"/proc/{self._pid}/status").read_text()
        return "NoNewPrivs:\t1\n" in status and "Umask:\t0077\n" in status

    def _end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self.terminal)


class ClosedTests(SynchronousTestCase):
    skip = None if sys.platform == "linux" else "only Linux tells of another process"

    def test_before_it_is_typed(self) -> None:
        """What asks for a passphrase or a secret is closed to others when its prompt shows; what asks else is not."""
        for call, prompt, closed in (
            ("passphrase('Passphrase', None, None)", "Passphrase: ", True),
            ("new_passphrase(None)", "New passphrase: ", True),
            ("secret('Key', None)", "Key (not shown): ", True),
            ("ask('Really? ')", "Really? ", False),
        ):
            person = Person(self, f"real_context().{call}")
            person.types("\n")
            person.sees(prompt)
            self.assertEqual(person.is_closed(), closed, prompt)


class TerminalTests(SynchronousTestCase):
    def test_read(self) -> None:
        """What is typed after the prompt is read, is not shown, and echo is on again after it."""
        person = Person(self, "read_passphrase('Passphrase') == 'Canary é'")
        person.types("\n")
        person.sees("Passphrase: ")
        self.assertFalse(person.echoes())
        person.types("Canary é\n")
        person.sees("found [True]")
        self.assertNotIn("Canary", person.seen)
        self.assertTrue(person.echoes())

    def test_typed_ahead(self) -> None:
        """What stood in the terminal before the prompt is thrown away: another program may have put it there."""
        person = Person(self, "read_passphrase('Passphrase')")
        person.types("\ninjected\n")
        person.sees("Passphrase: ")
        person.types("typed\n")
        person.sees("found ['typed']")

    def test_line_typed_ahead(self) -> None:
        """Nor does it answer a question whose answer shows."""
        person = Person(self, "real_context().ask('Really? ')")
        person.types("\ninjected\n")
        person.sees("Really? ")
        person.types("typed\n")
        person.sees("found ['typed']")

    def test_interrupted(self) -> None:
        """Ctrl-C ends the wait and leaves the terminal as it was."""
        person = Person(self, "read_passphrase('Passphrase')")
        person.types("\n")
        person.sees("Passphrase: ")
        person.types("half\x03")
        person.sees("found ['interrupted']")
        self.assertTrue(person.echoes())

    def test_closed(self) -> None:
        """End of input is an error, not an empty passphrase."""
        person = Person(self, "read_passphrase('Passphrase')")
        person.types("\n")
        person.sees("Passphrase: ")
        person.types("\x04")
        person.sees("found ['The terminal was closed.']")

    def test_new(self) -> None:
        """A new one is asked for until it is good and typed twice alike."""
        person = Person(self, f"new_passphrase() == {CANARY!r}")
        person.types("\n")
        for answer, prompt in (
            ("short\n", "New passphrase: "),
            (f"{CANARY}\n", "New passphrase: "),
            ("x\n", "again: "),
        ):
            person.sees(prompt)
            person.types(answer)
        person.sees("The two differ.")
        for answer, prompt in ((f"{CANARY}\n", "New passphrase: "), (f"{CANARY}\n", "again: ")):
            person.sees(prompt)
            person.types(answer)
        person.sees("found [True]")
        self.assertIn("12 to 1024 characters", person.seen)
        self.assertNotIn("Canary", person.seen)

    def test_generated(self) -> None:
        """Enter alone gets six words, shown once, that must be typed again."""
        person = Person(self, "new_passphrase(generate=lambda: 'seven lucky otters swim at noon')")
        person.types("\n")
        person.sees("New passphrase: ")
        person.types("\n")
        person.sees("seven lucky otters swim at noon")
        person.sees("again: ")
        person.types("seven lucky otters swim at noon\n")
        person.sees("found ['seven lucky otters swim at noon']")

    def test_no_person(self) -> None:
        """Whoever never chooses one comes to an end."""
        person = Person(self, "new_passphrase()")
        person.types("\n")
        for _ in range(5):
            person.sees("New passphrase: ")
            person.types("short\n")
        person.sees("found ['No passphrase was chosen.']")

    def test_no_terminal(self) -> None:
        """What is no terminal is refused."""
        path = Path(self.mktemp())
        for found in (b"", None):
            if found is not None:
                path.write_bytes(found)
            else:
                path.unlink()
            with self.assertRaises(InvalidRequest), Terminal.open(path):
                self.fail("opened")


class DescriptorTests(SynchronousTestCase):
    def pipe(self, data: bytes) -> int:
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        return reading

    def test_read(self) -> None:
        """All of it is the passphrase, but one newline at its end, and it is closed."""
        for data in (b"Canary ", b"Canary \n", b"Canary \r\n"):
            descriptor = self.pipe(data)
            self.assertEqual(read_passphrase("Passphrase", descriptor), "Canary ")
            self.assertRaises(OSError, os.fstat, descriptor)

    def test_refused(self) -> None:
        """Nothing, too much, or what is no UTF-8 is refused without being repeated."""
        for data in (b"", b"\n", b"canary" * 1000, b"canary\xff"):
            error = self.assertRaises(InvalidRequest, from_descriptor, self.pipe(data))
            self.assertNotIn("canary", f"{error}{error!r}{error.__cause__}")

    def test_not_open(self) -> None:
        """A descriptor that is not open is an error."""
        descriptor = self.pipe(b"")
        os.close(descriptor)
        self.assertRaises(InvalidRequest, from_descriptor, descriptor)
        self.assertRaises(InvalidRequest, from_descriptor, -1)

    def test_new(self) -> None:
        """A new one by a descriptor is taken once, and a weak one refused."""
        self.assertEqual(new_passphrase(self.pipe(CANARY.encode())), CANARY)
        self.assertRaises(WeakPassphrase, new_passphrase, self.pipe(b"short"))


class UnattendedTests(SynchronousTestCase):
    def test_environment(self) -> None:
        """The environment is read where the caller allows it."""
        self.assertEqual(read_passphrase("Passphrase", None, Unattended({VARIABLE: CANARY})), CANARY)

    def test_empty(self) -> None:
        """A variable that is set and empty is an error, not a question."""
        self.assertRaises(InvalidRequest, read_passphrase, "Passphrase", None, Unattended({VARIABLE: ""}))

    def test_not_allowed(self) -> None:
        """Where the caller does not allow it, the environment is not looked at."""
        self.patch(os, "environ", {**os.environ, VARIABLE: CANARY})
        reading, writing = os.pipe()
        os.write(writing, b"from the descriptor")
        os.close(writing)
        self.assertEqual(read_passphrase("Passphrase", reading), "from the descriptor")

    def test_file(self) -> None:
        """A private file is read, before the environment."""
        path = Path(self.mktemp())
        path.write_text("from the file\n")
        path.chmod(0o600)
        self.assertEqual(read_passphrase("Passphrase", None, Unattended({VARIABLE: CANARY}, path)), "from the file")

    def test_open_file(self) -> None:
        """A file that others may read, a link, or none at all is refused."""
        path = Path(self.mktemp())
        self.assertRaises(InvalidRequest, read_passphrase, "Passphrase", None, Unattended({}, path))
        path.write_text(CANARY)
        path.chmod(0o640)
        self.assertRaises(InvalidRequest, read_passphrase, "Passphrase", None, Unattended({}, path))
        link = path.with_suffix(".link")
        link.symlink_to(path.absolute())
        self.assertRaises(Forbidden, read_passphrase, "Passphrase", None, Unattended({}, link))
