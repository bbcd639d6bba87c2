"""Compares an audit record with the running daemon's, and prints the result."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from aileron.base.json import JSON
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.output import complain, note, say, values, when
from aileron.home.discovery import Discovery, read_discovery
from aileron.home.lock import database_pid, running_pid
from aileron.model.audit import Break, Verdict
from aileron.model.errors import AileronError

NAME = "the running daemon"
"""The name of the daemon in a finding, if its record differs from the file."""
_is_hex = re.compile("(?:[0-9a-fA-F]{2})+").fullmatch
_TRIES, _PAUSE_SECONDS = 20, 0.1
_HIDDEN = "{} {}, but daemon.json does not point to it."


@frozen
class Confirmation:
    """The daemon's statement about its audit record.

    :ivar problem: why the daemon did not name its newest event, as a sentence, or None if it did.
    :ivar record: the part of its status about the audit record.
    """

    problem: str | None = None
    record: Mapping[str, Any] = field(factory=dict)

    @property
    def head(self) -> tuple[int, str] | None:
        """Return the sequence number and hash of the newest event, or None if the daemon did not name it."""
        told = self.record.get("head")
        sequence, hash_ = (told.get("sequence"), told.get("hash")) if isinstance(told, Mapping) else (None, None)
        return (sequence, hash_) if type(sequence) is int and isinstance(hash_, str) else None

    @property
    def sealed(self) -> Mapping[str, tuple[int, str]]:
        """Return the sequence number and hash that verification must reach, by their source. Empty if unknown."""
        # guard against attack: the daemon is asked for its newest record -> test_agent.RecordTests.test_while_it_runs,
        #    instead return {}
        return {} if self.head is None else {NAME: self.head}

    def as_json(self) -> dict[str, JSON]:
        """Return the statement as JSON, for programs."""
        head: JSON = None if self.head is None else {"sequence": self.head[0], "hash": self.head[1]}
        return {"head": head, "tampered": self.record.get("tampered", 0), "problem": self.problem}


def ask_daemon(cli: CliContext, path: Path) -> Confirmation | None:
    """Ask the running daemon about the audit record at C{path}.

    Call this before reading the file: the daemon may append events meanwhile, and never removes any.

    :return: the daemon's statement. If a process may be the daemon but cannot be asked, or does not report its newest
        event, C{problem} is the reason. None if no daemon runs, or if C{path} is not the record of this home.
    """
    home = cli.home
    if not home.database.exists() or not path.samefile(home.database):
        return None
    # guard against attack: a daemon is known by daemon.lock -> test_agent.RecordTests.test_copied,
    #    instead pid, does = None, ""
    pid, does = running_pid(home), "is this home's daemon"
    if pid is None:
        # guard against attack: a daemon is known by its lock on the database -> test_agent.RecordTests.test_hidden
        pid, does = database_pid(home), "has the audit log open and may be the daemon"
    if pid is None:
        return None
    try:
        found = read_discovery(home)
        if found is None or found.pid != pid:
            who = f"Process {pid}" if pid else "A process in another container"
            return Confirmation(problem=_HIDDEN.format(who, does))
        confirmed = Confirmation(record=record_of(cli, found))
    except (AileronError, CommandError) as error:
        return Confirmation(problem=error.message)
    if confirmed.head is None:
        return evolve(confirmed, problem="The daemon does not report its newest record.")
    return confirmed


def held_against(cli: CliContext, path: Path, found: Verdict) -> Verdict:
    """Return C{found}, or a failed verdict if the file ends with an event that the daemon did not write.

    The daemon may not know the most recently committed events yet, so retry for a while.

    :param found: a verdict without errors.
    """
    newest = 0
    for _ in range(_TRIES):
        now = ask_daemon(cli, path)
        # guard against attack: what the daemon did not write is found -> test_agent.RecordTests.test_while_it_runs,
        #    instead if True
        if now is None or now.head is None or now.head[0] > found.last:
            return found  # the daemon ended or continued meanwhile: its later events were not verified
        if now.head == (found.last, found.head):
            return found
        newest = now.head[0]
        if newest == found.last:
            break
        cli.sleep(_PAUSE_SECONDS)
    kind, first = ("rewritten", newest) if newest == found.last else ("inserted", newest + 1)
    why = f"Record {found.last} at the end is not the one that {NAME} wrote; its newest record is {newest}."
    return evolve(found, broken=Break(kind, first, why))


def record_of(cli: CliContext, found: Discovery) -> Mapping[str, Any]:
    """Return the part of the daemon's status about the audit record, or an empty mapping if the daemon does not say."""
    return in_status(cli.probe(found.url, "/v1/status", found.launch_key))


def in_status(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part about the audit log in the daemon's answer to C{GET /v1/status}, or an empty mapping."""
    told = answer.get("record")
    return told if isinstance(told, Mapping) else {}


def tell_key(cli: CliContext, found: Discovery) -> None:
    """Print the public key of a newly created audit log, for the operator to save elsewhere."""
    key = record_of(cli, found).get("key")
    if key:
        say("  The audit log is signed with {key}", key=key)
        note(
            "  Save this key elsewhere: it shows later whether the log was rewritten. See: aileron audit verify --help"
        )


def tell_tampering(record: Mapping[str, Any]) -> None:
    """Print a warning if the daemon's status says that the audit log has signs of tampering."""
    if record.get("tampered"):
        complain("Signs of tampering were found.")
        note("  See what was found: aileron audit list --type tamper.detected")


def in_words(record: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the rows for C{aileron status} about the record's key and newest signature, by label.

    :param record: the part of the daemon's status about the audit record.
    :return: an empty mapping if the record has no key. Without a signature, that row is C{not yet}.
    """
    if not record.get("key"):
        return {}
    signed = (
        f"up to {record.get('signed_up_to')}, {when(record['signed_at'])}" if record.get("signed_at") else "not yet"
    )
    return {"audit log signed": signed, "signed with": str(record["key"])}


def is_unconfirmed(found: Verdict, running: Confirmation | None) -> bool:
    """Return True if the file is intact, but a daemon that may know more events did not respond."""
    return found.sound and running is not None and running.head is None


def tell(found: Verdict, running: Confirmation | None = None) -> None:
    """Print the verdict.

    :param running: the statement of the daemon that writes this record, or may, or None if none does.
    """
    broken = found.broken
    if broken is None:
        # guard against attack: a record that nothing confirms is reported as such -> test_agent.RecordTests.test_hidden
        if is_unconfirmed(found, running):
            say("Not confirmed: a daemon may be running, but could not be asked for its newest record.")
        say("The audit log is consistent, from record {first} to {last}.", first=found.first, last=found.last)
    else:
        say("The audit log is broken: {kind}, record {number}.", kind=broken.kind, number=broken.sequence)
        say("  {why}", why=broken.why)
    confirmed = running.head[0] if found.sound and running is not None and running.head is not None else 0
    if confirmed:
        say("The running daemon confirms it up to record {last}.", last=confirmed)
    values(
        {
            "consistent up to": f"{found.last}, {found.head}",
            "signed up to": str(found.signed),
            "checkpoints": f"{found.checkpoints} stored with it, {found.anchored} from an anchor",
            "decisions": f"{found.proved} proved by signatures",
            "records without contents": str(found.pruned),
            **{f"key {number}": each for number, each in enumerate(fingerprints(found), 1)},
        },
        "  ",
    )
    if running is not None:
        if running.problem is not None:
            note("The newest record is not confirmed. {why}", why=running.problem)
            note("  Verify again. If that does not help, stop the daemon, which signs the record: aileron daemon stop")
        tell_tampering(running.record)
    for line in _doubts(found, confirmed):
        note("{line}", line=line)


def _doubts(found: Verdict, confirmed: int) -> Iterator[str]:
    """Yield what this verification could not establish.

    :param confirmed: the last event that the daemon confirmed, or 0 if none.
    """
    if not found.checkpoints and not found.anchored:
        yield "There are no checkpoints and no anchor, so nothing is signed."
    # guard against attack: unsigned newest records are reported
    #    -> test_agent.RecordTests.test_while_none_runs
    if found.sound and found.unsigned:
        newest = "The newest record is" if found.unsigned == 1 else f"The {found.unsigned} newest records are"
        where = f"after record {confirmed}" if confirmed else "there"
        open_ = "" if confirmed >= found.last else f" Changes {where} would not be detected."
        yield f"{newest} not signed yet.{open_}"
    elif found.sound and not confirmed:
        yield f"Records after {found.last} that were removed before they were signed would not be detected."
    if found.checkpoints and not found.compared:
        yield "Compare the key with the one that you saved, or pass that one with --public-key."


def fingerprints(found: Verdict) -> list[str]:
    """Return the fingerprints of the signing keys. Text that is not a key is returned unchanged."""
    from aileron.audit.verify import fingerprint

    return [fingerprint(key) if _is_hex(key) else key for key in found.keys]
