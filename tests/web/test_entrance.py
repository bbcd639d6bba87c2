"""A browser comes to the door by one code, and is nobody until its two words were typed in the terminal."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve

from aileron.api.tokens import REFUSALS_SECONDS
from aileron.model.audit import DAEMON
from aileron.model.errors import Conflict
from aileron.model.runs import RunState
from aileron.testing import SigningBrowser, SoftwareAuthenticator

from .case import COOKIE, POLL, Heard, WebCase


class EntranceCase(WebCase):
    """A code."""

    def setUp(self) -> None:
        """Mint it."""
        super().setUp()
        self.token, self.login = self.operators.log_in()
        self.code = self.operators.hand_over(self.token)

    def given(self, heard: Heard) -> tuple[str, str]:
        """The cookie and page key that an answer gives."""
        cookie = heard.cookies[0].partition(";")[0].removeprefix(f"{COOKIE.decode()}=")
        return cookie, heard.told["page-key"]

    def enter(self, heard: Heard) -> SigningBrowser:
        """The browser that got an answer, and has told its key."""
        cookie, page_key = self.given(heard)
        browser = SigningBrowser.generate(cookie, self.clock.seconds)
        told = self.tell(cookie, page_key=page_key, public_key=browser.public_key)
        self.assertEqual((told.status, told.headers["content-type"]), (200, "application/json"))
        return browser.with_instance(json.loads(told.text)["instance"])

    def tell(self, cookie: str, **body: Any) -> Heard:
        """Tell a key."""
        headers = {"Cookie": f"{COOKIE.decode()}={cookie}", "Content-Type": "application/json"}
        return self.heard("POST", "/handover/key", headers=headers, data=json.dumps(body).encode())

    def state(self, browser: SigningBrowser | None) -> Any:
        """What a browser that waits is told, or the status of the refusal."""
        heard = self.get("/handover/state", browser)
        return json.loads(heard.text) if heard.status == 200 else heard.status


class HandOverTests(EntranceCase):
    """What a code gives."""

    def test_given(self) -> None:
        """A code gives the cookie to the browser and the page key to the script, in that one answer, on record."""
        heard = self.hand_over(code=self.code, next="/approvals/run-1")
        self.assertEqual(heard.status, 200)
        cookie, page_key = self.given(heard)
        self.assertEqual(heard.told, {"page-key": page_key, "next": "/approvals/run-1"})
        self.assertNotIn(cookie, heard.text)
        self.assertNotIn(page_key, str(heard.headers))
        self.assertEqual(self.get("/").told, {}, "only that one answer tells it")
        self.assertEqual(self.recorded(), [("operator.handover_opened", DAEMON, {"login": self.login.id})])

    def test_nobody_yet(self) -> None:
        """Before the words are typed it gets no fragment; after that it does, with the same cookie and key."""
        browser = self.enter(self.hand_over(code=self.code, next="/"))
        paths = ("/fragments/approvals", "/fragments/approvals/run-1", "/fragments/x")
        self.assertEqual([self.get(path, browser).status for path in paths], [401] * 3)
        self.operators.confirm(self.token, self.operators.words_of(browser))
        self.assertEqual(self.get("/fragments/approvals", browser).status, 200)

    def test_cookie(self) -> None:
        """The cookie is out of reach of scripts and other sites, of this host and daemon alone, and ends with the
        browser."""
        heard = self.hand_over(code=self.code, next="/")
        name, *attributes = [part.strip() for part in heard.cookies[0].split(";")]
        self.assertTrue(name.startswith("aileron_life="))
        self.assertEqual(attributes, ["Path=/handover", "HttpOnly", "SameSite=Strict"])
        self.assertEqual(len(heard.cookies), 1)

    def test_cookie_of_the_login(self) -> None:
        """Until the words are typed the cookie goes to the login's own routes; then the same is the login's."""
        browser = self.enter(self.hand_over(code=self.code, next="/"))
        self.assertEqual(self.get("/handover/state", browser).cookies, ())
        self.operators.confirm(self.token, self.operators.words_of(browser))
        (given,) = self.get("/handover/state", browser).cookies
        self.assertEqual(given, f"aileron_life={browser.cookie}; Path=/; HttpOnly; SameSite=Strict")

    def test_once(self) -> None:
        """A second use of a code voids the first: neither is let in, both see why, and it is on record."""
        browser = self.enter(self.hand_over(code=self.code, next="/"))
        words = self.operators.words_of(browser)
        again = self.hand_over(code=self.code, next="/approvals/run-1")
        self.assertEqual((again.status, again.cookies, again.told), (409, (), {"turned-away": "opened_twice"}))
        self.assertEqual(self.state(browser), {"state": "opened_twice", "words": ""})
        self.assertRaises(Conflict, self.operators.confirm, self.token, words)
        self.assertEqual(self.get("/fragments/approvals", browser).status, 401)
        kind, actor, payload = self.recorded()[-1]
        self.assertEqual((kind, actor), ("operator.handover_refused", DAEMON))
        self.assertEqual(payload, {"reason": "opened_twice", "login": self.login.id})

    def test_tried_again_and_again(self) -> None:
        """Further uses of a code are counted as refused logins, which cannot fill the record."""
        for _ in range(5):
            self.hand_over(code=self.code, next="/")
        self.clock.advance(REFUSALS_SECONDS)
        told = [payload["count"] for kind, _, payload in self.recorded() if kind == "operator.login_refused"]
        self.assertEqual((told, len(self.recorded())), ([1, 2], 4))

    def test_malformed(self) -> None:
        """No code, a wrong one, or two, gives nothing, and is counted."""
        self.refused(self.hand_over())
        self.refused(self.hand_over(code="x" * 43))
        self.refused(self.heard("POST", "/handover", data=[("code", self.code), ("code", self.code)]))
        self.clock.advance(REFUSALS_SECONDS)
        self.assertEqual([payload for _, _, payload in self.recorded()], [{"count": 1}, {"count": 2}])

    def test_code_in_url(self) -> None:
        """A code in a URL is not taken, and not spent."""
        self.refused(self.hand_over(f"?code={self.code}"))
        self.refused(self.hand_over("?x=1", code=self.code))
        self.assertEqual(self.hand_over(code=self.code).status, 200)

    def test_typed(self) -> None:
        """A code that was typed gives the same, once; a wrong one is counted, told why, and ends nothing."""
        code = self.operators.hand_over(self.token, True)
        self.refused(self.hand_over(code=code[:-1] + "!", next="/"))
        heard = self.hand_over(code=code.lower().replace("-", " "), next="/approvals/run-1")
        self.assertEqual((heard.status, heard.told["next"]), (200, "/approvals/run-1"))
        self.assertNotIn(code, heard.text)
        browser = self.enter(heard)
        self.refused(self.hand_over(code=code[::-1], next="/"))
        self.operators.confirm(self.token, self.operators.words_of(browser))
        self.assertEqual(self.get("/fragments/approvals", browser).status, 200)
        self.refused(self.hand_over(code=code, next="/"))
        self.clock.advance(REFUSALS_SECONDS)
        told = [payload["count"] for kind, _, payload in self.recorded() if kind == "operator.login_refused"]
        self.assertEqual(told, [1, 2])
        self.assertNotIn(code, str(self.recorded()))

    def test_next(self) -> None:
        """The page that comes next is one of ours, whatever the form says."""
        for target in (
            "https://evil.example/",
            "//evil.example/approvals",
            "/\\evil.example",
            "javascript:alert(1)",
            "/approvals/../../evil",
            "/approvals/x\n",
            "/approvals/" + "x" * 65,
            "/approvals?x=1",
            "/handover",
            "",
        ):
            code = self.operators.hand_over(self.token)
            self.assertEqual(self.hand_over(code=code, next=target).told["next"], "/approvals", target)
        for target in ("/approvals", "/approvals/01K7AZ3N8QXW", "/trust"):
            code = self.operators.hand_over(self.token)
            self.assertEqual(self.hand_over(code=code, next=target).told["next"], target)

    def test_first_page(self) -> None:
        """A login without a wanted page opens the setup steps until a call was approved or waits, then the inbox."""

        def first() -> str:
            code = self.operators.hand_over(self.token)
            return str(self.hand_over(code=code, next="/").told["next"])

        self.assertEqual(first(), "/home")
        run = self.ask()
        self.assertEqual(first(), "/approvals")
        self.runner.finish(run.id, RunState.DENIED)
        self.assertEqual(first(), "/home")
        self.runner.finish(self.ask().id, RunState.COMPLETED)
        self.assertEqual(first(), "/approvals")

    def test_methods(self) -> None:
        """A navigation opens nothing and tells nothing, and nothing is posted where a state is told."""
        for method, path in (
            ("GET", f"/handover?code={self.code}"),
            ("HEAD", f"/handover?code={self.code}"),
            ("GET", "/handover/key"),
            ("POST", "/handover/state"),
        ):
            heard = self.get(path, method=method)
            self.assertEqual((heard.status, heard.cookies), (404, ()), path)
        self.assertEqual(self.hand_over(code=self.code).status, 200)

    def refused(self, heard: Heard) -> None:
        """It gave nothing away."""
        self.assertEqual((heard.status, heard.cookies), (401, ()))
        self.assertEqual(heard.told, {"turned-away": "void"})


class KeyTests(EntranceCase):
    """The page tells the key by which it is known from then on."""

    def setUp(self) -> None:
        """Have one come."""
        super().setUp()
        self.cookie, self.page_key = self.given(self.hand_over(code=self.code, next="/"))
        self.public_key = SigningBrowser.generate(self.cookie, self.clock.seconds).public_key

    def test_others(self) -> None:
        """Without the cookie or the page key of the one that came, nothing is taken."""
        for cookie, page_key in (
            ("", self.page_key),
            (self.cookie, ""),
            (self.browser.cookie, self.page_key),
            (self.page_key, self.cookie),
        ):
            self.assertEqual(self.tell(cookie, page_key=page_key, public_key=self.public_key).status, 401)

    def test_malformed(self) -> None:
        """What is no key, or no such body, is refused, and another may be told, once."""
        for body in (
            {},
            {"public_key": self.public_key},
            {"page_key": self.page_key, "public_key": "A" * 87},
            {"page_key": self.page_key, "public_key": 1},
            {"page_key": self.page_key, "public_key": self.public_key, "more": ""},
        ):
            self.assertEqual(self.tell(self.cookie, **body).status, 400, body)
        told = {"page_key": self.page_key, "public_key": self.public_key}
        self.assertEqual([self.tell(self.cookie, **told).status for _ in range(2)], [200, 401])


class StateTests(EntranceCase):
    """What a browser is told while it waits."""

    def setUp(self) -> None:
        """Have one wait."""
        super().setUp()
        self.waits = self.enter(self.hand_over(code=self.code, next="/"))

    def test_waits(self) -> None:
        """It is told its two words, and once they were typed, that it is in."""
        words = self.operators.words_of(self.waits)
        self.assertEqual(len(words.split()), 2)
        self.assertEqual(self.state(self.waits), {"state": "opened", "words": words})
        self.operators.confirm(self.token, words)
        self.assertEqual(self.state(self.waits), {"state": "confirmed", "words": ""})

    def test_table(self) -> None:
        """Without both the cookie and the key of the one that waits, nothing is told; nor of what is over."""
        browser = self.waits
        for other in (
            None,
            evolve(browser, cookie=""),
            evolve(browser, cookie=self.browser.cookie),
            evolve(browser, key=self.browser.key),
            evolve(browser, cookie=self.token),
            browser.with_instance("another"),
        ):
            self.assertEqual(self.state(other), 401)
        self.operators.hand_over(self.token)
        self.assertEqual(self.state(browser), 401)


class EndTests(WebCase):
    """How long a login may decide, and what keeps it."""

    def looked(self, **headers: str) -> Heard:
        """What the page is answered."""
        return self.get("/fragments/approvals", self.browser, **headers)

    def test_told(self) -> None:
        """Each fragment says what the login may do, until when without a use, and whatever its use."""
        headers = self.looked().headers
        self.assertEqual(headers["x-aileron-expires"], "2025-10-09T09:23:20.000000Z")
        self.assertEqual(headers["x-aileron-ends"], "2025-10-09T20:53:20.000000Z")
        self.assertEqual(headers["x-aileron-level"], "deciding")
        self.assertIn("date", headers)

    def test_polls(self) -> None:
        """What the page asks by itself keeps no login deciding, and what the person does there does."""
        for _ in range(29):
            self.clock.advance(60)
            self.assertEqual(self.looked(**{POLL: "1"}).status, 200)
        self.assertEqual(self.looked().status, 200)
        self.clock.advance(29 * 60)
        self.assertEqual(self.looked(**{POLL: "1"}).status, 200)
        self.clock.advance(60)
        for _ in range(3):
            heard = self.looked()
            self.assertEqual((heard.status, heard.headers["x-aileron-level"]), (200, "reading"))


class NewPasskeyTests(EntranceCase):
    """The page of `aileron passkey add`, which makes a passkey before its words are typed."""

    PATH = "/handover/new-passkey"

    def setUp(self) -> None:
        """Have such a page come."""
        super().setUp()
        self.code = self.operators.hand_over(self.token, adds_passkey=True)
        self.page = self.enter(self.hand_over(code=self.code, next="/"))
        self.person = SoftwareAuthenticator(self.operators.ADDRESS)

    def post(self, browser: SigningBrowser, body: Any) -> Heard:
        """What a page that waits is answered."""
        data = json.dumps(body).encode()
        signed = browser.headers(COOKIE.decode(), "POST", self.PATH, data)
        return self.heard("POST", self.PATH, headers={**signed, "Content-Type": "application/json"}, data=data)

    def test_whole(self) -> None:
        """It is told what to show; the passkey that it makes waits for these very words, on record."""
        told = self.state(self.page)
        self.assertEqual((told["adds_passkey"], "passkey" in told), (True, False))
        offered = json.loads(self.post(self.page, {}).text)
        heard = self.post(self.page, {"name": "Mine", "credential": self.person.create(offered)})
        self.assertEqual((heard.status, heard.text), (200, "{}"))
        kind, actor, payload = self.recorded()[-1]
        self.assertEqual((kind, actor), ("operator.passkey_proposed", DAEMON))
        self.assertEqual(payload, {"name": "Mine", "login": self.login.id})
        self.assertEqual(self.deps.passkeys.passkeys(), ())
        self.assertEqual(self.deps.passkeys.confirm(told["words"]).name, "Mine")

    def test_malformed(self) -> None:
        """A name that is too long or none, and what is no passkey, propose nothing."""
        offered = json.loads(self.post(self.page, {}).text)
        made = self.person.create(offered)
        for body in (
            {"name": "", "credential": made},
            {"name": "x" * 65, "credential": made},
            {"name": 1, "credential": made},
            {"name": "Mine", "credential": "x"},
            {"name": "Mine", "credential": {}},
            {"name": "Mine"},
        ):
            self.assertEqual(self.post(self.page, body).status, 400, body)
        self.assertFalse(self.deps.passkeys.is_proposed())

    def test_others(self) -> None:
        """A page that only logs in is not told so, and makes none."""
        plain = self.enter(self.hand_over(code=self.operators.hand_over(self.operators.log_in()[0]), next="/"))
        self.assertNotIn("adds_passkey", self.state(plain))
        self.assertEqual(self.post(plain, {}).status, 401)
        self.assertEqual(self.post(self.browser, {}).status, 401)
