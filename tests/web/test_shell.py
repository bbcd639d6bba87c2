"""The shell: the same bytes for any navigation, a login by one code, and nothing else."""

from __future__ import annotations

import re

from aileron.web._parts import STATIC

from .case import Heard, WebCase, read

NAVIGATIONS = (
    "/",
    "/approvals",
    "/approvals/run-1",
    "/approvals/no-such",
    "/elsewhere",
    "/handover",
    "/static/no-such",
)
CODE_SECONDS = 60


class ShellTests(WebCase):
    """What any navigation gets."""

    def test_same_bytes(self) -> None:
        """Every navigation gets equal bytes, whatever waits and whoever asks."""
        plain = self.get("/").text
        run = self.ask("Something secret")
        for path in (*NAVIGATIONS, f"/approvals/{run.id}"):
            for credentials in ((None, None), (self.cookie, None), (self.cookie, self.page_key)):
                self.assertEqual(self.get(path, *credentials).text, plain, path)
        self.assertNotIn("secret", plain)
        self.assertEqual(self.get("/").told, {})

    def test_status(self) -> None:
        """What is no page is not found, though it looks the same."""
        self.assertEqual([self.get(path).status for path in NAVIGATIONS], [200] * 4 + [404] * 3)

    def test_paths_lead_nowhere_else(self) -> None:
        """No path leads out of the shipped files, or to another address."""
        for path in (
            "/static/../_pages.py",
            "/static/%2e%2e/_pages.py",
            "/static/..%2f_pages.py",
            "//approvals",
            "/x//y",
        ):
            heard = self.get(path)
            self.assertEqual(heard.text, self.get("/").text, path)
            self.assertNotIn("location", heard.headers)

    def test_policy(self) -> None:
        """The shell runs our own files alone, talks to us alone, posts no form and is framed by nobody."""
        policy = self.get("/").headers["content-security-policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        for kind in ("script-src", "style-src", "connect-src", "img-src"):
            self.assertEqual(rules.pop(kind), "'self'")
        self.assertEqual(rules, dict.fromkeys(("default-src", "base-uri", "form-action", "frame-ancestors"), "'none'"))

    def test_nothing_inline(self) -> None:
        """The shell obeys its own policy: no inline script, style or handler, and no address but our own."""
        shell = read(self.get("/").text)
        for tag, attributes in shell.tags:
            self.assertFalse([name for name in attributes if name.startswith("on") or name == "style"], tag)
            for name in ("src", "href", "action"):
                self.assertTrue(attributes.get(name, "/").startswith("/"), attributes)
        self.assertNotIn("style", [tag for tag, _ in shell.tags])
        self.assertNotIn("input", [tag for tag, _ in shell.tags], "no page has a passphrase field")
        self.assertTrue(all("src" in attributes for tag, attributes in shell.tags if tag == "script"))

    def test_files(self) -> None:
        """Each file is served as what it is, and all that the shell and its scripts name are there."""
        kinds = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
        for path in STATIC.iterdir():
            if path.suffix in kinds:
                heard = self.get(f"/static/{path.name}")
                self.assertEqual((heard.status, heard.headers["content-type"]), (200, kinds[path.suffix]))
                self.assertEqual(heard.text, path.read_text())
                for name in re.findall(r'from "\./([^"]+)"', heard.text):
                    self.assertEqual(self.get(f"/static/{name}").status, 200, name)
        for _, attributes in read(self.get("/").text).tags:
            for named in (attributes.get("src", ""), attributes.get("href", "")):
                if named.startswith("/static/"):
                    self.assertEqual(self.get(named).status, 200, named)
        self.assertEqual(self.get("/static/shell.html").status, 404)


class HandOverTests(WebCase):
    """A browser gets in by one code."""

    def setUp(self) -> None:
        """Mint a code."""
        super().setUp()
        self.code = self.operators.hand_over(self.operators.log_in()[0])

    def test_login(self) -> None:
        """A code gives the cookie to the browser and the page key to the script, in that one answer."""
        heard = self.hand_over(code=self.code, next="/approvals/run-1")
        self.assertEqual(heard.status, 200)
        cookie = heard.cookies[0].partition(";")[0].removeprefix("aileron=")
        self.assertEqual(heard.told["next"], "/approvals/run-1")
        self.assertIsNotNone(self.operators.by_browser(cookie, heard.told["page-key"]))
        self.assertNotIn(cookie, heard.text)
        self.assertNotIn(heard.told["page-key"], str(heard.headers))
        self.assertEqual(self.get("/").told, {}, "only that one answer tells it")

    def test_cookie(self) -> None:
        """The cookie is out of reach of scripts and other sites, of this host alone, and ends with the browser."""
        heard = self.hand_over(code=self.code, next="/")
        attributes = [part.strip() for part in heard.cookies[0].split(";")[1:]]
        self.assertEqual(attributes, ["Path=/", "HttpOnly", "SameSite=Strict"])
        self.assertEqual(len(heard.cookies), 1)

    def test_once(self) -> None:
        """A code that was used is used up: the second answer has no cookie and no key."""
        self.hand_over(code=self.code, next="/")
        self.refused(self.hand_over(code=self.code, next="/approvals/run-1"))

    def test_late(self) -> None:
        """After a minute a code is void."""
        self.clock.advance(CODE_SECONDS)
        self.refused(self.hand_over(code=self.code, next="/"))

    def test_malformed(self) -> None:
        """No code, a wrong one, or two, gives nothing."""
        self.refused(self.hand_over())
        self.refused(self.hand_over(code="x" * 43))
        self.refused(self.heard("POST", "/handover", data=[("code", self.code), ("code", self.code)]))

    def test_code_in_url(self) -> None:
        """A code in a URL is not taken, and not spent."""
        self.refused(self.hand_over(f"?code={self.code}"))
        self.refused(self.hand_over("?x=1", code=self.code))
        self.assertEqual(self.hand_over(code=self.code).status, 200)

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
            code = self.operators.hand_over(self.operators.log_in()[0])
            self.assertEqual(self.hand_over(code=code, next=target).told["next"], "/approvals", target)
        for target in ("/", "/approvals", "/approvals/01K7AZ3N8QXW"):
            code = self.operators.hand_over(self.operators.log_in()[0])
            self.assertEqual(self.hand_over(code=code, next=target).told["next"], target)

    def test_only_post(self) -> None:
        """A navigation logs nobody in."""
        for method in ("GET", "HEAD"):
            heard = self.get(f"/handover?code={self.code}", method=method)
            self.assertEqual((heard.status, heard.cookies), (404, ()))
        self.assertEqual(self.hand_over(code=self.code).status, 200)

    def refused(self, heard: Heard) -> None:
        """It gave nothing away."""
        self.assertEqual((heard.status, heard.cookies), (401, ()))
        self.assertEqual(heard.told, {"next": "/approvals"})
