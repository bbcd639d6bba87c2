"""Who gets a fragment: a browser with the cookie and the page key of one live session, and nobody else."""

from __future__ import annotations

import re

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.logger import LogLevel, capturedLogs

from aileron.api import PROOF
from aileron.features import FeatureSet
from aileron.model.errors import StoreUnavailable
from aileron.model.faults import ADVICE
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import Approval
from aileron.testing import SigningBrowser
from aileron.web._table import fragments
from tests.api.case import NOW, running
from tests.features.gateway.running import relaying

from .case import COOKIE, WebCase

SECRET = "the words of an agent"


class GuardTests(WebCase):
    """Every fragment stands behind the same guard."""

    def setUp(self) -> None:
        """Have something to keep from others."""
        super().setUp()
        self.build(features=running(relaying()))
        self.run_ = self.ask(SECRET)
        self.paths = [
            re.sub("<.*>", "none", rule.replace("<run_id>", self.run_.id)) for rule in fragments(FeatureSet())
        ]

    def test_table(self) -> None:
        """Without the cookie, without a signature, or with another session's, each fragment says nothing."""
        other, _ = self.operators.open_browser()
        token, _ = self.operators.log_in()
        table: dict[str, tuple[SigningBrowser | None, dict[str, str]]] = {
            "nothing": (None, {}),
            "no signature": (self.browser, {PROOF: ""}),
            "no cookie": (self.browser, {"Cookie": ""}),
            "another session's key": (evolve(self.browser, key=other.key), {}),
            "another session's cookie": (evolve(self.browser, cookie=other.cookie), {}),
            "another life of the daemon": (self.browser.with_instance("another"), {}),
            "another time": (evolve(self.browser, seconds=lambda: NOW - 60), {}),
            "the cookie as signature": (self.browser, {PROOF: self.browser.cookie}),
            "a terminal's token": (evolve(self.browser, cookie=token), {}),
            "a terminal's token as bearer": (None, {"Authorization": f"Bearer {token}"}),
            "another path's signature": (self.browser, {PROOF: self.browser.proof("GET", "/fragments/y")}),
        }
        refusals = set()
        for path in (*self.paths, "/fragments/approvals/no-such"):
            for name, (browser, headers) in table.items():
                for method in ("GET", "HEAD"):
                    heard = self.get(path, browser, method, **headers)
                    self.assertEqual(heard.status, 401, f"{method} {path} with {name}")
                self.assertEqual(heard.headers["x-aileron-instance"], "life")
                refusals.add((self.get(path, browser, **headers).text, heard.headers["content-type"]))
        self.assertEqual(refusals, {("You are not logged in. Run aileron open.", "text/plain; charset=utf-8")})

    def test_once(self) -> None:
        """What was signed is good for one answer."""
        for path in self.paths:
            headers = self.browser.headers(COOKIE.decode(), "GET", path)
            statuses = [self.heard("GET", path, headers=headers).status for _ in range(2)]
            self.assertNotEqual(statuses[0], 401)
            self.assertEqual(statuses[1], 401)

    def test_admitted(self) -> None:
        """With both, what is there is shown, and what is not is not found."""
        statuses = [self.get(path, self.browser).status for path in self.paths]
        self.assertEqual(statuses, [404 if "none" in path else 200 for path in self.paths])
        self.assertEqual(self.fragment("/approvals/no-such").status, 404)

    def test_ended(self) -> None:
        """A session that was logged out opens nothing any more."""
        self.assertEqual(self.fragment("/approvals").status, 200)
        self.operators.log_out(self.session.id)
        self.assertEqual(self.fragment("/approvals").status, 401)

    def test_nothing_is_asked_of_the_runner(self) -> None:
        """Whoever is refused has not made anybody read anything."""
        asked: list[object] = []
        self.runner.watched = asked
        for path in self.paths:
            self.get(path, self.browser, **{PROOF: ""})
        self.assertEqual(asked, [])
        self.fragment("/approvals")
        self.assertNotEqual(asked, [])

    def test_no_fragment_decides(self) -> None:
        """Whatever is asked for, nothing is decided by it."""
        for path in self.paths:
            for query in ("", "?approved=true", "?decide=1&digest=x"):
                for method in ("GET", "HEAD", "POST"):
                    self.get(path + query, self.browser, method)
        found = self.successResultOf(Deferred.fromCoroutine(self.runner.run(self.run_.id)))
        self.assertEqual(found.state.value, "pending_approval")


class FailureTests(WebCase):
    """What goes wrong behind a page."""

    def fail_with(self, error: Exception) -> None:
        """Have every list fail like this."""

        async def fails(query: RunQuery) -> Page[Approval]:
            raise error

        self.patch(type(self.runner), "approvals", lambda _runner, query, only_read: fails(query))

    def test_told(self) -> None:
        """A failure of ours is told with its own status and words, made visible."""
        self.fail_with(StoreUnavailable("The disk is full\u202e."))
        heard = self.fragment("/approvals")
        self.assertEqual(
            (heard.status, heard.text),
            (
                503,
                f"The disk is full\\u202e. {ADVICE['store_unavailable'].on_page}",
            ),
        )
        self.assertEqual(heard.headers["content-type"], "text/plain; charset=utf-8")

    def test_unexpected(self) -> None:
        """Any other failure shows nothing of its inside, and the log says where it was and no value."""
        self.fail_with(ValueError(SECRET))
        with capturedLogs() as logged:
            heard = self.fragment("/approvals")
        self.assertEqual(heard.status, 500)
        self.assertNotIn(SECRET, heard.text)
        errors = [event for event in logged if event["log_level"] >= LogLevel.error]
        self.assertEqual([event["kind"] for event in errors], ["ValueError"])
        self.assertNotIn(SECRET, str(errors))
