"""What a browser does with the page that logs it in, and with what it gets for it."""

import json
import re
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote_plus, urlsplit

import attrs


@attrs.frozen
class Browser:
    """A browser that came to the door: a cookie, and the key that its page keeps.

    :ivar site: where it is.
    """

    site: str
    cookie: str
    page_key: str

    def words(self) -> str:
        """The two words that its page shows until it is let in."""
        status, found = self.ask(f"{self.site}/handover/state")
        assert status == 200, (status, found)
        return str(found["words"])

    def ask(self, url: str, body: object = None) -> tuple[int, Any]:
        """The status and JSON of a GET, or of a POST if there is a body."""
        headers = {"Cookie": self.cookie, "X-Aileron-Proof": self.page_key}
        data = None if body is None else json.dumps(body)
        if data is not None:
            headers["Content-Type"] = "application/json"
        status, _, text = _exchange(url, data, headers)
        return status, json.loads(text) if text.startswith("{") else text


def come(page: str) -> Browser | int:
    """Post the form of a page as it stands; the status, where that is refused."""
    action, code = _found(r'action="([^"]+)"', page), _found(r'name="code" value="([^"]+)"', page)
    headers = {"Origin": "null", "Content-Type": "application/x-www-form-urlencoded"}
    status, cookie, text = _exchange(action, f"code={quote_plus(code)}", headers)
    if status != 200:
        return status
    return Browser(
        action.removesuffix("/handover"),
        cookie.partition(";")[0],
        _found(r"page-key(?:&quot;|\"): ?(?:&quot;|\")([\w-]+)", text),
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise AssertionError(f"{pattern!r} is not in {text!r}")
    return match.group(1)


def _exchange(url: str, body: str | None, headers: dict[str, str]) -> tuple[int, str, str]:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET" if body is None else "POST", parts.path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Set-Cookie", ""), answer.read().decode()
    finally:
        connection.close()
