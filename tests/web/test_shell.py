"""The shell: the same bytes for any navigation, a login by one code, and nothing else."""

from __future__ import annotations

import json
import re
from pathlib import Path

from aileron.model.faults import ADVICE
from aileron.web import LANDING_POLICY, landing, moved
from aileron.web.parts import STATIC

from .case import WebCase, read

NAVIGATIONS = (
    "/",
    "/home",
    "/approvals",
    "/approvals/run-1",
    "/approvals/no-such",
    "/trust",
    "/confirm",
    "/elsewhere",
    "/handover",
    "/static/no-such",
)

_CLOSED = ("default-src", "worker-src", "base-uri", "form-action", "frame-ancestors")


# What takes any text: a code, a filter, a place to go to, a reason, the name of a passkey.
_TEXTS = ("login-code", "filter-inbox", "palette-field", "batch-reason", "passkey-name", "new-passkey-name")


class ShellTests(WebCase):
    """What any navigation gets."""

    def test_same_bytes(self) -> None:
        """Every navigation gets equal bytes, whatever waits and whoever asks; what is no page is not found."""
        plain = self.get("/").text
        run = self.ask("Something secret")
        for path in (*NAVIGATIONS, f"/approvals/{run.id}"):
            for browser in (None, self.browser):
                self.assertEqual(self.get(path, browser).text, plain, path)
        self.assertNotIn("secret", plain)
        self.assertEqual([self.get(path).status for path in NAVIGATIONS], [200] * 7 + [404] * 3)
        self.assertEqual(self.get("/").told, {})

    def test_keys(self) -> None:
        """The dialog with the shortcuts and doc/reviewing.md name the same keys, of which C{u} is for Undo."""
        rows = re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", self.get("/").text)
        shown = {tuple(re.findall(r"<kbd>(.*?)</kbd>", keys)): does for keys, does in rows}
        page = (Path(__file__).parents[2] / "doc" / "reviewing.md").read_text("utf-8")
        table = page.partition("### Keys")[2].partition("No key decides")[0]
        written = {
            tuple(re.findall("`(.*?)`", keys)): does
            for keys, does in re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.MULTILINE)
        }
        self.assertEqual(sorted(shown), sorted(written))
        self.assertIn("Undo", shown["u",])
        self.assertIn("*Undo*", written["u",])

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

    def test_advice(self) -> None:
        """For every class of failure the shell says what was kept, and what to do on a page."""
        given = next(each["data-advice"] for _, each in read(self.get("/").text).tags if each.get("id") == "advice")
        self.assertEqual(set(json.loads(given)), set(ADVICE))
        self.assertEqual(json.loads(given)["conflict"], [ADVICE["conflict"].kept, "This page shows the current state."])

    def test_policy(self) -> None:
        """The shell runs our own files alone, talks to us alone, posts no form and is framed by nobody."""
        policy = self.get("/").headers["content-security-policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        for kind in ("script-src", "style-src", "connect-src", "img-src", "manifest-src"):
            self.assertEqual(rules.pop(kind), "'self'")
        self.assertEqual(rules, dict.fromkeys(_CLOSED, "'none'"))

    def test_nothing_inline(self) -> None:
        """The shell obeys its own policy: no inline script, style or handler, and no address but our own."""
        shell = read(self.get("/").text)
        for tag, attributes in shell.tags:
            self.assertFalse([name for name in attributes if name.startswith("on") or name == "style"], tag)
            for name in ("src", "href", "action"):
                self.assertTrue(attributes.get(name, "/").startswith(("/", "#")), attributes)
        self.assertNotIn("style", [tag for tag, _ in shell.tags])
        self.assertTrue(all("src" in attributes for tag, attributes in shell.tags if tag == "script"))

    def test_files(self) -> None:
        """Each file is served as what it is, and all that the shell and its scripts name are there."""
        kinds = {
            ".js": "text/javascript; charset=utf-8",
            ".css": "text/css; charset=utf-8",
            ".svg": "image/svg+xml",
            ".webmanifest": "application/manifest+json",
        }
        for path in STATIC.iterdir():
            if path.suffix in kinds:
                heard = self.get(f"/static/{path.name}")
                self.assertEqual((heard.status, heard.headers["content-type"]), (200, kinds[path.suffix]))
                if not heard.text.startswith('"use strict";\nimport'):  # a file that is fetched later
                    self.assertEqual(*(_squeezed(each, path.suffix) for each in (heard.text, path.read_text())))
                for name in re.findall(r'from "\./([^"]+)"', heard.text):
                    self.assertEqual(self.get(f"/static/{name}").status, 200, name)
        for _, attributes in read(self.get("/").text).tags:
            for named in (attributes.get("src", ""), attributes.get("href", "")):
                if named.startswith("/static/"):
                    self.assertEqual(self.get(named).status, 200, named)
        self.assertEqual(self.get("/static/shell.html").status, 404)

    def test_manifest(self) -> None:
        """The manifest names pages and icons that are there, one of them maskable, and every visitor gets it alike."""
        heard = self.get("/static/manifest.webmanifest")
        manifest = json.loads(heard.text)
        self.assertEqual(self.get("/static/manifest.webmanifest", self.browser).text, heard.text)
        self.assertEqual((manifest["start_url"], manifest["display"]), ("/home", "standalone"))
        self.assertEqual([icon["purpose"] for icon in manifest["icons"]], ["any", "any", "any", "maskable"])
        for each in (*(icon["src"] for icon in manifest["icons"]), *(one["url"] for one in manifest["shortcuts"])):
            self.assertEqual(self.get(each).status, 200, each)

    def test_no_page_asks_for_the_passphrase(self) -> None:
        """No page, template, fragment or script has a field for it: nobody gets used to typing it into a page."""
        texts = [path.read_text() for path in (STATIC.parent / "templates").iterdir()]
        texts += [path.read_text() for path in STATIC.iterdir() if path.suffix != ".png"]
        texts += [self.get(path).text for path in NAVIGATIONS]
        texts.append(self.heard("POST", "/handover", data={"code": "x"}).text)
        for text in texts:
            self.assertNotIn("password", text.lower())
            self.assertNotIn('createElement("input")', text)
            inputs = [attributes for tag, attributes in read(text).tags if tag == "input"]
            kinds = {given.get("type", "") for given in inputs if given.get("id") not in _TEXTS}
            self.assertLessEqual(kinds, {"checkbox", "radio", "number", "datetime-local"}, "one that takes any text")
        fields = [attributes["id"] for text in texts for tag, attributes in read(text).tags if tag == "textarea"]
        self.assertEqual(set(fields), {"reason", "force-reason", "action-text"})

    def test_code_field(self) -> None:
        """The one field for a code takes nothing else: what is no code, such as a passphrase, is not even sent.

        No browser keeps it, corrects it or remembers it; and no page posts its form by itself.
        """
        shell = read(self.get("/approvals").text)
        (given,) = [each for _, each in shell.tags if each.get("id") == "login-code"]
        takes = re.compile(given["pattern"]).fullmatch
        code = self.operators.hand_over(self.operators.log_in()[0], True)
        for text in (code, code.lower(), code.replace("-", ""), f"  {code} ", code.replace("-", " - ")):
            self.assertTrue(takes(text) and len(text) <= int(given["maxlength"]), text)
        for text in ("", code[:-1], f"{code}B", "correct horse battery staple", "x" * 43, code.replace("-", "_")):
            self.assertFalse(takes(text), text)
        self.assertEqual((given["autocomplete"], given["spellcheck"]), ("off", "false"))
        (form,) = [each for tag, each in shell.tags if tag == "form"]
        self.assertEqual(set(form), {"id"}, "it would be posted somewhere")


class LandingTests(WebCase):
    """It holds nothing, and asks once more."""

    def test_empty(self) -> None:
        """It may run one script of ours, and has nothing inline, no link, no form, and no word of anybody's."""
        page = read(landing().decode())
        self.assertEqual([given["src"] for tag, given in page.tags if tag == "script"], ["/static/landing.js"])
        for tag, given in page.tags:
            self.assertNotIn(tag, ("a", "form", "style", "iframe", "img", "link"))
            self.assertFalse([name for name in given if name.startswith("on") or name == "style"], tag)
        self.assertEqual(self.get("/static/landing.js").status, 200)
        rules = dict(rule.strip().split(" ", 1) for rule in LANDING_POLICY.split(";"))
        self.assertEqual(rules.pop("script-src"), "'self'")
        self.assertEqual(rules, dict.fromkeys(_CLOSED, "'none'"))


class MovedTests(WebCase):
    """What is served by a name that has no pages."""

    def test_plain(self) -> None:
        """It says what to run, and has no script, no link and no address: nothing that could be led elsewhere."""
        page = read(moved().decode())
        self.assertEqual({tag for tag, _given in page.tags} & {"a", "script", "form", "link", "style", "input"}, set())
        self.assertIn("aileron open", page.text)
        self.assertNotIn("localhost", page.text)
        self.assertFalse([name for _tag, given in page.tags for name in given if name.startswith("on")])

    def test_request(self) -> None:
        """A link to a request says how that is opened now; of any other path nothing is repeated."""
        run_id = "01M8B2T49TSW6AAKZ02BYGNZ7H"
        for path in (f"/approvals/{run_id}", f"/runs/{run_id}"):
            self.assertIn(f"aileron open approval {run_id} in your terminal", read(moved(path.encode()).decode()).text)
        for path in (
            "/",
            f"/approvals/{run_id};reboot",
            f"/approvals/{run_id}\n",
            "/approvals/<b>",
            f"/audit/{run_id}",
        ):
            self.assertEqual(moved(path.encode()), moved(), path)


def _squeezed(text: str, suffix: str) -> tuple[str, list[str]]:
    """The text, and the strings in it; of a style sheet without comments and white space."""
    if suffix != ".css":
        return text, []
    without_comments = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    return re.sub(r"\s|;\s*(?=})", "", without_comments), re.findall(r'"[^"\n]*"', without_comments)
