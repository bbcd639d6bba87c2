"""Reads the file with a daemon's token for the transit server. It is read at each use and never kept."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from aileron.model.errors import Forbidden, InvalidRequest, NetworkError

_MOST_BYTES = 16 * 1024
_TOKEN = re.compile(r"[\x21-\x7e]+")


def read_secret(path: Path) -> str:
    """Return the one line of a file that only this user and root can read or write.

    A link is followed, because Kubernetes mounts secrets behind links. What counts is the file at its end. If root owns
    the file, its group may read it: so Kubernetes and systemd give a file to one user.

    :raises NetworkError: if there is no such file yet, or it is empty: another program may be about to write it.
    :raises Forbidden: if others can read or write it, it belongs to another user, or it cannot be opened.
    :raises InvalidRequest: if it has anything but one short line of visible ASCII.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NetworkError(f"There is no file {path} yet.") from None
    except OSError as error:
        raise Forbidden(f"{path} cannot be opened: {error.strerror}.") from None
    try:
        _check(path, os.fstat(descriptor))
        data = os.read(descriptor, _MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    text = data.decode("ascii", "replace").removesuffix("\n").removesuffix("\r")
    if not text:
        raise NetworkError(f"{path} is still empty.")
    # guard of signing: what is sent as a header is one line
    #    -> features.key_sources.test_transit.SecretFileTests.test_line
    if len(data) > _MOST_BYTES or not _TOKEN.fullmatch(text):
        raise InvalidRequest(f"{path} must have one line of visible ASCII, {_MOST_BYTES} characters at most.")
    return text


def _check(path: Path, found: os.stat_result) -> None:
    shared = stat.S_IRGRP if found.st_uid == 0 else 0
    # guard of signing: a token that others can read or write is not sent
    #    -> features.key_sources.test_transit.SecretFileTests.test_open_to_others
    if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o177 & ~shared:
        raise Forbidden(f"{path} is refused: it must be a file that others can neither read nor write: chmod 600.")
    # guard of signing: a token that another user may have chosen is not sent
    #    -> features.key_sources.test_transit.SecretFileTests.test_of_another_user
    if found.st_uid not in (0, os.geteuid()):
        raise Forbidden(f"{path} is refused: it belongs to another user.")
