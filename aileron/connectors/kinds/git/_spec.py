"""The operations of every git connector, and the table C{[git]} of its file."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from attrs import evolve, frozen

from aileron.base.addresses import BaseUrl
from aileron.base.json import JSON
from aileron.base.tables import FileTable, TextRule
from aileron.connectors._answer import MOST_RESPONSE_BYTES
from aileron.connectors._operations import Identity
from aileron.connectors._reach import Reach
from aileron.connectors._services import read_service
from aileron.connectors._spec import BaseSpec
from aileron.credentials import LEAST_RSA_BITS, ApiKey, Basic, OAuth2, SshKey
from aileron.model.connectors import READ, WRITE, ConnectorDescription, CredentialNeed, Operation, Presentation, Request

RECEIVE, UPLOAD = "git-receive-pack", "git-upload-pack"
READ_HERE = "READ"
"""The method of operations that read the local repository only."""

NOTHING = "0" * 40
"""The id that git uses as the commit of a ref that does not exist."""

CREDENTIAL_KINDS = (ApiKey.name, Basic.name, OAuth2.name)
"""The kinds of credentials that are valid for git over HTTP."""

_SECONDS, _PUSH_SECONDS = 30.0, 120.0
_PATH = TextRule(lambda text: _is_plain(PurePosixPath(text)), "must be an absolute path without '.' and '..'")
_HOST_KEY = re.compile(r"(ssh-ed25519|ecdsa-sha2-nistp(?:256|384|521)|ssh-rsa) ([A-Za-z0-9+/]{40,3000}={0,2})")
_NO_HOST_KEY = f"must be a public key: ssh-ed25519, ecdsa-sha2-…, or ssh-rsa of {LEAST_RSA_BITS} bits or more"
_INPUT = re.compile(r"in\.(\w+)")
_PATTERN = re.compile(r"[^\x00-\x20\x7f~^:?\[\\]+")


def _is_plain(path: PurePosixPath) -> bool:
    return path.is_absolute() and ".." not in path.parts


@frozen
class GitOperation:
    """An operation that every git connector has.

    :ivar method: the HTTP method; over SSH the program that runs at the remote; C{READ} for a local read.
    :ivar inputs: the names of the inputs.
    :ivar body: the JSON body of the request, with references to inputs.
    :ivar service: the git program of the remote; empty for a local read.
    :ivar path: the path below the base URL.
    :ivar headers: the request's headers, in order.
    """

    operation: Operation
    method: str
    inputs: frozenset[str]
    body: Mapping[str, JSON]
    service: str = ""
    path: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    max_response_bytes: int = MOST_RESPONSE_BYTES

    @property
    def is_local(self) -> bool:
        """True if the operation reads the local repository only."""
        return self.method == READ_HERE


def _remote(service: str, *names: str, **optional: str) -> GitOperation:
    """Declare a read that begins with a request for the remote's refs."""
    accept = f"application/x-{service}-advertisement"
    return GitOperation(
        Operation("", READ, idempotent=True, timeout_seconds=_SECONDS),
        "GET",
        frozenset((*names, *optional)),
        {name: f"${{in.{name}}}" for name in (*names, *optional)},
        service=service,
        path=f"/info/refs?service={service}",
        headers=(("Content-Type", "application/json"), ("Accept", accept)),
    )


def _local(*names: str) -> GitOperation:
    """Return the declaration of an operation that reads the local repository only, with these inputs."""
    return GitOperation(
        Operation("", READ, idempotent=True, timeout_seconds=_SECONDS),
        READ_HERE,
        frozenset(names),
        {name: f"${{in.{name}}}" for name in names},
    )


def _update(place: str, old: str, new: str, title: str, *, destructive: bool = False) -> GitOperation:
    """Declare an update of one remote ref from C{old} to C{new}.

    :param place: the ref, with references to inputs.
    :param title: the title of a call.
    """
    names = {"branch" if "branch" in place else "tag", *_INPUT.findall(old + new)}
    tied = tuple(sorted(names & {"commit", "expected"}))
    accept = f"application/x-{RECEIVE}-result"
    return GitOperation(
        Operation(
            "",
            WRITE,
            idempotent=False,
            timeout_seconds=_PUSH_SECONDS,
            precondition=tied,
            reconcilable=True,
            destructive=destructive,
            irreversible=destructive,
            presentation=Presentation("delete" if new == NOTHING else "push", titles=(title,)),
        ),
        "POST",
        frozenset(names),
        {"ref": place, "old": old, "new": new, "effect": "${effect.key}"},
        service=RECEIVE,
        path=f"/{RECEIVE}",
        headers=(("Content-Type", f"application/x-{RECEIVE}-request"), ("Accept", accept)),
    )


_BRANCH, _TAG = "refs/heads/${in.branch}", "refs/tags/${in.tag}"
_OLD, _NEW = "${in.expected}", "${in.commit}"
_DECLARED: Mapping[str, tuple[str, GitOperation]] = {
    "push": (
        "Moves a remote branch forward to a local commit.",
        _update(_BRANCH, _OLD, _NEW, "Push to branch ${in.branch}"),
    ),
    "force_push": (
        "Moves a remote branch to a local commit, whatever is lost of it.",
        _update(_BRANCH, _OLD, _NEW, "Force-push to branch ${in.branch}", destructive=True),
    ),
    "create_branch": (
        "Makes a new remote branch at a local commit.",
        _update(_BRANCH, NOTHING, _NEW, "Create branch ${in.branch}"),
    ),
    "delete_branch": (
        "Deletes a remote branch.",
        _update(_BRANCH, _OLD, NOTHING, "Delete branch ${in.branch}", destructive=True),
    ),
    "create_tag": ("Makes a new remote tag at a local commit.", _update(_TAG, NOTHING, _NEW, "Create tag ${in.tag}")),
    "compare": (
        "Shows what an update of a remote branch or tag to a local revision would change.",
        _remote(RECEIVE, "commit", branch="", tag=""),
    ),
    "remote_branch": ("Shows which commit a remote branch is at.", _remote(RECEIVE, "branch")),
    "refs": ("Lists the branches and tags of the remote.", _remote(UPLOAD)),
    "log": ("Lists commits of the local repository, newest first.", _local("revision", "count")),
    "merges": ("Lists merge commits of the local repository, newest first.", _local("revision", "count")),
    "show": ("Shows one commit of the local repository with its patch.", _local("revision")),
    "diff": ("Shows the difference between two revisions of the local repository.", _local("from", "to")),
}
LOCAL = frozenset(name for name, (_, each) in _DECLARED.items() if each.is_local)


def _named() -> Mapping[str, GitOperation]:
    return {
        name: evolve(each, operation=evolve(each.operation, name=name, description=description))
        for name, (description, each) in _DECLARED.items()
    }


OPERATIONS = _named()
"""The operations of every git connector, by name."""


@frozen
class HostKey:
    """The public key of a server.

    :ivar kind: the key type, such as C{ssh-ed25519}.
    :ivar blob: the key in SSH's binary form.
    """

    kind: bytes
    blob: bytes

    @classmethod
    def read(cls, text: str) -> HostKey:
        """Parse a key as C{ssh-keyscan} prints it, without the host.

        :raises ValueError: if the text is not a public key of a supported type and size.
        """
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.serialization import load_ssh_public_key

        if not (found := _HOST_KEY.fullmatch(text)):
            raise ValueError(_NO_HOST_KEY)
        try:
            key, blob = load_ssh_public_key(text.encode()), base64.b64decode(found[2], validate=True)
        except ValueError:
            raise ValueError(_NO_HOST_KEY) from None
        if isinstance(key, RSAPublicKey) and key.key_size < LEAST_RSA_BITS:
            raise ValueError(_NO_HOST_KEY)
        return cls(found[1].encode(), blob)


def algorithms_of(kind: bytes) -> tuple[bytes, ...]:
    """Return the signature algorithms of a key type, best first. RSA is never used with SHA-1 (RFC 8332)."""
    return (b"rsa-sha2-512", b"rsa-sha2-256") if kind == b"ssh-rsa" else (kind,)


@frozen
class GitSpec(BaseSpec):
    """The content of a git connector's file.

    :ivar private_network: whether the remote may be at a loopback or private address.
    :ivar repository: the path of the local repository: its working directory, or the directory of a bare repository.
    :ivar branches: patterns of the remote branches that may be updated.
    :ivar tags: patterns of the remote tags that may be created.
    :ivar host_key: the host key of the remote if it is reached over SSH, else None.
    :ivar is_host: True if the file is of a host for the git of agents, and not of one repository.
    """

    operations: Mapping[str, GitOperation]
    private_network: bool = False
    repository: str = ""
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    host_key: HostKey | None = None
    is_host: bool = False

    @property
    def over_ssh(self) -> bool:
        """True if the remote is reached over SSH instead of HTTP."""
        return self.host_key is not None

    @property
    def reach(self) -> Reach:
        """The addresses that the connector's requests may go to."""
        return Reach(self.description, self.private_network, self.over_ssh)

    def find_declared(self, name: str) -> GitOperation:
        """Return the operation with a name.

        :raises CapabilityDenied: if there is no such operation.
        """
        self.find_operation(name)
        return self.operations[name]

    def find_base_url(self, base_url: str) -> BaseUrl:
        """Return the remote's URL for a connector that is bound to C{base_url}.

        :raises CapabilityDenied: if the host is not declared in the file, or the URL is not permitted.
        """
        return self.reach.find_base_url(None, base_url)

    def check_own(self, request: Request) -> GitOperation:
        """Check that this connector prepared the request and that the host is allowed.

        :return: the operation of the request.
        :raises CapabilityDenied: if the operation is unknown, the request is another connector's or was changed, or its
            host is not allowed.
        """
        operation = self.find_declared(request.operation)
        self.reach.check_own(request, operation.operation, operation.method, None)
        return operation

    def may_update(self, ref: str) -> bool:
        """Return True if the file allows updates of a remote ref."""
        allowed = (*(f"refs/heads/{each}" for each in self.branches), *(f"refs/tags/{each}" for each in self.tags))
        return any(_fits(ref, each) for each in allowed)


def _fits(ref: str, pattern: str) -> bool:
    """Return True if a ref matches a pattern, in which C{*} matches any text. Takes time linear in the ref's length."""
    first, *rest = pattern.split("*")
    if not rest:
        return ref == pattern
    *middle, last = rest
    at = len(first) if ref.startswith(first) else -1
    for part in middle:
        found = ref.find(part, at) if at >= 0 else -1
        at = found + len(part) if found >= 0 else -1
    return 0 <= at <= len(ref) - len(last) and ref.endswith(last)


def read_git(document: FileTable, head: FileTable, identity: Identity) -> GitSpec:
    """Return the spec read from a connector file: C{[git]}, C{[credential]}, and the service keys of C{[connector]}.

    Faults are added to the tables.
    """
    service = read_service(document, head, ssh=True)
    about = service.describe(identity, {name: each.operation for name, each in OPERATIONS.items()})
    if not about.bindable and about.base_url:
        repository = _name_repository(about.base_url)
        about = evolve(
            about, operations={name: _say_where(each, repository) for name, each in about.operations.items()}
        )
    table, need = document.table("git", required=True), service.need
    over_ssh = (about.base_url or "").startswith("ssh://")
    if over_ssh:
        _check_ssh(about, table, need)
    elif need is not None and (need.kind not in CREDENTIAL_KINDS or not need.header):
        table.faults.add(
            ("credential", "kind"), f"`kind` must be {' or '.join(CREDENTIAL_KINDS)}, in a header, for git"
        )
    host_key = table.read("host_key", HostKey.read, None) if over_ssh else None
    repository = table.text("repository", _PATH)
    branches, tags = (table.texts(key, required=False) for key in ("branches", "tags"))
    _check(table, "branches", branches)
    _check(table, "tags", tags)
    table.close()
    operations = _over_ssh(OPERATIONS) if over_ssh else OPERATIONS
    return GitSpec(about, operations, service.private_network, repository, branches, tags, host_key)


def _name_repository(base_url: str) -> str:
    """Return the last two parts of a repository's path, such as C{acme/infra}, without dollar signs."""
    path = base_url.partition("://")[2].partition("/")[2].strip("/").removesuffix(".git")
    return "/".join(path.split("/")[-2:]).replace("$", "")


def _say_where(operation: Operation, repository: str) -> Operation:
    """Return the operation with the repository's name added to its titles.

    An operation without a presentation, and every operation if C{repository} is empty, is returned unchanged.
    """
    given = operation.presentation
    if given is None or not repository:
        return operation
    return evolve(
        operation, presentation=evolve(given, titles=tuple(f"{each} in {repository}" for each in given.titles))
    )


def _check_ssh(about: ConnectorDescription, table: FileTable, need: CredentialNeed | None) -> None:
    if need is None or need.kind != SshKey.name:
        table.faults.add(("credential", "kind"), f"`kind` must be {SshKey.name} for git over ssh")
    if about.bindable:
        table.faults.add(("connector", "base_url"), "`base_url` must be fixed for git over ssh, as its host key is")
    if "host_key" not in table.values:
        host = (about.hosts or ("HOST",))[0].rpartition(":")[0]
        how = f"run `ssh-keyscan -t ed25519 {host}`, and compare the key with the one that the provider publishes"
        table.fault("host_key", f"is missing; to get it, {how}")


def _over_ssh(operations: Mapping[str, GitOperation]) -> Mapping[str, GitOperation]:
    """Return the operations for SSH: their method is the remote program, and they have neither path nor headers."""
    return {
        name: each if each.is_local else evolve(each, method=each.service, path="", headers=())
        for name, each in operations.items()
    }


def _check(table: FileTable, key: str, patterns: Iterable[str]) -> None:
    for each in patterns:
        if not _PATTERN.fullmatch(each):
            table.fault(key, f"has {each!r}, which is no name of a ref, with '*' for any part of it")
