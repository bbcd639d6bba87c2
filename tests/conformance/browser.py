"""A browser that opens a file with a link, and goes where it is sent, as somebody who is signed in already."""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from urllib.request import urlopen


def main() -> None:
    """Open the file that is named last."""
    [url] = re.findall(r'href="([^"]+)"', Path(sys.argv[-1]).read_text())
    urlopen(html.unescape(url), timeout=20).read()


if __name__ == "__main__":
    main()
