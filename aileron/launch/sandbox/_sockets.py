"""By which sockets an agent could have somebody outside do something: they are paths, which no network keeps apart."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_ISSOCK

RUN = "/run"
_DEEP = 4
_AT_HOME = (
    ".gnupg/S.*",
    ".ssh/agent/*",
    ".docker/run/*.sock",
    ".docker/desktop/*.sock",
    ".colima/*/*.sock",
    ".local/share/containers/podman/machine/*.sock",
)


def sockets(home: str, environment: Mapping[str, str], run: str = RUN) -> tuple[str, ...]:
    """Those of daemons and of helpers that hold keys: of containers, of keys for SSH and GPG, of terminals, of D-Bus.

    :param home: the user's.
    :param environment: the user's, which names some.
    :param run: where the system's are.
    """
    candidates = (*_named(environment), *_below(run), *_of_user(Path(home)))
    return tuple(dict.fromkeys(os.path.realpath(path) for path in candidates if _is_socket(path)))


def _named(environment: Mapping[str, str]) -> Iterator[str]:
    yield environment.get("SSH_AUTH_SOCK", "")
    yield environment.get("TMUX", "").partition(",")[0]
    for name in ("DOCKER_HOST", "CONTAINER_HOST"):
        yield environment.get(name, "").removeprefix("unix://")
    for address in environment.get("DBUS_SESSION_BUS_ADDRESS", "").split(";"):
        yield address.partition("unix:path=")[2].partition(",")[0]


def _below(run: str) -> Iterator[str]:
    deepest = run.count("/") + _DEEP
    for directory, directories, files in os.walk(run):
        if directory.count("/") >= deepest:
            directories.clear()
        yield from (f"{directory}/{name}" for name in files)


def _of_user(home: Path) -> Iterator[str]:
    for pattern in _AT_HOME:
        yield from map(str, home.glob(pattern))


def _is_socket(path: str) -> bool:
    try:
        return bool(path) and S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False
