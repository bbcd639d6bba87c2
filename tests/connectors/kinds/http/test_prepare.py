"""Of building a request from inputs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._schema import read_file
from aileron.model.connectors import Request
from aileron.model.errors import CapabilityDenied, InvalidRequest
from tests.connectors.service import Service, spec_of
from tests.extent import examples

BASE = "https://api.example/v2"

SPEC = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = { default = "https://api.example/v2" }
hosts = ["api.example:443"]

[operations.create]
method = "POST"
path = "/p/${in.project}/items"
query = { tag = "${in.tags}", fixed = "a b" }
headers = { X-Kind = "${in.kind}", X-Mixed = "k-${effect.key}" }

[operations.create.json]
title = "${in.title}"
nested = { list = ["${in.tags}", "${in.count}", 1.5] }
id = "${effect.uuid}"
tail = "<${in.project}>"

[operations.form]
method = "PUT"
path = "/form/"
form = { a = "${in.a}", b = "x=${in.b}", c = true }

[operations.mixed]
method = "GET"
path = "/m/${in.a}.json/v${in.b}-${in.c}:go"
"""


class PrepareCase(SynchronousTestCase):
    """Requests of one connector."""

    def prepared(self, operation: str, inputs: Mapping[str, JSON], base_url: str = BASE, key: str = "k1") -> Request:
        """One request."""
        return Service().connector(spec_of(SPEC)).prepare(operation, inputs, base_url, key)


_EACH = """
[operations.invite]
method = "POST"
path = "/invite"
json.plain = { each = 1 }
json.who = { each = "${in.who}", as = { mail = { address = "${item}" }, kind = "to ${item}" } }
"""


class EachTests(SynchronousTestCase):
    """A part made for each element of an input."""

    def body(self, **inputs: JSON) -> object:
        """The body of one request."""
        connector = Service().connector(spec_of(SPEC + _EACH))
        return json.loads(connector.prepare("invite", inputs, BASE, "k1").body or b"")

    def test_each(self) -> None:
        """There is one for each element, none for none, and no key where the input was not given."""
        one = {"mail": {"address": "a"}, "kind": "to a"}
        two = {"mail": {"address": 2}, "kind": "to 2"}
        self.assertEqual(self.body(who=["a", 2]), {"who": [one, two], "plain": {"each": 1}})
        self.assertEqual(self.body(who=[]), {"who": [], "plain": {"each": 1}})
        self.assertEqual(self.body(), {"plain": {"each": 1}})
        for wrong in ("a", 7, {"a": 1}, [["a"]]):
            with self.assertRaises(InvalidRequest):
                self.body(who=wrong)

    def test_faults(self) -> None:
        """It goes over one input, and knows nothing but its element, which is known nowhere else."""
        for right, wrong, told in (
            ('each = "${in.who}"', 'each = "${item}"', "`each` must be exactly one"),
            ('each = "${in.who}"', 'each = "x ${in.who}"', "`each` must be exactly one"),
            ("to ${item}", "${in.who} ${item}", "not to ${in.who}"),
            ("to ${item}", "${item", "unclosed `${`"),
        ):
            problems = read_file((SPEC + _EACH.replace(right, wrong)).encode(), "x.toml").problems
            self.assertTrue(any(told in each.message for each in problems), (wrong, problems))
        elsewhere = _EACH.replace("{ each = 1 }", '"${item}"')
        (problem,) = read_file((SPEC + elsewhere).encode(), "x.toml").problems
        self.assertIn("unknown reference ${item}", problem.message)


class TemplateTests(PrepareCase):
    """Where inputs go."""

    def test_types_are_kept(self) -> None:
        """A lone reference keeps its type in JSON; in a longer text it is written as text."""
        request = self.prepared("create", {"project": 7, "tags": ["x", 1], "count": 3, "title": None})
        body = json.loads(request.body or b"")
        self.assertEqual([["x", 1], 3, 1.5], body["nested"]["list"])
        self.assertEqual((None, "<7>"), (body["title"], body["tail"]))

    def test_omitted_inputs(self) -> None:
        """An omitted input drops its key, element, header or parameter."""
        request = self.prepared("create", {"project": "p"})
        body = json.loads(request.body or b"")
        self.assertEqual([1.5], body["nested"]["list"])
        self.assertNotIn("title", body)
        self.assertNotIn("X-Kind", dict(request.headers))
        self.assertEqual("fixed=a%20b", urlsplit(request.url).query)

    def test_effect_key(self) -> None:
        """The key is placed as it is or as the UUID that is made from it, always the same."""
        first, again = (self.prepared("create", {"project": "p"}) for _ in range(2))
        other = self.prepared("create", {"project": "p"}, key="k2")
        self.assertEqual(first, again)
        made, else_made = (json.loads(each.body or b"")["id"] for each in (first, other))
        self.assertEqual(made, str(uuid.UUID(made)))
        self.assertNotEqual(made, else_made)
        self.assertEqual("k-k1", dict(first.headers)["X-Mixed"])

    def test_query_and_form(self) -> None:
        """An array gives its parameter once for each element; a form is URL-encoded, in the declared order."""
        request = self.prepared("create", {"project": "p", "tags": ["a&b", "ü", True]})
        self.assertEqual(
            [("tag", "a&b"), ("tag", "ü"), ("tag", "true"), ("fixed", "a b")], parse_qsl(urlsplit(request.url).query)
        )
        request = self.prepared("form", {"a": "1&2", "b": "ä"})
        self.assertEqual(b"a=1%262&b=x%3D%C3%A4&c=true", request.body)
        self.assertEqual("application/x-www-form-urlencoded", dict(request.headers)["Content-Type"])
        self.assertTrue(request.url.endswith("/v2/form/"))

    def test_refused(self) -> None:
        """What a path or a text needs must be there, and what is unknown, of a wrong kind or no segment must not.

        A table has no place in a text, nor a number or text that JSON cannot carry anywhere.
        """
        wrong: tuple[tuple[str, Mapping[str, JSON]], ...] = (
            ("form", {}),
            ("create", {"project": "p", "colour": "red"}),
            ("create", {"project": {"a": 1}}),
            ("form", {"b": ["x"]}),
            ("create", {"project": "p", "count": 2**60}),
            ("create", {"project": "p", "title": "\ud800"}),
            ("create", {"project": "p", "tags": ["\ud800"]}),
            *(("create", {"project": project}) for project in ("", ".", "..", "a\nb", "a\x00", "\x7f")),
            *(("mixed", {"a": "x", "b": "y", "c": wrong}) for wrong in ("", ".", "..", "\n")),
        )
        for operation, inputs in wrong:
            self.assertRaises(InvalidRequest, self.prepared, operation, inputs)
        error = self.assertRaises(InvalidRequest, self.prepared, "create", {})
        problems = [{"pointer": "/inputs/project", "message": "The input 'project' is needed."}]
        self.assertEqual(problems, error.details["problems"])


class UrlTests(PrepareCase):
    """What inputs cannot do to a URL or a header."""

    def test_text_around_references(self) -> None:
        """A segment may have text around its references, which ends nothing early and completes nothing."""
        spec = SPEC.replace("${in.project}/items", "x-${in.project}...${in.kind}:close").replace("X-Kind", "X-Other")
        connector = Service().connector(spec_of(spec))

        def url(project: str) -> str:
            return connector.prepare("create", {"project": project, "kind": "b"}, BASE, "k").url.partition("?")[0]

        self.assertEqual(f"{BASE}/p/x-a%2Fb%3Aopen...b:close", url("a/b:open"))
        for wrong in ("", ".", "..", "a\nb"):
            self.assertRaises(InvalidRequest, url, wrong)

    def test_slashes_with_text_around(self) -> None:
        """An input of several segments may have text around it, and still climbs nowhere."""
        path = 'path = "/p/x${in.project}:close"\nslashes = ["project"]'
        connector = Service().connector(spec_of(SPEC.replace('path = "/p/${in.project}/items"', path)))

        def url(project: str) -> str:
            return connector.prepare("create", {"project": project}, BASE, "k").url.partition("?")[0]

        self.assertEqual(f"{BASE}/p/xa/b%3Ac/d:close", url("a/b:c/d"))
        for wrong in ("/a", "a/", "../a", "a/..", "a/./b"):
            self.assertRaises(InvalidRequest, url, wrong)

    def test_segments_that_are_none(self) -> None:
        """Text that an input could turn into an escape, or that is no part of a path, is refused."""
        for wrong in ("%2${in.project}", "${in.project}%", "%2${in.project}F", "a b${in.project}"):
            problems = read_file(SPEC.replace("${in.project}/items", f"{wrong}/items").encode(), "x.toml").problems
            self.assertTrue(any("must be references and encoded text" in each.message for each in problems), wrong)

    @settings(deadline=None, max_examples=examples(200))
    @given(st.text(min_size=1))
    def test_one_segment(self, project: str) -> None:
        """Whatever an input holds, it is exactly one segment that decodes to it, or it is refused."""
        try:
            request = self.prepared("create", {"project": project})
        except InvalidRequest:
            return
        split = urlsplit(request.url)
        self.assertEqual(("https", "api.example"), (split.scheme, split.netloc))
        segments = split.path.split("/")
        self.assertEqual(["", "v2", "p"], segments[:3])
        self.assertEqual(("items", project), (segments[4], unquote(segments[3])))
        self.assertEqual((5, ""), (len(segments), split.fragment))
        self.assertTrue(request.url.isascii() and request.url.isprintable() and " " not in request.url)

    @settings(deadline=None, max_examples=examples(100))
    @given(st.text(), st.text(), st.text())
    def test_mixed_segments(self, a: str, b: str, c: str) -> None:
        """Inputs beside literal text leave it one segment, whose text is as the file says, or are refused."""
        try:
            url = self.prepared("mixed", {"a": a, "b": b, "c": c}).url
        except InvalidRequest:
            return
        segments = [unquote(each) for each in urlsplit(url).path.split("/")]
        self.assertEqual(segments, ["", "v2", "m", f"{a}.json", f"v{b}-{c}:go"])

    @settings(deadline=None, max_examples=examples(200))
    @given(st.text())
    def test_header(self, kind: str) -> None:
        """A header's value is visible ASCII, or the request is refused."""
        try:
            request = self.prepared("create", {"project": "p", "kind": kind})
        except InvalidRequest:
            return
        self.assertEqual(kind, dict(request.headers)["X-Kind"])
        self.assertTrue(kind.isascii() and (kind.isprintable()))

    def test_base_urls(self) -> None:
        """Another host, port, scheme or user name in the base URL is denied."""
        for base_url in (
            "https://api.example:444",
            "https://evil.example",
            "http://api.example",
            "https://api.example@evil.example",
            "https://u:p@api.example",
            "https://api.example.",
            "https://api.example/../x",
            "https://api.example/?q",
            "https://api.example#f",
            "https://api.example\\@evil.example",
            "ftp://api.example",
            "//api.example",
            "",
            "https://",
            "https://api.example:x",
            "https://[::1",
        ):
            self.assertRaises(CapabilityDenied, self.prepared, "create", {"project": "p"}, base_url)

    def test_bindable(self) -> None:
        """The host's case does not matter; where a binding may choose it, any https host will do, plain http none."""
        request = self.prepared("create", {"project": "p"}, "https://API.Example/v2")
        self.assertTrue(request.url.startswith("https://api.example/v2/p/p/"))
        spec = spec_of(SPEC.replace('{ default = "https', '{ bindable = true, default = "https'))
        connector = Service().connector(spec)
        request = connector.prepare("form", {"b": "1"}, "https://other.example", "k")
        self.assertTrue(request.url.startswith("https://other.example/form/"))
        self.assertRaises(CapabilityDenied, connector.prepare, "form", {"b": "1"}, "http://other.example", "k")
