"""More than one cookie of the daemon's name: which of them counts."""

from __future__ import annotations

from aileron.testing import SigningBrowser

from .case import COOKIE, ApiCase


class TossedCookieTests(ApiCase):
    """A browser that a page of a neighbouring name has given cookies for this one."""

    def status(self, browser: SigningBrowser, cookies: str) -> int:
        """The status of a list that the browser signs, with these cookies."""
        headers = {**browser.headers(COOKIE, "GET", "/v1/runs"), "Cookie": cookies}
        return self.operator.ask("GET", "/v1/runs", headers=headers).status

    def test_any_order(self) -> None:
        """The cookie that the daemon gave counts, wherever it stands among others of its name."""
        browser, _session = self.operators.open_browser()
        own = f"{COOKIE}={browser.cookie}"
        for cookies in (
            own,
            f"{own}; {COOKIE}=evil",
            f"{COOKIE}=evil; {own}",
            f"{COOKIE}=; other=1; {COOKIE}; {own};{COOKIE}=evil",
            "; ".join([*[f"{COOKIE}={number}" for number in range(300)], own]),
        ):
            self.assertEqual(self.status(browser, cookies), 200, cookies[:80])

    def test_none_of_ours(self) -> None:
        """Without it, or with another browser's alone, nobody is let in."""
        browser, _session = self.operators.open_browser()
        other, _other_session = self.operators.open_browser()
        for cookies in (f"{COOKIE}=evil", f"{COOKIE}={other.cookie}", f"x{COOKIE}={browser.cookie}", ""):
            self.assertEqual(self.status(browser, cookies), 401, cookies)
