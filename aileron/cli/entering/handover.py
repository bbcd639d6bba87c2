"""A private file that logs a browser in once: a form that posts itself to the operator site."""

from __future__ import annotations

import html
import os
import secrets
from pathlib import Path

from aileron.home import Home

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>Aileron</title>
<form method="post" action="{action}">
<input type="hidden" name="code" value="{code}">
<input type="hidden" name="next" value="{path}">
<p>Opening your Aileron pages … <noscript><button>Go on</button></noscript></p>
</form>
<script>document.forms[0].submit()</script>
</html>
"""


def write_page(home: Home, operator_url: str, code: str, path: str) -> Path:
    """The file; only this user can read it.  Whoever writes it removes it.

    :param code: works once, within 60 s.
    :param path: of the page to show, below C{operator_url}.
    """
    directory = home.root / "run"
    directory.mkdir(mode=0o700, exist_ok=True)
    file = directory / f"open-{secrets.token_hex(8)}.html"
    page = _PAGE.format(action=html.escape(f"{operator_url}/handover"), code=html.escape(code), path=html.escape(path))
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as written:
        written.write(page)
    return file


def sweep(home: Home) -> None:
    """Remove files that a command which was killed has left; their codes are long dead."""
    for left in (home.root / "run").glob("open-*.html"):
        left.unlink(missing_ok=True)
