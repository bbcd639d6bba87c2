"""Looks for a secret where it must not be: in files, and in what other processes can read of a process."""

import base64
import contextlib
import errno
import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import attrs

SHORTEST = 12
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


@attrs.frozen
class Finding:
    """Where a canary was seen, and in what form."""

    place: str
    form: str


def forms(canary: str) -> dict[str, bytes]:
    """The shapes in which a secret may leak, each once and by name.

    :raises ValueError: for a canary so short that a piece of it may turn up by chance.
    """
    if len(canary) < SHORTEST:
        raise ValueError(f"a canary has at least {SHORTEST} characters")
    raw = canary.encode()
    shapes = {
        "plain": raw,
        "hex": raw.hex().encode(),
        "percent": urllib.parse.quote(canary, safe="").encode(),
        "json": json.dumps(canary)[1:-1].encode(),
    }
    for offset in range(3):
        shapes[f"base64+{offset}"] = _base64_core(raw, offset)
        shapes[f"base64url+{offset}"] = _base64_core(raw, offset).translate(_URL_SAFE)
    return {name: shape for shape, name in {shape: name for name, shape in reversed(shapes.items())}.items()}


def in_bytes(place: str, content: bytes, canary: str) -> Iterator[Finding]:
    """Every form of ``canary`` in ``content``."""
    lowered = content.lower()
    for form, shape in forms(canary).items():
        if shape in content or (form == "hex" and shape in lowered):
            yield Finding(place, form)


def in_files(directory: Path, canary: str) -> list[Finding]:
    """Every file below ``directory``, its name included, that shows ``canary``.

    Links are not followed; what is no plain file has no content.
    """
    return [finding for path in sorted(directory.rglob("*")) for finding in _in_path(path, canary)]


def in_process(pid: int, canary: str) -> list[Finding]:
    """Whether the environment or the arguments of a process show ``canary`` (Linux).

    What this user may not read shows nothing.

    :raises FileNotFoundError: when there is no such process, or it ends meanwhile.
    """
    arguments = Path(f"/proc/{pid}/cmdline")
    if not _read(arguments):
        raise FileNotFoundError(errno.ENOENT, "it has ended, and nobody has taken note", str(arguments))
    return [finding for path in (arguments.with_name("environ"), arguments) for finding in _in_proc(path, canary)]


def _base64_core(raw: bytes, offset: int) -> bytes:
    """What base64 makes of ``raw`` at an offset (modulo three), less the ends that its neighbours share."""
    return base64.b64encode(b"\0" * offset + raw)[4 if offset else 0 : -4]


def _in_path(path: Path, canary: str) -> Iterator[Finding]:
    yield from in_bytes(f"name of {path}", path.name.encode(), canary)
    if path.is_file() and not path.is_symlink():
        # A living daemon may delete a file between the listing and the reading.
        with contextlib.suppress(FileNotFoundError):
            yield from in_bytes(str(path), path.read_bytes(), canary)


def _in_proc(path: Path, canary: str) -> Iterator[Finding]:
    try:
        content = _read(path)
    except PermissionError:
        return
    yield from in_bytes(str(path), content, canary)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except ProcessLookupError as ended:  # after the file was opened
        raise FileNotFoundError(errno.ENOENT, ended.strerror, str(path)) from ended
