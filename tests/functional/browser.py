"""What a browser does with the page that logs it in, and with what it gets for it."""

import json
import re
import time
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote_plus, urlsplit

import attrs

from aileron.base.addresses import connectable
from aileron.client import item_of
from aileron.model.signing import write_statement
from aileron.testing import SigningBrowser


@attrs.frozen
class Browser:
    """A browser that came to the door, and told its key.

    :ivar site: where it is.
    :ivar cookie: its name.
    """

    site: str
    cookie: str
    signing: SigningBrowser

    def words(self) -> str:
        """The two words that its page shows until it is let in."""
        status, found = self.ask(f"{self.site}/handover/state")
        assert status == 200, (status, found)
        return str(found["words"])

    def ask(self, url: str, body: object = None, method: str = "") -> tuple[int, Any]:
        """The status and JSON of a GET, of a POST if there is a body, or of another method."""
        if isinstance(body, dict) and url.endswith("/decide") and "digest" in body:
            body = {**body, "signed": self._signed(url.split("/")[-2], body)}
        data = None if body is None else json.dumps(body)
        method = method or ("GET" if data is None else "POST")
        parts, sent = urlsplit(url), (data or "").encode()
        headers = self.signing.headers(self.cookie, method, parts.path, sent)
        if data is not None:
            headers["Content-Type"] = "application/json"
        status, _, text = exchange(url, data, headers, method)
        return status, json.loads(text) if text.startswith("{") else text

    def _signed(self, run_id: str, decision: dict[str, Any]) -> dict[str, str]:
        """What its page signs with a decision."""
        instance, items = self.signing.instance, [item_of(run_id, decision)]
        text, signature = self.signing.sign_text(lambda nonce: write_statement(instance, nonce, items))
        return {"statement": text, "signature": signature}


def come(page: str) -> Browser | int:
    """Post the form of a page as it stands; the status, where that is refused."""
    action, code = _found(r'action="([^"]+)"', page), _found(r'name="code" value="([^"]+)"', page)
    headers = {"Origin": "null", "Content-Type": "application/x-www-form-urlencoded"}
    status, cookie, text = exchange(action, f"code={quote_plus(code)}", headers)
    if status != 200:
        return status
    page_key = _found(r"page-key(?:&quot;|\"): ?(?:&quot;|\")([\w-]+)", text)
    name, _, value = cookie.partition(";")[0].partition("=")
    browser = Browser(action.removesuffix("/handover"), name, SigningBrowser.generate(value, time.time))
    return attrs.evolve(browser, signing=_told(browser, page_key))


def _told(browser: Browser, page_key: str) -> SigningBrowser:
    """The same, once it has told its key."""
    told = json.dumps({"page_key": page_key, "public_key": browser.signing.public_key})
    headers = {"Cookie": f"{browser.cookie}={browser.signing.cookie}", "Content-Type": "application/json"}
    status, _, text = exchange(f"{browser.site}/handover/key", told, headers)
    assert status == 200, (status, text)
    return browser.signing.with_instance(json.loads(text)["instance"])


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise AssertionError(f"{pattern!r} is not in {text!r}")
    return match.group(1)


def exchange(url: str, body: str | None, headers: dict[str, str], method: str = "") -> tuple[int, str, str]:
    """The status, first cookie and text of what a site answers."""
    parts = urlsplit(url)
    connection = HTTPConnection(connectable(parts.hostname or ""), parts.port, timeout=10)
    try:
        method = method or ("GET" if body is None else "POST")
        connection.request(method, parts.path, body, {"Host": parts.netloc, **headers})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Set-Cookie", ""), answer.read().decode()
    finally:
        connection.close()
