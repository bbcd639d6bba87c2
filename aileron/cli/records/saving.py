"""Attachments as files."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator, Sequence
from pathlib import Path

from aileron.values import Attachment


def saved(attachments: Sequence[Attachment], directory: Path, name: str) -> Iterator[Path]:
    """Write each into a file of its own, C{NAME-1.png} say, and tell its path.

    :param directory: is made where it is not there.
    :raises OSError: there is a file of that name, which stays as it is; or it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for number, attachment in enumerate(attachments, 1):
        path = directory / f"{name}-{number}{mimetypes.guess_extension(attachment.media_type) or ''}"
        with path.open("xb") as file:
            file.write(attachment.content)
        yield path
