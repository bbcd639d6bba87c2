"""The messages of git's smart HTTP protocol: the list of refs, the update of one ref, and the report on the update."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from aileron.connectors._answer import ServiceAnswer
from aileron.connectors._conversation import Rejected
from aileron.connectors._decode import show_safely

from ._objects import is_object_id
from ._spec import NOTHING

_MOST_REFS = 200_000
_LENGTH = re.compile(rb"[0-9a-fA-F]{4}")
_WORD = re.compile(r"[!-~]{1,200}")
_FLUSH = None


class HostKeyDiffers(Rejected):
    """Raised if the server's host key is not the one in the connector's file.

    The private key was not offered to the server.
    """

    def __init__(self) -> None:
        super().__init__("")

    def write_message(self, name: str, said: str) -> str:
        """Return the message for the user, with advice. C{said} is not used."""
        return (
            f"The host key of {name} is not the one in its file, so nothing was sent. Either the server has another "
            "key by now, or it is another server: ask its provider."
        )


class NotGit(ValueError):
    """Raised if a response is not in git's protocol. The text of the error is the reason."""


@frozen
class Remote:
    """The refs of a remote as the remote lists them.

    :ivar refs: the id of the object that each ref is at, by the ref's name, without peeled tags.
    :ivar others: the ids of further objects that the remote has.
    :ivar capabilities: the protocol capabilities that the remote announces.
    """

    refs: Mapping[str, str]
    others: frozenset[str]
    capabilities: frozenset[str]

    @property
    def has(self) -> frozenset[str]:
        """The ids of all objects that the remote repository says it has."""
        return frozenset(self.refs.values()) | self.others


def read_packets(data: bytes) -> Iterator[bytes | None]:
    """Yield the content of each packet, and None for each flush packet.

    :raises NotGit: if C{data} is not made of packets, or the last packet is cut off.
    """
    at = 0
    while at < len(data):
        head = data[at : at + 4]
        length = int(head, 16) if _LENGTH.fullmatch(head) else -1
        if length == 0:
            yield _FLUSH
            at += 4
            continue
        if length < 4 or at + length > len(data):
            raise NotGit("it is not made of whole packets")
        yield data[at + 4 : at + length]
        at += length


def find_end(data: bytearray, at: int) -> tuple[int, bool]:
    """Find the end of a list of packets, starting from the packet at offset C{at}.

    :return: if a flush packet is found, the offset after the flush packet and True. Otherwise, the offset of the first
        packet whose head has not arrived and False.
    :raises NotGit: if C{data} is not made of packets.
    """
    while at + 4 <= len(data):
        head = bytes(data[at : at + 4])
        length = int(head, 16) if _LENGTH.fullmatch(head) else -1
        if length == 0:
            return at + 4, True
        if length < 4:
            raise NotGit("it is not made of whole packets")
        at += length
    return at, False


def write_packet(data: bytes) -> bytes:
    """Return C{data} as one packet: with its length, in four hexadecimal digits, before it."""
    return b"%04x" % (len(data) + 4) + data


def read_remote(answer: ServiceAnswer, service: str) -> Remote:
    """Return the refs in a response to the request for the refs of C{service}.

    :raises NotGit: if the response is not a list of refs, the list is too long, or the remote does not use SHA-1.
    """
    if answer.headers.get("content-type", "").partition(";")[0].strip() != f"application/x-{service}-advertisement":
        raise NotGit("it is no list of refs in git's smart protocol")
    first, begin, *packets = (*read_packets(answer.body), None, None)
    if (first or b"").rstrip() != f"# service={service}".encode() or begin is not _FLUSH:
        raise NotGit("it does not begin as a list of refs does")
    if len(packets) < 4 or packets[-3] is not _FLUSH or len(packets) > _MOST_REFS:
        raise NotGit("its list of refs has no end, or is too long")
    lines = [(packet or b"").decode("utf-8", "replace").rstrip("\n") for packet in packets[:-3]]
    lines[0], _, more = lines[0].partition("\0")
    capabilities = frozenset(more.split())
    if any(each.startswith("object-format=") and each != "object-format=sha1" for each in capabilities):
        raise NotGit("it uses another kind of object ids than SHA-1")
    return Remote(*_read_refs(line for line in lines if not line.startswith("shallow ")), capabilities)


def _read_refs(lines: Iterable[str]) -> tuple[Mapping[str, str], frozenset[str]]:
    refs: dict[str, str] = {}
    others: set[str] = set()
    for line in lines:
        name, blank, ref = line.partition(" ")
        if not blank or not is_object_id(name) or ref in refs:
            raise NotGit("its list of refs is malformed")
        if ref == ".have":
            others.add(name)
        elif not ref.endswith("^{}"):
            refs[ref] = name
    return refs, frozenset(others)


def write_update(ref: str, old: str, new: str, effect_key: str, remote: Remote, pack: bytes) -> bytes:
    """Return the request that updates C{ref} from C{old} to C{new}, and asks for a report.

    The pack follows, unless C{new} is L{NOTHING}, which deletes the ref. The remote does the update only if the ref is
    at C{old}. The effect key is sent as the session id, if the remote supports that.
    """
    wanted = ["report-status", "agent=aileron"]
    if any(each.startswith("session-id=") for each in remote.capabilities) and _WORD.fullmatch(effect_key):
        wanted.append(f"session-id={effect_key}")
    command = f"{old} {new} {ref}\0 {' '.join(wanted)}".encode()
    return write_packet(command) + b"0000" + (b"" if new == NOTHING else pack)


def read_report(body: bytes, ref: str) -> str | None:
    """Read the report on an update.

    :return: None if the update was done, else the remote's reason for the refusal.
    :raises NotGit: if the report is neither an acceptance nor a refusal of the update.
    """
    packets = list(read_packets(body))
    if packets.count(_FLUSH) != 1 or packets.pop() is not _FLUSH or not packets:
        raise NotGit("it is no whole report")
    first, *lines = ((each or b"").decode("utf-8", "replace").rstrip("\n") for each in packets)
    done, refused = f"ok {ref}", f"ng {ref} "
    if first == "unpack ok" and lines == [done]:
        return None
    if first.startswith("unpack ") and len(lines) == 1 and lines[0].startswith(refused):
        return show_safely(lines[0].removeprefix(refused))
    raise NotGit("it does not say what became of the update")
