"""The record is verified and exported without a daemon and without a passphrase."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import copyfile
from types import MappingProxyType
from typing import Any

import attrs

from aileron.audit import fingerprint
from aileron.base.converter import to_json
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.records import look
from aileron.home.lock import release_lock
from aileron.store.copy import open_copy
from tests.audit.kit import RecordCase, Signer
from tests.cli.daemon import CommandCase, MemoryDaemon


class OfflineTests(CommandCase, RecordCase):
    """C{aileron audit verify} and C{export}."""

    def setUp(self) -> None:
        CommandCase.setUp(self)
        RecordCase.setUp(self)
        self.path = self.write(6, (2, 4))

    def exported(self, *arguments: str) -> Path:
        """A file with what was exported."""
        code, out, err = self.command("audit", "export", str(self.path), *arguments)
        self.assertEqual((code, err), (0, ""))
        file = Path(self.mktemp())
        file.write_text(out, encoding="utf-8")
        return file

    def found(self, path: Path, *arguments: str) -> dict[str, object]:
        """What is found, as JSON; the exit code must say the same."""
        code, out, _ = self.command("audit", "verify", str(path), "--json", *arguments)
        found: dict[str, object] = json.loads(out)
        self.assertEqual(code, 0 if found["sound"] else 1)
        return found

    def test_said(self) -> None:
        """Each record is told to hold, how far it is signed, and what nobody can tell; one is told as one."""
        cut_off = "Changes there would not be detected."
        for last, signed, says in (
            (6, (2, 4), f"The 2 newest records are not signed yet. {cut_off}"),
            (3, (2,), f"The newest record is not signed yet. {cut_off}"),
            (3, (3,), "Records after 3 that were removed before they were signed would not be detected."),
            (3, (), "There are no checkpoints and no anchor"),
            (3, (), f"The 3 newest records are not signed yet. {cut_off}"),
        ):
            self.signer = Signer()
            code, out, err = self.command("audit", "verify", str(self.write(last, signed)))
            self.assertEqual((code, says in err), (0, True), err)
            self.assertEqual("not signed yet" in err, last not in signed)
            self.assertIn(f"The audit log is consistent, from record 1 to {last}.", out)
            self.assertEqual(fingerprint(self.signer.public) in out, bool(signed))

    def test_bar(self) -> None:
        """While it is verified, a bar can tell how far it came: at the end, to the last record."""
        heard: list[tuple[int, int]] = []

        @contextmanager
        def progress(_doing: str, total: int, done: Callable[[], int]) -> Iterator[None]:
            yield
            heard.append((total, done()))

        self.patch(look, "progress", progress)
        self.found(self.path)
        self.found(self.exported())
        self.assertEqual(heard, [(6, 6), (6, 6)])

    def test_broken(self) -> None:
        """A broken one exits with 1 and names the record; without a path the home's own database is looked at."""
        copyfile(self.path, self.home.database)
        code, out, _ = self.command("audit", "verify")
        self.assertEqual(code, 0, out)
        self.alter(self.path, "UPDATE audit_events SET actor_id = 'nobody' WHERE seq = 3")
        code, out, _ = self.command("audit", "verify", str(self.path))
        self.assertEqual(code, 1)
        self.assertIn("The audit log is broken: altered, record 3.", out)

    def test_export(self) -> None:
        """An export verifies as the database does, by the key that was noted, also of a record that was cut off."""
        found = self.found(self.exported(), "--public-key", fingerprint(self.signer.public))
        self.assertEqual((found["sound"], found["last"], found["covered"]), (True, 6, 4))
        self.alter(self.path, "DELETE FROM audit_payloads WHERE seq > 3")
        self.alter(self.path, "DELETE FROM audit_events WHERE seq > 3")
        self.assertEqual(self.found(self.path)["broken"], self.found(self.exported())["broken"])

    def test_export_changed(self) -> None:
        """What was changed in an export is found, line by line, and so is a missing end; blanks change nothing."""
        path = self.exported()
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        for number in range(3, 9):
            changed = [*lines[:number], lines[number].replace('"x.', '"y.'), *lines[number + 1 :]]
            path.write_text("".join(changed), encoding="utf-8")
            broken = self.found(path)["broken"]
            self.assertEqual((broken["kind"], broken["sequence"]), ("altered", number - 2))  # type: ignore[index]
        path.write_text("".join(lines[:-1]), encoding="utf-8")
        self.assertFalse(self.found(path)["sound"])
        path.write_text("".join(json.dumps(json.loads(line)) + "\n" for line in lines), encoding="utf-8")
        self.assertTrue(self.found(path)["sound"])

    def test_part(self) -> None:
        """A part verifies as a part: it begins with the hash of the record before it."""
        self.alter(self.path, "UPDATE audit_events SET at = '2027-01-01T00:00:00.000000Z' WHERE seq > 2")
        path = self.exported("--until", "2026-06-01T00:00:00Z")
        self.assertEqual((self.found(path)["first"], self.found(path)["last"]), (1, 2))
        path = self.exported("--since", "2026-06-01T00:00:00Z")
        self.assertEqual(self.found(path)["broken"]["sequence"], 3)  # type: ignore[index]

    def test_anchor(self) -> None:
        """What an anchor holds is told, and a record that does not reach it is broken."""
        more = Path(self.mktemp())
        copyfile(self.path, more)
        kept = Path(self.mktemp())
        kept.write_text(json.dumps(to_json(self.endorse(more, 6))) + "\n", encoding="utf-8")
        self.assertEqual(self.found(self.path, "--anchor", str(kept))["covered"], 6)
        for table in ("audit_payloads", "audit_events"):
            self.alter(self.path, f"DELETE FROM {table} WHERE seq = 6")
        broken = self.found(self.path, "--anchor", str(kept))["broken"]
        self.assertEqual((broken["kind"], broken["sequence"]), ("truncated", 6))  # type: ignore[index]

    def test_damaged(self) -> None:
        """Where a page of the database cannot be read, the record before it is the last that holds, and is told."""
        path = self.write(200)
        pages = path.read_bytes()
        at = pages.index(b"x.150") // 4096 * 4096
        path.write_bytes(pages[:at] + b"\xff" * 4096 + pages[at + 4096 :])
        found = self.found(path)
        self.assertEqual(found["broken"]["kind"], "unreadable")  # type: ignore[index]
        self.assertTrue(100 < int(str(found["last"])) < 150, found["last"])

    def test_no_record(self) -> None:
        """What is no record is refused with a sentence, and so is what is not there."""
        foreign = Path(self.mktemp())
        foreign.write_text("{}\n", encoding="utf-8")
        self.assertIn("neither a database nor an export", self.command("audit", "verify", str(foreign))[2])
        self.assertIn("does not exist", self.command("audit", "verify", str(foreign) + "x")[2])
        self.assertEqual(self.command("audit", "export", str(foreign))[0], 1)


class Writing(MemoryDaemon):
    """A daemon that has come further each time that it is asked; without any further head it does not answer."""

    def __init__(self, heads: Sequence[int] = (), hashes: Mapping[int, str] = MappingProxyType({})) -> None:
        super().__init__()
        self.left, self._hashes = list(heads), hashes

    def probe(self, url: str, _path: str, _token: str | None) -> Mapping[str, Any]:
        """How far it has come."""
        if not self.left:
            raise CommandError(f"No daemon responds at {url}.")
        sequence = self.left.pop(0)
        return {"record": {"head": {"sequence": sequence, "hash": self._hashes[sequence]}, "tampered": 0}}


class RunningTests(CommandCase, RecordCase):
    """C{aileron audit verify} of the home's own record, while a daemon runs that knows where it left it."""

    def setUp(self) -> None:
        CommandCase.setUp(self)
        RecordCase.setUp(self)
        self.write(6, (4,), self.home.database)
        with open_copy(self.home.database) as copy:
            self.hashes = {number: str(copy.at(number)) for number in range(1, 7)}
        self.waits: list[float] = []
        self.serve()
        self.knows(6)

    def cli_context(self) -> CliContext:
        """In which nobody waits."""
        return attrs.evolve(super().cli_context(), sleep=self.waits.append)

    def knows(self, sequence: int, hash_: str | None = None, tampered: int = 0) -> None:
        """Have the daemon say that this is its newest record."""
        head = {"sequence": sequence, "hash": hash_ or self.hashes[sequence]}
        self.site.answer("GET", "/v1/status", {"record": {"head": head, "tampered": tampered}})

    def found_broken(self, *arguments: str) -> tuple[str, int]:
        """What does not hold; the exit code must say so."""
        code, out, _ = self.command("audit", "verify", "--json", *arguments)
        found = json.loads(out)["broken"]
        self.assertEqual(code, 1)
        return found["kind"], found["sequence"]

    def cut(self, last: int) -> None:
        """Take all records after C{last} away."""
        for table in ("audit_payloads", "audit_events"):
            self.alter(self.home.database, f"DELETE FROM {table} WHERE seq > ?", last)

    def test_confirmed(self) -> None:
        """Where the record ends as the daemon knows it that is said, with what is not signed, and what it noticed."""
        code, out, err = self.command("audit", "verify")
        self.assertEqual(code, 0, out)
        self.assertIn("The running daemon confirms it up to record 6.", out)
        self.assertIn("The 2 newest records are not signed yet.", err)
        self.assertNotIn("would not be detected", err)
        found = json.loads(self.command("audit", "verify", "--json")[1])
        self.assertEqual((found["signed"], found["daemon"]["head"]), (4, {"sequence": 6, "hash": self.hashes[6]}))
        self.knows(6, tampered=1)
        code, _, err = self.command("audit", "verify")
        self.assertEqual((code, "aileron audit list --type tamper.detected" in err), (0, True))

    def test_cut(self) -> None:
        """Unsigned newest records that were cut off under a running daemon are found; without one none is missed."""
        self.cut(5)
        self.assertEqual(self.found_broken(), ("truncated", 6))
        self.assertEqual(self.found_broken(str(self.home.database)), ("truncated", 6))
        release_lock(self.home)
        code, out, err = self.command("audit", "verify")
        self.assertEqual((code, "The running daemon" in out + err), (0, False))
        self.assertIn("The newest record is not signed yet. Changes there would not be detected.", err)

    def test_another_end(self) -> None:
        """So is another record in the place of the newest, and one behind it; that is not said before a while."""
        self.knows(6, "another")
        self.assertEqual(self.found_broken(), ("rewritten", 5))
        self.knows(5)
        self.assertEqual((self.found_broken(), len(self.waits)), (("inserted", 6), 20))

    def test_written_meanwhile(self) -> None:
        """What the daemon writes during the look is no finding; what somebody else puts there is one."""
        self.site = writing = Writing((4, 5, 5, 6), self.hashes)
        code, out, err = self.command("audit", "verify")
        self.assertEqual((code, writing.left, len(self.waits)), (0, [], 2), out)
        self.assertIn("Changes after record 4 would not be detected.", err)
        self.site = writing = Writing((4, 7), {**self.hashes, 7: "of a record that came later"})
        self.assertEqual((self.command("audit", "verify")[0], writing.left), (0, []))
        self.site = Writing((4, 6), {**self.hashes, 6: "another"})
        self.assertEqual(self.found_broken(), ("rewritten", 6))

    def test_copy(self) -> None:
        """A copy of the record, or an export, is its own: no daemon answers for that."""
        copy = Path(self.mktemp())
        copyfile(self.home.database, copy)
        self.cut(4)
        code, out, err = self.command("audit", "verify", str(copy))
        self.assertEqual((code, "running daemon" in out + err), (0, False))

    def test_not_told(self) -> None:
        """It is said where a daemon confirms nothing: it does not say, does not answer, or nothing leads to it."""
        answers: tuple[Mapping[str, object], ...] = (
            {"record": {"tampered": 0}},
            {},
            {"record": {"head": None}},
            {"record": {"head": 7}},
        )
        for answer in answers:
            self.site.answer("GET", "/v1/status", answer)
            self.not_confirmed()
        self.site = Writing()
        self.not_confirmed()
        self.home.discovery.unlink()
        self.not_confirmed()
        self.assertEqual(self.command("audit", "verify", "--json")[0], 69)

    def test_not_told_of_a_broken_one(self) -> None:
        """A record that does not hold is told as that, whoever could not be asked."""
        self.alter(self.home.database, "UPDATE audit_events SET actor_id = 'nobody' WHERE seq = 3")
        self.home.discovery.unlink()
        code, out, err = self.command("audit", "verify")
        self.assertEqual((code, out.splitlines()[0]), (1, "The audit log is broken: altered, record 3."))
        self.assertIn("daemon.json does not point to it", err)

    def not_confirmed(self) -> None:
        """A daemon runs, and the look is one without it: that is said first, and the exit code is another."""
        code, out, err = self.command("audit", "verify")
        first, second = out.splitlines()[:2]
        self.assertEqual(code, 69)
        self.assertEqual(first, "Not confirmed: a daemon may be running, but could not be asked for its newest record.")
        self.assertEqual(second, "The audit log is consistent, from record 1 to 6.")
        self.assertIn("The newest record is not confirmed.", err)
        self.assertIn("Changes there would not be detected.", err)
