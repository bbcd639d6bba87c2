"""The body of a push as git sends it over HTTP: the updates of refs and what follows them, and the report on them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from aileron.base.json import JSON

from ._objects import is_object_id
from ._remote import NotGit, read_packets, write_packet
from ._repository import is_ref_name
from ._spec import NOTHING

PROBE = b"0000"
"""The body with which git asks whether it may push, before it sends a long body."""

MOST_UPDATES = 100
_MOST_OPTIONS, _MOST_OPTION = 20, 1000
_MOST_SHALLOW = 1000
_MOST_HEAD_BYTES = 128 * 1024
_LENGTH = re.compile(rb"[0-9a-f]{4}")
_FLAGS = frozenset(("report-status", "report-status-v2", "side-band-64k", "quiet", "atomic", "push-options"))
_VALUES = re.compile(r"(?:agent|session-id)=[!-~]{1,200}|object-format=sha1")
_OPTION = re.compile(r"[\x20-\x7e]*")
_PACK = b"PACK\0\0\0\2"
_LEAST_PACK_BYTES = 32
_DATA, _MESSAGE = 1, 2
_LEAST_REPORT = 3  # on the objects, on one ref, and the end
_MOST_PACKET_BYTES = 65_515


@frozen
class RefUpdate:
    """The update of one ref.

    :ivar old: the id of the object that the ref must be at, or L{NOTHING} if there must be no such ref.
    :ivar new: the id of the object that it is to be at, or L{NOTHING} to delete it.
    """

    old: str
    new: str
    ref: str

    def __str__(self) -> str:
        return f"{self.old} {self.new} {self.ref}"

    def describe(self) -> str:
        """Return what the update does, such as C{update main}, C{create v1.0} or C{delete agent/x}."""
        verb = "create" if self.old == NOTHING else "delete" if self.new == NOTHING else "update"
        return f"{verb} {self.ref.removeprefix('refs/heads/').removeprefix('refs/')}"

    def explain(self) -> str:
        """Return what the update does, with the ids."""
        if self.old == NOTHING:
            return f"{self.ref}: new, at {self.new}"
        if self.new == NOTHING:
            return f"{self.ref}: deleted, was at {self.old}"
        return f"{self.ref}: {self.old} → {self.new}"


@frozen
class GitPush:
    """The body of a push.

    :ivar updates: the updates of refs, in the order in which they were sent.
    :ivar capabilities: the capabilities of the protocol that the client uses.
    :ivar options: the options of the push, which hooks of the server get.
    :ivar shallow: the commits whose parents the client does not have.
    :ivar pack_at: the offset of the pack, which is the body's length if there is none.
    """

    updates: tuple[RefUpdate, ...]
    capabilities: tuple[str, ...]
    options: tuple[str, ...] = ()
    shallow: tuple[str, ...] = ()
    pack_at: int = 0

    @property
    def has_sideband(self) -> bool:
        """True if the report must be in the sideband protocol."""
        return "side-band-64k" in self.capabilities

    def to_json(self) -> dict[str, JSON]:
        """Return all that comes before the pack. Two pushes with equal values ask for the same updates."""
        return {
            "updates": [str(each) for each in self.updates],
            "capabilities": list(self.capabilities),
            "options": list(self.options),
            "shallow": list(self.shallow),
        }

    def summarize(self) -> str:
        """Return what the push does, on one line."""
        shown = [each.describe() for each in self.updates[:3]]
        more = len(self.updates) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")


def read_push(body: bytes) -> GitPush:
    """Parse the body of a push.

    :raises NotGit: if a server could read it in another way, or it has more than is shown to the user.
    """
    lines, at = _read_section(body, 0)
    count = next((each for each, line in enumerate(lines) if not line.startswith("shallow ")), len(lines))
    shallow = tuple(line.removeprefix("shallow ") for line in lines[:count])
    if not all(map(is_object_id, shallow)) or not 0 < len(lines) - count <= MOST_UPDATES or count > _MOST_SHALLOW:
        raise NotGit(f"it updates no ref or more than {MOST_UPDATES}, or is from a clone with too many ends")
    first, _, listed = lines[count].partition("\0")
    capabilities = tuple(listed.split())
    _check_capabilities(capabilities)
    updates = tuple(map(_read_update, (first, *lines[count + 1 :])))
    # guard of own tools: a ref is updated once in a push
    #    -> connectors.kinds.git.test_push.ReadTests.test_twice
    if len({each.ref for each in updates}) < len(updates):
        raise NotGit("it updates a ref twice")
    options: list[str] = []
    if "push-options" in capabilities:
        options, at = _read_section(body, at)
        _check_options(options)
    # guard of own tools: nothing follows the updates but a pack
    #    -> connectors.kinds.git.test_push.ReadTests.test_after_flush
    _check_rest(body, at, needs_pack=any(each.new != NOTHING for each in updates))
    return GitPush(updates, capabilities, tuple(options), shallow, at)


def read_updates(lines: JSON) -> tuple[RefUpdate, ...]:
    """Return the updates of refs that are written as C{OLD NEW REF}, each a text.

    :raises NotGit: if one is none.
    """
    if not isinstance(lines, list | tuple) or not 0 < len(lines) <= MOST_UPDATES:
        raise NotGit("its updates are no list, or too many")
    return tuple(_read_update(line if isinstance(line, str) else "") for line in lines)


def _read_section(body: bytes, at: int) -> tuple[list[str], int]:
    """Return the lines up to the next flush packet, and the offset after it."""
    lines: list[str] = []
    while at < min(len(body), _MOST_HEAD_BYTES):
        head = body[at : at + 4]
        length = int(head, 16) if _LENGTH.fullmatch(head) else -1
        if length == 0:
            return lines, at + 4
        if length <= 4 or at + length > len(body):
            break
        try:
            lines.append(body[at + 4 : at + length].decode("utf-8").removesuffix("\n"))
        except UnicodeDecodeError:
            raise NotGit("it is not in UTF-8") from None
        at += length
    raise NotGit("it does not begin with a list of updates, or the list is too long")


def _check_capabilities(capabilities: tuple[str, ...]) -> None:
    for each in capabilities:
        if each not in _FLAGS and not _VALUES.fullmatch(each):
            raise NotGit("it uses a part of the protocol that is not supported, such as signed pushes or SHA-256")
    if not {"report-status", "report-status-v2"} & set(capabilities):
        raise NotGit("it asks for no report")


def _check_options(options: list[str]) -> None:
    if len(options) > _MOST_OPTIONS or not all(len(each) <= _MOST_OPTION for each in options):
        raise NotGit("it has too many or too long options")
    if not all(map(_OPTION.fullmatch, options)):
        raise NotGit("its options have unusual characters")


def _read_update(line: str) -> RefUpdate:
    old, new, ref = (*line.split(" ", 2), "", "")[:3]
    # guard of own tools: of a push no line is taken for something else
    #    -> connectors.kinds.git.test_push.ReadTests.test_refused
    if not (is_object_id(old) and is_object_id(new) and ref.startswith("refs/") and is_ref_name(ref)):
        raise NotGit("it has a line that is no update of a ref")
    if old == new:
        raise NotGit("it has an update that changes nothing")
    return RefUpdate(old, new, ref)


def _check_rest(body: bytes, at: int, *, needs_pack: bool) -> None:
    rest = len(body) - at
    if needs_pack and not (rest >= _LEAST_PACK_BYTES and body.startswith(_PACK, at)):
        raise NotGit("it has no pack")
    if not needs_pack and rest:
        raise NotGit("it deletes refs only, and has more than that")


def write_report(push: GitPush, reason: str, text: str) -> bytes:
    """Return the body of the answer by which git is told that no ref was updated.

    :param reason: a few words for each ref.
    :param text: sentences for the user, which git prints.
    """
    plain = " ".join(reason.split())
    packets = [b"unpack ok\n", *(f"ng {each.ref} {plain}\n".encode() for each in push.updates)]
    report = b"".join(map(write_packet, packets)) + b"0000"
    if not push.has_sideband:
        return report
    said = write_packet(b"\2" + text.encode("utf-8", "replace")[: _MOST_PACKET_BYTES - 1] + b"\n")
    parts = (report[at : at + _MOST_PACKET_BYTES] for at in range(0, len(report), _MOST_PACKET_BYTES))
    return said + b"".join(write_packet(b"\1" + part) for part in parts) + b"0000"


def read_reports(body: bytes, push: GitPush) -> Mapping[str, str]:
    """Return what the server reports of each ref: C{ok}, or the reason why it was not updated.

    :raises NotGit: if it is not one whole report on exactly these refs.
    """
    packets = list(_unwrap(body) if push.has_sideband else read_packets(body))
    if len(packets) < _LEAST_REPORT or packets.pop() is not None or None in packets:
        raise NotGit("it is no whole report")
    first, *lines = ((each or b"").decode("utf-8", "replace").rstrip("\n") for each in packets)
    if not first.startswith("unpack "):
        raise NotGit("it does not say whether the objects arrived")
    found: dict[str, str] = {}
    for line in lines:
        word, _, rest = line.partition(" ")
        ref, _, reason = rest.partition(" ")
        if word == "option" and found:
            continue
        if word not in ("ok", "ng") or ref in found:
            raise NotGit("it has lines that are no report on a ref")
        found[ref] = "ok" if word == "ok" else reason or "refused"
    unpacked = first == "unpack ok"
    if found.keys() != {each.ref for each in push.updates} or (not unpacked and "ok" in found.values()):
        raise NotGit("it does not say what became of each ref")
    return found


def _unwrap(body: bytes) -> Iterator[bytes | None]:
    """Yield the packets of the report inside the sideband."""
    parts, ended = [], False
    for packet in read_packets(body):
        if ended or (packet is not None and not packet):
            raise NotGit("it has no end, or more after its end")
        if packet is None:
            ended = True
        elif packet[0] == _DATA:
            parts.append(packet[1:])
        elif packet[0] != _MESSAGE:  # a fatal error of the server
            raise NotGit("the server broke off")
    if not ended:
        raise NotGit("it has no end")
    yield from read_packets(b"".join(parts))
