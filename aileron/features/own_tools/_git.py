"""Recognises the requests of git over HTTPS: refs and objects that it reads, and pushes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from aileron.base.json import JSON, digest
from aileron.connectors import GIT_PROBE, GitPush, NotGit, read_push
from aileron.model.connectors import READ, WRITE

from .values import ToolRequest

GIT, GIT_FETCH, GIT_PUSH = "git", "git fetch", "git push"
"""The protocols of the requests of git: a list of refs, objects that are fetched, and a push."""

_UPLOAD, _RECEIVE = "git-upload-pack", "git-receive-pack"
_SEGMENT = re.compile(r"[A-Za-z0-9_.~-]{1,200}")
_LISTS = frozenset(f"service={each}" for each in (_UPLOAD, _RECEIVE))
_NO_REPOSITORY = frozenset((".", "..", "info", _UPLOAD, _RECEIVE))
_MOST_SEGMENTS = 20
_LEFT_OUT = frozenset(("content-encoding", "authorization"))


@frozen
class GitRequest:
    """A request of git.

    :ivar effect: C{read} or C{write}.
    :ivar protocol: L{GIT}, L{GIT_FETCH} or L{GIT_PUSH}. An answer must be in its form.
    :ivar repository: the path of the repository, without the slash before it.
    :ivar push: the push, if it is one.
    """

    effect: str
    protocol: str
    repository: str
    push: GitPush | None = None


def recognise_git(request: ToolRequest) -> GitRequest:
    """Return what a request of git does.

    :raises NotGit: if it is none, or a server could read it in another way.
    """
    path, mark, query = request.target.partition("?")
    *places, last = path[1:].split("/")
    if request.method == "GET" and places[-1:] == ["info"] and last == "refs" and query in _LISTS and not request.body:
        return GitRequest(READ, GIT, _name_repository(places[:-1]))
    # guard of own tools: a host of git is asked for nothing else than what git asks
    #    -> features.own_tools.test_git.RecognitionTests.test_other
    if request.method != "POST" or mark or last not in (_UPLOAD, _RECEIVE):
        raise NotGit("only git over HTTPS is supported at this host")
    repository = _name_repository(places)
    _check_headers(request, last)
    if last == _UPLOAD:
        return GitRequest(READ, GIT_FETCH, repository)
    if request.body == GIT_PROBE:
        return GitRequest(READ, GIT, repository)
    return GitRequest(WRITE, GIT_PUSH, repository, read_push(request.body))


def _name_repository(places: list[str]) -> str:
    # guard of own tools: a repository has one name -> features.own_tools.test_git.RecognitionTests.test_paths
    unclear = any(not _SEGMENT.fullmatch(each) or each.lower() in _NO_REPOSITORY for each in places)
    if unclear or not 0 < len(places) <= _MOST_SEGMENTS:
        raise NotGit("the path of the URL is no plain path of a repository")
    return "/".join(places)


def _check_headers(request: ToolRequest, service: str) -> None:
    names = [name.lower() for name, _ in request.headers]
    values = {name.lower(): value for name, value in request.headers}
    if names.count("content-type") != 1 or values["content-type"] != f"application/x-{service}-request":
        raise NotGit("its content is of another type than git sends")
    # guard of own tools: a push is read as it is sent -> features.own_tools.test_git.RecognitionTests.test_encoded
    if service == _RECEIVE and "content-encoding" in names:
        raise NotGit("a push that is compressed as a whole is not supported")


def push_form(request: ToolRequest, repository: str, push: GitPush) -> str:
    """Return the digest of a push's normal form.

    The pack is not part of it: its bytes differ from one run of git to the next, and the ids name its content.
    """
    kept: list[JSON] = [*sorted(map(str, push.updates))]
    return digest(["push", request.host, repository, kept, [*push.options], "atomic" in push.capabilities])


def push_inputs(request: ToolRequest, repository: str, push: GitPush) -> Mapping[str, JSON]:
    """Return the inputs of the forwarding operation for a push, without those of its content."""
    return {
        "host": request.host,
        "repository": repository,
        "changes": push.summarize(),
        **push.to_json(),
        "headers": [f"{name}: {value}" for name, value in request.headers if name.lower() not in _LEFT_OUT],
    }
