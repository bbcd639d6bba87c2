"""Fetches single objects of a remote repository by version 2 of git's protocol."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterator

from attrs import define, field

from aileron.connectors._decode import show_safely

from ._pack_stream import Objects, read_pack
from ._remote import NotGit, read_packets, write_packet
from ._spec import UPLOAD

ADVERTISED = f"/info/refs?service={UPLOAD}"
SERVICE = f"/{UPLOAD}"
COMMITS, NO_FILES = "tree:0", "blob:none"
"""Filters by which a remote leaves out objects: all but commits and tags, and the contents of files."""

_MOST_WANTED = 2000
_DELIMITER = b"0001"
_LENGTH = re.compile(rb"[0-9a-fA-F]{4}")
_DATA, _PROGRESS, _EMPTY = 1, 2, 4

AskRemote = Callable[[str, bytes | None], Awaitable[bytes]]
"""Sends a request to a path below the repository's URL, by POST if there is a body, and returns the response's body.

It raises L{AileronError<aileron.model.errors.AileronError>} if there is no response with the status 200.
"""


@define
class RemoteObjects:
    """The objects of a remote repository.

    :ivar ask: sends a request.
    :ivar check: called regularly while a response is read; raises an error if the time limit has passed.
    :ivar in_thread: calls a function with arguments in another thread.
    """

    ask: AskRemote
    check: Callable[[], None]
    in_thread: Callable[..., Awaitable[Objects]]
    _filters: bool | None = field(default=None, init=False)

    async def fetch(
        self, wanted: Collection[str], known: Collection[str] = (), *, left_out: str = "", alone: bool = False
    ) -> Objects:
        """Return objects and all that they lead to.

        :param known: commits whose history is left out.
        :param left_out: the filter for what is left out, if the remote supports filters.
        :param alone: whether the history of commits is left out.
        :raises NotGit: if too many are wanted, the remote does not support this protocol, or it lacks an object.
        :raises Damaged: if its response is damaged or too large.
        :raises AileronError: if it cannot be reached.
        """
        if not wanted:
            return {}
        if len(wanted) > _MOST_WANTED:
            raise NotGit("too many objects of the remote would be needed")
        if self._filters is None:
            self._filters = _find_filters(await self.ask(ADVERTISED, None))
        lines = ["no-progress", *(f"want {each}" for each in sorted(wanted)), *(f"have {each}" for each in known)]
        lines += ["deepen 1"] * alone + [f"filter {left_out}"] * (self._filters and bool(left_out)) + ["done"]
        body = write_packet(b"command=fetch\n") + write_packet(b"agent=aileron\n") + _DELIMITER
        body += b"".join(write_packet(f"{line}\n".encode()) for line in lines) + b"0000"
        answer = await self.ask(SERVICE, body)
        return await self.in_thread(lambda: read_pack(_find_pack(answer), self.check))


def _find_filters(body: bytes) -> bool:
    """Return whether the remote supports filters.

    :raises NotGit: if it does not support version 2 of the protocol.
    """
    lines = [(each or b"").rstrip(b"\n") for each in read_packets(body)]
    if b"version 2" not in lines:
        raise NotGit("the remote does not support version 2 of git's protocol")
    supported = next((line for line in lines if line.startswith(b"fetch=")), b"")
    return b"filter" in supported.removeprefix(b"fetch=").split(b" ")


def _find_pack(body: bytes) -> bytes:
    """Return the pack in the response to a fetch.

    :raises NotGit: if there is none, or the remote reports an error.
    """
    parts, section = [], b""
    for line in _read_lines(body):
        if line is None:
            section = b""
        elif not section:
            section = line.rstrip(b"\n")
            if section.startswith(b"ERR "):
                raise NotGit(f"the remote said {_show(section[4:])}")
        elif section == b"packfile" and line[0] == _DATA:
            parts.append(line[1:])
        elif section == b"packfile" and line[0] != _PROGRESS:
            raise NotGit(f"the remote said {_show(line[1:])}")
    if not parts:
        raise NotGit("the remote sent no pack")
    return b"".join(parts)


def _show(said: bytes) -> str:
    return show_safely(said.decode("utf-8", "replace").strip())


def _read_lines(body: bytes) -> Iterator[bytes | None]:
    """Yield the packets up to the flush packet, and None for each delimiter.

    :raises NotGit: if the body is not made of packets.
    """
    at = 0
    while at + 4 <= len(body):
        head = body[at : at + 4]
        length = int(head, 16) if _LENGTH.fullmatch(head) else -1
        if length == 0:
            return
        if length == 1:
            yield None
            at += 4
            continue
        if length <= _EMPTY or at + length > len(body):
            raise NotGit("the remote's response is malformed")
        yield body[at + 4 : at + length]
        at += length
