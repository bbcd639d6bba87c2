"""Tells a person what a look along the record found, and what it could not tell."""

from __future__ import annotations

from collections.abc import Iterator

from aileron.cli._output import note, say, values
from aileron.values import Verdict

from .confirming import Confirmation, tell_tampering


def is_unconfirmed(found: Verdict, running: Confirmation | None) -> bool:
    """Whether nothing is wrong with the file, but a daemon that may know of more could not be asked."""
    return found.sound and running is not None and running.head is None


def tell(found: Verdict, running: Confirmation | None = None) -> None:
    """Print it.

    :param running: what the daemon said that writes this record, or may; L{None}: none does.
    """
    broken = found.broken
    if broken is None:
        if is_unconfirmed(found, running):
            say("Not confirmed: a daemon may be running, and could not be asked for its newest record.")
        say("The record holds, from number {first} to {last}.", first=found.first, last=found.last)
    else:
        say("The record is broken: {kind}, record {number}.", kind=broken.kind, number=broken.sequence)
        say("  {why}", why=broken.why)
    confirmed = running.head[0] if found.sound and running is not None and running.head is not None else 0
    if confirmed:
        say("The running daemon confirms it up to number {last}.", last=confirmed)
    values(
        {
            "holds up to": f"{found.last}, {found.head}",
            "signed up to": str(found.signed),
            "checkpoints": f"{found.checkpoints} beside it, {found.anchored} of an anchor",
            "without contents": str(found.pruned),
            **{f"key {number}": each for number, each in enumerate(fingerprints(found), 1)},
        },
        "  ",
    )
    if running is not None:
        if running.problem is not None:
            note("The newest record is not confirmed. {why}", why=running.problem)
            note("  Verify again. If that does not help, stop the daemon, which then signs it: aileron daemon stop")
        tell_tampering(running.record)
    for line in _doubts(found, confirmed):
        note("{line}", line=line)


def _doubts(found: Verdict, confirmed: int) -> Iterator[str]:
    """What this look could not tell.

    :param confirmed: up to which record the daemon confirmed it; 0: it did not.
    """
    if not found.checkpoints and not found.anchored:
        yield "Neither checkpoint nor anchor is there, so nothing of it is signed."
    if found.sound and found.unsigned:
        newest = "The newest record is" if found.unsigned == 1 else f"The {found.unsigned} newest records are"
        where = f"after number {confirmed}" if confirmed else "there"
        open_ = "" if confirmed >= found.last else f" A cut or a change {where} would not show."
        yield f"{newest} not signed yet.{open_}"
    elif found.sound and not confirmed:
        yield f"Records that came after {found.last} and were cut off before they were signed would not show."
    if found.checkpoints and not found.compared:
        yield "Compare the key with the one you noted, or give it: --public-key"


def fingerprints(found: Verdict) -> list[str]:
    """The keys that signed, as a person notes them."""
    from aileron.audit.verify import fingerprint

    return [fingerprint(key) if _is_key(key) else key for key in found.keys]


def _is_key(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) > 0
    except ValueError:
        return False
