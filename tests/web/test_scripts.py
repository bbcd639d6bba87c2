"""Scripts joined into one file, and what a browser has to fetch again."""

from __future__ import annotations

import gzip
import re
from typing import Any

from treq.testing import RequestTraversalAgent
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import readBody
from twisted.web.http_headers import Headers
from twisted.web.test.requesthelper import DummyRequest

from aileron.features import FeatureSet
from aileron.web.parts import SCRIPTS, STATIC, Shell, pack
from aileron.web.scripts import join_scripts

from .case import ADDRESS, WebCase

FRESH = "abcdefghij.aileron.localhost"


class JoinTests(SynchronousTestCase):
    """Modules in one file."""

    def test_comments(self) -> None:
        """Indentation and lines that are only a comment are left out; what looks like one within a line is kept."""
        joined = join_scripts(
            {"page.js": '// first\n  a("https://x"); // last\n\n\n  // within\n'}, "all.js", "page.js"
        )
        self.assertIn('\na("https://x"); // last\nreturn', joined["all.js"])
        self.assertNotIn("first", joined["all.js"])
        self.assertNotIn("within", joined["all.js"])

    def test_order(self) -> None:
        """Each module stands once, after all that it imports, and its imports are the exports of those."""
        files = join_scripts(
            {
                "page.js": 'import { a } from "./a.js";\nimport {\n  b as c,\n} from "./b.js";\na(c);\n',
                "a.js": 'import { b } from "./b.js";\nexport async function a() { b; }\n',
                "b.js": "export const b = 1;\nlet hidden = 2;\n",
                "other.js": "never();\n",
            },
            "all.js",
            "page.js",
        )
        self.assertEqual([*files], ["all.js"])
        joined = files["all.js"]
        self.assertEqual(re.findall(r"// (\S+\.js)$", joined, re.MULTILINE), ["b.js", "a.js", "page.js"])
        self.assertIn("const { b } = m0;\nasync function a()", joined)
        self.assertIn("return { b };", joined)
        self.assertIn("const { a } = m1;\nconst {\nb: c,\n} = m0;", joined)
        self.assertNotIn("never", joined)
        self.assertNotIn("export", joined)

    def test_later(self) -> None:
        """What is imported when it is needed is a file of its own, and has what the first file has from there."""
        files = join_scripts(
            {
                "page.js": 'import { b } from "./b.js";\nb(() => import("./late.js"));\n',
                "b.js": "export const b = 1;\n",
                "late.js": 'import { b } from "./b.js";\nimport { c } from "./c.js";\nexport const d = b + c;\n',
                "c.js": "export const c = 2;\n",
            },
            "all.js",
            "page.js",
        )
        self.assertEqual([*files], ["all.js", "late.js"])
        self.assertEqual(re.findall(r"// (\S+\.js)$", files["all.js"], re.MULTILINE), ["b.js", "page.js"])
        self.assertTrue(files["all.js"].endswith("export { m0, m1 };\n"))
        self.assertIn('import { m0 } from "./all.js";\n', files["late.js"])
        self.assertEqual(re.findall(r"// (\S+\.js)$", files["late.js"], re.MULTILINE), ["c.js", "late.js"])
        self.assertTrue(files["late.js"].endswith("export const { d } = m3;\n"))

    def test_refused(self) -> None:
        """What cannot be joined fails at the start.

        That is a circle, a missing module, another form of import or export, a module of two later files, and a text
        of two lines, of which indentation may be a part.
        """
        twice = 'import("./one.js"); import("./two.js");'
        for sources in (
            {"page.js": 'import { a } from "./a.js";', "a.js": 'import { b } from "./page.js";'},
            {"page.js": 'import { a } from "./a.js";'},
            {"page.js": 'import("./a.js");'},
            {"page.js": 'import a from "./a.js";', "a.js": ""},
            {"page.js": "export let a = 1;"},
            {"page.js": "export default 1;"},
            {"page.js": "a(`one\n  two`);"},
            {"page.js": twice, "a.js": "export const a = 1;"}
            | dict.fromkeys(("one.js", "two.js"), 'import { a } from "./a.js";'),
        ):
            self.assertRaises(ValueError, join_scripts, sources, "all.js", "page.js")

    def test_ours(self) -> None:
        """Every script of the pages but the landing's is in a file, and starts of the daemon make the same ones."""
        shells = [Shell({}), Shell({})]
        texts = [shell.files[SCRIPTS].content.decode() for shell in shells]
        self.assertEqual(texts[0], texts[1])
        named = set(re.findall(r"=> \{ // (\S+)$", texts[0], re.MULTILINE))
        later = {each.removeprefix("./") for each in re.findall(r'import\("(\S+)"\)', texts[0])}
        self.assertEqual(named | later, {path.name for path in STATIC.glob("*.js")} - {"landing.js"})
        self.assertLess({"editor.js", "palette.js"}, later)
        for name in later:
            self.assertIn(f'from "./{SCRIPTS}";', shells[0].files[name].content.decode())

    def test_of_features(self) -> None:
        """A feature's script runs before the page's own, is gone with the feature, and has a name of its own."""
        features = FeatureSet()
        for on, expected in ((features, ["notify.js", "page.js"]), (features.without("notices"), ["page.js"])):
            text = Shell({}, on.scripts()).files[SCRIPTS].content.decode()
            self.assertEqual(re.findall(r"=> \{ // (notify\.js|page\.js)$", text, re.MULTILINE), expected)
        self.assertRaises(ValueError, Shell, {}, [STATIC / "key.js"])


class FetchedTests(WebCase):
    """What is sent, and what is not sent again."""

    def test_compressed(self) -> None:
        """A file and the shell are compressed for who accepts it; what a login is told never is."""
        for path in ("/static/style.css", "/static/scripts.js", "/approvals"):
            plain, packed = (self.raw(path, coding) for coding in ("identity, gzip;q=0", "br, gzip"))
            self.assertEqual(gzip.decompress(packed), plain, path)
            self.assertLess(len(packed), len(plain) / 2, path)
        request: Any = DummyRequest([b""])
        request.requestHeaders.setRawHeaders(b"Accept-Encoding", [b"gzip"])
        self.assertIn(b"secret", Shell({}).page(request, {"page-key": "secret"}))
        self.assertFalse(request.responseHeaders.hasHeader(b"Content-Encoding"))

    def raw(self, path: str, coding: str) -> bytes:
        """The body as it is sent."""
        agent: Any = RequestTraversalAgent(self.resource)
        asked = agent.request(b"GET", f"{ADDRESS}{path}".encode(), Headers({"Accept-Encoding": [coding]}))
        body: bytes = self.successResultOf(readBody(self.successResultOf(asked)))
        return body

    def test_kept(self) -> None:
        """Under a fresh name a file is kept; under one that stays it is asked for, and sent if it is another."""
        fresh = self.get("/static/style.css", Host=FRESH)
        self.assertIn("immutable", fresh.headers["cache-control"])
        stays = self.get("/static/style.css", Host="localhost")
        self.assertEqual(stays.headers["cache-control"], "no-cache")
        tag = stays.headers["etag"]
        again = self.get("/static/style.css", None, "GET", **{"Host": "localhost", "If-None-Match": tag})
        self.assertEqual((again.status, again.text), (304, ""))
        other = self.get("/static/scripts.js", None, "GET", **{"Host": "localhost", "If-None-Match": tag})
        self.assertEqual(other.status, 200)

    def test_fragment(self) -> None:
        """A fragment that the page has is not sent again, but how much waits is told; a changed one is sent."""
        self.ask("One")
        first = self.fragment("/approvals")
        tag = {"If-None-Match": first.headers["etag"]}
        again = self.get("/fragments/approvals", self.browser, **tag)
        self.assertEqual((again.status, again.text), (304, ""))
        self.assertEqual(again.headers["x-aileron-waiting"], "1")
        self.assertEqual(first.headers["etag"].startswith('"'), True)
        self.ask("Two")
        changed = self.get("/fragments/approvals", self.browser, **tag)
        self.assertEqual(changed.status, 200)
        self.assertIn("Two", changed.text)

    def test_fragment_ages(self) -> None:
        """A page of pending approvals is the same two minutes later: the browser writes how long each has waited."""
        runs = [self.ask(f"number {number}", self.agent(agent="opencode")) for number in range(3)]
        for path in ("/approvals", "/approvals?beside=yes", f"/approvals/{runs[0].id}", "/home"):
            first = self.fragment(path)
            self.clock.advance(120)
            again = self.fragment(path)
            self.assertEqual((again.text, again.headers["etag"]), (first.text, first.headers["etag"]), path)

    def test_fragment_compressed(self) -> None:
        """A fragment is compressed for who accepts it, unless that would take long."""
        for length, packs in ((1000, True), (300_000, False)):
            request: Any = DummyRequest([b""])
            request.requestHeaders.setRawHeaders(b"Accept-Encoding", [b"gzip"])
            body = pack(request, b"x" * length)
            self.assertEqual(request.responseHeaders.hasHeader(b"Content-Encoding"), packs)
            self.assertEqual(gzip.decompress(body) if packs else body, b"x" * length)

    def test_fragment_needs_login(self) -> None:
        """A tag alone tells nothing to who is not logged in."""
        tag = self.fragment("/approvals").headers["etag"]
        self.assertEqual(self.get("/fragments/approvals", None, "GET", **{"If-None-Match": tag}).status, 401)
