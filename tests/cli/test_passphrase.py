"""A passphrase comes from the terminal or a descriptor, shows nowhere, and leaves the terminal as it was."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import termios
from collections.abc import Mapping
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.vault.passphrase import VARIABLE, Unattended, from_descriptor, new_passphrase, read_passphrase
from aileron.cli.vault.terminal import Terminal
from aileron.model.errors import Forbidden, InvalidRequest, WeakPassphrase

CANARY = "Canary battery staple 42"
_ASK = """
import select
import sys
from aileron.cli.vault.passphrase import new_passphrase, read_passphrase
from aileron.cli.context import real_context
from aileron.model.errors import AileronError
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
    def asked(self, call: str, prompt: str, *typed: str) -> Person:
        """Someone who sees the prompt of this call, and then types."""
        person = Person(self, call)
        person.types("\ninjected\n")
        person.sees(prompt)
        for text in typed:
            person.types(text)
        return person

    def test_read(self) -> None:
        """What is typed after the prompt alone is read, is not shown, and echo is on again after it."""
        person = self.asked("read_passphrase('Passphrase') == 'Canary é'", "Passphrase: ")
        self.assertFalse(person.echoes())
        person.types("Canary é\n")
        person.sees("found [True]")
        self.assertNotIn("Canary", person.seen)
        self.assertTrue(person.echoes())
        self.asked("real_context().ask('Really? ')", "Really? ", "typed\n").sees("found ['typed']")

    def test_broken_off(self) -> None:
        """Ctrl-C ends the wait, end of input is an error and no empty passphrase; the terminal is as it was."""
        for typed, found in (("half\x03", "interrupted"), ("\x04", "The terminal was closed.")):
            person = self.asked("read_passphrase('Passphrase')", "Passphrase: ", typed)
            person.sees(f"found ['{found}']")
            self.assertTrue(person.echoes())

    def test_new(self) -> None:
        """A new one is asked for until it is good; one that is not the shown one is typed twice alike."""
        person = Person(self, f"new_passphrase() == {CANARY!r}")
        person.types("\n")
        for answer, prompt in (
            ("\n", "New passphrase: "),
            ("short\n", "New passphrase: "),
            (f"{CANARY}\n", "New passphrase: "),
            ("x\n", "Repeat the passphrase: "),
        ):
            person.sees(prompt)
            person.types(answer)
        person.sees("The passphrases do not match.")
        for answer, prompt in ((f"{CANARY}\n", "New passphrase: "), (f"{CANARY}\n", "Repeat the passphrase: ")):
            person.sees(prompt)
            person.types(answer)
        person.sees("found [True]")
        for told in ("Nothing was typed.", "12 to 1024 characters", "not the passphrase that is shown"):
            self.assertIn(told, person.seen)
        self.assertNotIn("Canary", person.seen)

    def test_shown(self) -> None:
        """The words that are shown are typed once, whatever the blanks between them; more or other ones do not do."""
        person = Person(self, "new_passphrase()")
        person.types("\n")
        person.sees("New passphrase: ")
        (words,) = (line.strip() for line in person.seen.splitlines() if len(line.split()) == 6 and line[:4] == "    ")
        for wrong in (f"{words} x", words.removesuffix(words.split()[-1]), words.upper()):
            person.types(f"{wrong}\n")
            person.sees("Repeat the passphrase: ")
            person.types("\n")
            person.sees("New passphrase: ")
        person.types(f"  {words.replace(' ', '  ')} \n")
        person.sees(f"found ['{words}']")
        self.assertEqual(person.seen.count(words), 2, "it was shown once, and returned")
        self.assertEqual([line for line in person.seen.splitlines() if len(line) > 80], [])

    def test_vanishes(self) -> None:
        """Whatever ends the question, the words stood on a screen of their own, which is gone after it."""
        for typed, found in (
            ("half\x03", "interrupted"),
            ("\x04", "The terminal was closed."),
            (f"{CANARY}\n", CANARY),
        ):
            person = self.asked("new_passphrase()", "New passphrase: ", typed)
            if found == CANARY:
                person.sees("Repeat the passphrase: ")
                person.types(typed)
            person.sees(f"found ['{found}']")
            before, apart = person.seen.split("\x1b[?1049h")
            shown, after = apart.split("\x1b[2J\x1b[H\x1b[?1049l")
            (words,) = re.findall(r"(?m)^    ([a-z]+(?: [a-z]+){5})\r?$", shown)
            self.assertNotIn(words, before + after)
            self.assertTrue(person.echoes())

    def test_long(self) -> None:
        """A line that a terminal has cut off is refused, and so is a quote that is open for hundreds of lines."""
        person = self.asked("real_context().ask('Command: ')", "Command: ", f"{'x' * 5000}\n")
        person.sees("found ['The line is too long or was cut off.']")
        person = self.asked("len(real_context().ask_command('Command: '))", "Command: ", "curl '\n")
        for _ in range(400):
            person.sees("> ")
            person.types("\n")
        person.sees("found [406]")

    def test_command(self) -> None:
        """A command that is pasted goes on where a shell would read on; what is pasted behind it is thrown away."""
        typed = "curl https://a.example \\\n  -d '{\n \"a\": 1}'\n"
        person = self.asked("real_context().ask_command('Service: ')", "Service: ", typed)
        person.sees(f"found [{typed[:-1]!r}]")
        call = "(real_context().ask_command('Service: '), select.select([0], [], [], 0)[0])"
        person = self.asked(call, "Service: ", "curl https://a.example\nrm -r x\n")
        person.sees("found [('curl https://a.example', [])]")

    def test_no_person(self) -> None:
        """Whoever never chooses one comes to an end."""
        person = Person(self, "new_passphrase()")
        person.types("\n")
        for _ in range(5):
            person.sees("New passphrase: ")
            person.types("short\n")
        person.sees("found ['No passphrase was set.']")

    def test_no_terminal(self) -> None:
        """What is no terminal is refused."""
        path = Path(self.mktemp())
        self.assertRaises(InvalidRequest, Terminal.open(path).__enter__)
        path.touch()
        self.assertRaises(InvalidRequest, Terminal.open(path).__enter__)


class DescriptorTests(SynchronousTestCase):
    def pipe(self, data: bytes) -> int:
        reading, writing = os.pipe()
        os.write(writing, data)
        os.close(writing)
        return reading

    def test_read(self) -> None:
        """All of it is the passphrase, but one newline at its end, and it is closed; a weak new one is refused."""
        self.patch(os, "environ", {**os.environ, VARIABLE: CANARY})
        for data in (b"Canary ", b"Canary \n", b"Canary \r\n"):
            descriptor = self.pipe(data)
            self.assertEqual(read_passphrase("Passphrase", descriptor), "Canary ")
            self.assertRaises(OSError, os.fstat, descriptor)
        self.assertEqual(new_passphrase(self.pipe(CANARY.encode())), CANARY)
        self.assertRaises(WeakPassphrase, new_passphrase, self.pipe(b"short"))

    def test_refused(self) -> None:
        """Nothing, too much, what is no UTF-8, or a descriptor that is not open is refused without being repeated."""
        closed = self.pipe(b"")
        os.close(closed)
        given = (self.pipe(data) for data in (b"", b"\n", b"canary" * 1000, b"canary\xff"))
        for descriptor in (*given, closed, -1):
            error = self.assertRaises(InvalidRequest, from_descriptor, descriptor)
            self.assertNotIn("canary", f"{error}{error!r}{error.__cause__}")


class UnattendedTests(SynchronousTestCase):
    def read(self, environ: Mapping[str, str], file: Path | None = None) -> str:
        """What is read where no person is needed."""
        return read_passphrase("Passphrase", None, Unattended(environ, file))

    def test_file(self) -> None:
        """A private file is read before the environment; what is empty, open to others, a link or none is not."""
        path = Path(self.mktemp())
        self.assertRaises(InvalidRequest, self.read, {}, path)
        path.write_text("from the file\n")
        path.chmod(0o600)
        self.assertEqual(self.read({VARIABLE: CANARY}, path), "from the file")
        path.chmod(0o640)
        self.assertRaises(InvalidRequest, self.read, {}, path)
        link = path.with_suffix(".link")
        link.symlink_to(path.absolute())
        self.assertRaises(Forbidden, self.read, {}, link)
        self.assertEqual(self.read({VARIABLE: CANARY}), CANARY)
        self.assertRaises(InvalidRequest, self.read, {VARIABLE: ""})
