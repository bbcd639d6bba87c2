"""The record is verified and exported without a daemon and without a passphrase."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from shutil import copyfile

from aileron.audit import fingerprint
from aileron.cli.records.look import look_at
from tests.audit.kit import RecordCase
from tests.cli.daemon import CommandCase


class OfflineTests(CommandCase, RecordCase):
    """C{aileron audit verify} and C{export}."""

    def setUp(self) -> None:
        """A record of six, four of them signed."""
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
        if not arguments:
            self.same_in_legs(path, found)
        return found

    def same_in_legs(self, path: Path, found: Mapping[str, object]) -> None:
        """A look in legs, with seams wherever they can be, must find the same."""
        for leg in (1, 2, 3):
            again = json.loads(json.dumps(look_at(path, processes=1, leg=leg).as_json()))
            self.assertEqual({**again, "fingerprints": found["fingerprints"]}, found)

    def test_sound(self) -> None:
        """A sound record is told to hold, how far it is signed, by which key, and what nobody can tell."""
        code, out, err = self.command("audit", "verify", str(self.path))
        self.assertEqual(code, 0)
        self.assertIn("The record holds, from number 1 to 6.", out)
        self.assertIn(fingerprint(self.signer.public), out)
        self.assertIn("What was cut off after record 6, or written anew after 4, none shows.", err)

    def test_broken(self) -> None:
        """A broken one exits with 1 and names the record and what was done to it."""
        self.alter(self.path, "UPDATE audit_events SET actor_id = 'nobody' WHERE seq = 3")
        code, out, _ = self.command("audit", "verify", str(self.path))
        self.assertEqual(code, 1)
        self.assertIn("The record is broken: altered, record 3.", out)

    def test_home(self) -> None:
        """Without a path the home's own database is looked at."""
        copyfile(self.path, self.home.database)
        code, out, _ = self.command("audit", "verify")
        self.assertEqual(code, 0, out)

    def test_no_checkpoint(self) -> None:
        """Where nobody signed anything it is said that an end that was cut off cannot be noticed."""
        err = self.command("audit", "verify", str(self.write(3)))[2]
        self.assertIn("Neither checkpoint nor anchor is there", err)

    def test_export(self) -> None:
        """A whole export verifies as the database does, by the key that was noted."""
        found = self.found(self.exported(), "--public-key", fingerprint(self.signer.public))
        self.assertEqual((found["sound"], found["last"], found["covered"]), (True, 6, 4))

    def test_export_altered(self) -> None:
        """What was changed in an export is found, line by line."""
        lines = self.exported().read_text(encoding="utf-8").splitlines(keepends=True)
        for number in range(3, 9):
            with self.subTest(line=number):
                path = Path(self.mktemp())
                changed = [*lines[:number], lines[number].replace('"x.', '"y.'), *lines[number + 1 :]]
                path.write_text("".join(changed), encoding="utf-8")
                broken = self.found(path)["broken"]
                self.assertEqual((broken["kind"], broken["sequence"]), ("altered", number - 2))  # type: ignore[index]

    def test_export_cut_off(self) -> None:
        """An export that ends without its last line is not taken for a whole one."""
        lines = self.exported().read_text(encoding="utf-8").splitlines(keepends=True)
        path = Path(self.mktemp())
        path.write_text("".join(lines[:-1]), encoding="utf-8")
        self.assertFalse(self.found(path)["sound"])

    def test_export_reformatted(self) -> None:
        """An export that a tool wrote anew, with blanks, verifies still."""
        path = self.exported()
        again = [json.dumps(json.loads(line)) + "\n" for line in path.read_text(encoding="utf-8").splitlines()]
        path.write_text("".join(again), encoding="utf-8")
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
        kept.write_text(json.dumps(self.endorse(more, 6).as_json()) + "\n", encoding="utf-8")
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
        self.assertIn("is not there", self.command("audit", "verify", str(foreign) + "x")[2])
        self.assertEqual(self.command("audit", "export", str(foreign))[0], 1)

    def test_export_of_a_shortened_record(self) -> None:
        """The checkpoints of what was cut off are exported too, so that the export tells of it as the record does."""
        self.alter(self.path, "DELETE FROM audit_payloads WHERE seq > 3")
        self.alter(self.path, "DELETE FROM audit_events WHERE seq > 3")
        self.assertEqual(self.found(self.path)["broken"], self.found(self.exported())["broken"])
