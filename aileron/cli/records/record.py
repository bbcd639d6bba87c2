"""What the daemon says of its record: who signs it, and whether it was touched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aileron.cli._output import complain, note, say
from aileron.cli._surroundings import Surroundings
from aileron.home import Discovery


def record_of(around: Surroundings, found: Discovery) -> Mapping[str, Any]:
    """As its status has it; empty where it says nothing."""
    return in_status(around.probe(found.url, "/v1/status", found.launch_key))


def in_status(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a status that is about the record."""
    told = answer.get("record")
    return told if isinstance(told, Mapping) else {}


def tell_key(around: Surroundings, found: Discovery) -> None:
    """Show the key of a record that was just begun, to be noted."""
    key = record_of(around, found).get("key")
    if key:
        say("  The record of what happens is signed by {key}", key=key)
        note(
            "  Note this elsewhere: it shows later that nobody wrote the record anew. See: aileron audit verify --help"
        )


def tell_tampering(record: Mapping[str, Any]) -> None:
    """Say so where signs of tampering are on record."""
    if record.get("tampered"):
        complain("Something was tampered with while you were away, or put back to what it was.")
        note("  What was found: aileron audit list --type tamper.detected")


def in_words(record: Mapping[str, Any]) -> Mapping[str, str]:
    """What the status shows of it."""
    if not record.get("key"):
        return {}
    signed = f"up to {record.get('signed_up_to')}, {record.get('signed_at')}" if record.get("signed_at") else "not yet"
    return {"record signed": signed, "signed by": str(record["key"])}
