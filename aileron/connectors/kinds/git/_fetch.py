"""Fetches the files of one tag of a remote repository into memory, without history or checkout. Runs no program.

The remote is untrusted: its responses are read within limits, and only objects that git itself would write are used.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from itertools import islice

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.connectors._answer import Flight, OutgoingRequest, ServiceAnswer, Transport
from aileron.connectors._decode import show_safely
from aileron.connectors._sending import FAILURES, describe_failure, wait_in_time
from aileron.model.errors import ExternalApiError, InvalidRequest

from ._objects import BLOB, COMMIT, DIRECTORY, SUBMODULE, TAG, TREE, Damaged, parse_commit, parse_tag, parse_tree
from ._pack_stream import MOST_SENT_BYTES, Objects, read_pack
from ._remote import NotGit, read_packets, read_remote, write_packet
from ._repository import MOST_TAGS, Deadline
from ._spec import UPLOAD

_TAGS = "refs/tags/"
_TOKEN_USER = "x-access-token"  # required by GitHub; other servers accept any user name with a token
_WANTED = frozenset(("side-band-64k", "shallow"))
_SECONDS, _READ_SECONDS = 120.0, 30.0
_MOST_LIST_BYTES = 16 * 1024 * 1024
_MOST_PACKETS = 100_000  # a pack of 32 MiB in packets of 336 bytes; git sends packets of 8 KiB or more
_MOST_ENTRIES, _MOST_DEPTH, _MOST_CHARACTERS = 2000, 8, 1000
_LINK = 0o120000
_OK = 200


@frozen
class RemoteRepository:
    """A remote repository that is read without a connector.

    :ivar url: an HTTP or SSH URL, as C{transport} requires.
    :ivar secret: the credential for HTTP: a token, or a user name and a password separated by a colon.
    """

    url: str
    transport: Transport = field(repr=False)
    clock: IReactorTime = field(repr=False)
    private_network: bool
    private_key: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)

    async def tags(self) -> Mapping[str, str]:
        """Return the id of the object that each tag points to, by the tag's name.

        :raises AileronError: if the remote cannot be reached, does not respond with a list of refs, or lacks a needed
            capability.
        """
        answer = await self._ask("GET", f"/info/refs?service={UPLOAD}", None, _MOST_LIST_BYTES)
        try:
            remote = read_remote(answer, UPLOAD)
        except NotGit as error:
            raise ExternalApiError(f"{self.url} gave an answer that was not expected: {error}.") from None
        if lacking := sorted(_WANTED - remote.capabilities):
            raise ExternalApiError(f"{self.url} cannot be read: its server lacks {' and '.join(lacking)}.")
        return {ref.removeprefix(_TAGS): at for ref, at in remote.refs.items() if ref.startswith(_TAGS)}

    async def fetch(self, name: str, path: str) -> tuple[str, dict[str, bytes]]:
        """Fetch the files below C{path} of the commit that an object points to.

        :param name: the id of the object, a tag or a commit.
        :return: the id of the commit, and the contents of the files by their paths.
        :raises AileronError: if the remote cannot be reached, or the files are not sent, are malformed or too large, or
            include links or submodules.
        """
        want = write_packet(f"want {name} side-band-64k no-progress agent=aileron\n".encode())
        body = want + write_packet(b"deepen 1\n") + b"0000" + write_packet(b"done\n")
        answer = await self._ask("POST", f"/{UPLOAD}", body, MOST_SENT_BYTES)
        try:
            objects = read_pack(_unwrap(answer.body), Deadline.after(_READ_SECONDS).check)
            commit, tree = _find_tree(objects, name)
            return commit, dict(_files(objects, _descend(objects, tree, path)))
        except NotGit as error:
            raise ExternalApiError(f"{self.url} did not send what was asked for: {error}.") from None
        except Damaged:
            raise ExternalApiError(f"{self.url} sent a pack that is damaged, incomplete or too large.") from None

    async def _ask(self, method: str, place: str, body: bytes | None, most: int) -> ServiceAnswer:
        headers: tuple[tuple[str, str], ...] = ()
        over_ssh = self.url.startswith("ssh://")
        if body is not None and not over_ssh:
            headers = (
                ("Content-Type", f"application/x-{UPLOAD}-request"),
                ("Accept", f"application/x-{UPLOAD}-result"),
            )
        to = (UPLOAD, self.url) if over_ssh else (method, self.url + place)
        if self.secret and not over_ssh:
            pair = self.secret if ":" in self.secret else f"{_TOKEN_USER}:{self.secret}"
            headers += (("Authorization", f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"),)
        flight = Flight()
        sending = self.transport.send(
            OutgoingRequest(*to, headers, body, self.private_network, most, self.private_key), flight
        )
        try:
            answer = await wait_in_time(sending, self.clock, flight, seconds=_SECONDS, late_seconds=_SECONDS)
        except FAILURES as error:
            fault = describe_failure(self.url, error, flight, seconds=2 * _SECONDS, most_bytes=most)
            raise ExternalApiError(fault.message) from None
        if answer.status != _OK:
            place = show_safely(answer.headers.get("location", ""))
            moved = place and f", and leads to {place}. Redirects are not followed"
            raise ExternalApiError(f"{self.url} answered with status {answer.status}{moved}.")
        return answer


def _unwrap(body: bytes) -> bytes:
    """Return the pack in the body of a response.

    :raises NotGit: if the body has no pack, has too many packets, or reports an error.
    """
    packets = list(islice(read_packets(body), _MOST_PACKETS + 1))
    if len(packets) > _MOST_PACKETS:
        raise NotGit("it is in too many packets")
    begin = packets.index(None) + 1 if None in packets else 0
    lines = [packet or b"" for packet in packets[:begin][:-1]]
    first, *parts = packets[begin:] or [None]
    if not begin or first != b"NAK\n" or not parts or parts.pop() is not None:
        said = next((each for each in packets if each), b"nothing")
        raise NotGit(f"it said {show_safely(said.decode('utf-8', 'replace').strip())}")
    errors = b"".join(each[1:] for each in parts if each and each[0] == 3)
    if errors or not all(line.startswith(b"shallow ") for line in lines):
        raise NotGit(f"it said {show_safely(errors.decode('utf-8', 'replace').strip())}")
    return b"".join(each[1:] for each in parts if each and each[0] == 1)


def _content(objects: Objects, name: str, kind: int) -> bytes:
    found, content = objects.get(name, (0, b""))
    if found != kind:
        raise Damaged
    return content


def _find_tree(objects: Objects, name: str) -> tuple[str, str]:
    """Return two ids: of the commit that an object points to, and of the commit's tree.

    :raises Damaged: if an object is missing or of another type.
    :raises InvalidRequest: if an object is malformed.
    """
    for _ in range(MOST_TAGS):
        if objects.get(name, (0, b""))[0] == TAG:
            name = parse_tag(name, objects[name][1])
    return name, parse_commit(name, _content(objects, name, COMMIT)).tree


def _descend(objects: Objects, tree: str, path: str) -> str:
    for part in filter(None, path.split("/")):
        mode, below = parse_tree(tree, _content(objects, tree, TREE)).get(part.encode(), (0, ""))
        if mode != DIRECTORY:
            raise InvalidRequest(f"The repository has no directory {path} at this tag.")
        tree = below
    return tree


def _files(objects: Objects, tree: str) -> Iterator[tuple[str, bytes]]:
    todo, seen = [("", tree, 0)], 0
    while todo:
        before, tree, depth = todo.pop()
        for entry, (mode, name) in parse_tree(tree, _content(objects, tree, TREE)).items():
            path = before + entry.decode("utf-8", "backslashreplace")
            seen += 1
            if seen > _MOST_ENTRIES or depth > _MOST_DEPTH or len(path) > _MOST_CHARACTERS:
                raise InvalidRequest(f"The package has more than {_MOST_ENTRIES} files, or paths that are too long.")
            if mode in (SUBMODULE, _LINK):
                what = "submodule" if mode == SUBMODULE else "symbolic link"
                raise InvalidRequest(f"The package has a {what}, {show_safely(path)}, which is refused.")
            if mode == DIRECTORY:
                todo.append((f"{path}/", name, depth + 1))
            else:
                yield path, _content(objects, name, BLOB)
