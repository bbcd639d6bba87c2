"""Of reads in pages: what makes the next one, where they end, and what a hostile service can do with them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._schema import read_file
from aileron.model.connectors import Outcome
from tests.connectors.service import Reply, Service, answer, json_answer, spec_of

SPEC = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = "http://127.0.0.1:8080"
private_network = true

[credential]
kind = "api_key"
query = "key"

[operations.cursor]
method = "GET"
path = "/c"
query = { limit = 2, after = "${in.after}", tag = "a b" }
effect = "read"
max_response_bytes = 1000
result = { all = "data.items", after = "data.next" }

[operations.cursor.pages]
kind = "cursor"
items = "data.items"
cursor = "data.next"
parameter = "after"
most_pages = 4
more = "more"

[operations.body]
method = "POST"
path = "/b"
json = { variables = { first = 2, after = "${in.after}" }, query = "q" }
effect = "read"
pages = { kind = "cursor", items = "items", cursor = "end", parameter = "variables.after", until = "has_more == false" }

[operations.link]
method = "GET"
path = "/l"
query = { size = 2 }
effect = "read"
result = { all = "items" }
pages = { kind = "link", most_items = 3, more = "more" }

[operations.page]
method = "GET"
path = "/p"
query = { per_page = "${in.limit}", page = "${in.page}" }
effect = "read"
result = { all = "items" }
pages = { kind = "page", parameter = "page", size = "per_page", more = "more" }

[operations.offset]
method = "GET"
path = "/o"
query = { start = "${in.start}" }
effect = "read"
result = { values = "values", last = "last" }
pages = { kind = "offset", items = "values", parameter = "start", until = "last == true" }
"""


def every(*items: JSON, more: bool = False) -> JSON:
    """The output of a read whose pages are arrays."""
    return {"all": list(items), "more": more}


class PagesCase(SynchronousTestCase):
    """A service that answers in pages."""

    def setUp(self) -> None:
        self.service = Service()
        self.connector = self.service.connector(spec_of(SPEC))

    def start(self, operation: str, *replies: Reply, **inputs: JSON) -> Deferred[Outcome]:
        """Begin to read."""
        self.service.replies.extend(replies)
        return self.service.start(self.connector, operation, inputs, secret=b"canary-key")

    def read(self, operation: str, *replies: Reply, **inputs: JSON) -> Outcome:
        """Read, until nothing happens any more."""
        return self.successResultOf(self.start(operation, *replies, **inputs))

    def queries(self) -> list[dict[str, Any]]:
        """The query of each request that arrived, without the credential, which is in each once."""
        found = []
        for request in self.service.requests:
            query = parse_qs(request.split(b" ")[1].decode().partition("?")[2])
            self.assertEqual(query.pop("key"), ["canary-key"])
            found.append({name: values[0] if len(values) == 1 else values for name, values in query.items()})
        return found


class KindTests(PagesCase):
    """What makes the next page."""

    def test_cursor(self) -> None:
        """A cursor goes into the query in place of the one before; the rest of the request stays."""
        pages = [json_answer({"data": {"items": [n, n], "next": f"c&{n}" if n < 3 else ""}}) for n in (1, 2, 3)]
        outcome = self.read("cursor", *pages)
        self.assertEqual(outcome.output, {"all": [1, 1, 2, 2, 3, 3], "after": "", "more": False})
        self.assertEqual([each.get("after") for each in self.queries()], [None, "c&1", "c&2"])
        self.assertEqual({(each["limit"], each["tag"]) for each in self.queries()}, {("2", "a b")})
        self.assertEqual(outcome.notes["pages"], 3)

    def test_body(self) -> None:
        """A cursor goes into the JSON body, where one condition tells the last page."""
        outcome = self.read(
            "body", json_answer({"items": [1], "end": 7}), json_answer({"items": [2], "end": 8, "has_more": False})
        )
        self.assertEqual(outcome.output, {"items": [1, 2], "end": 8, "has_more": False})
        bodies = [json.loads(each.partition(b"\r\n\r\n")[2]) for each in self.service.requests]
        self.assertEqual([each["variables"] for each in bodies], [{"first": 2}, {"first": 2, "after": 7}])
        self.assertEqual({each["query"] for each in bodies}, {"q"})

    def test_link(self) -> None:
        """A link header names the next page; the credential is added to it once, even if the service repeats it."""
        link = '</x>; rel="prev", <http://127.0.0.1:8080/other?n=2&key=canary-key>; rel="next"'
        outcome = self.read("link", json_answer([1], headers={"Link": link}), json_answer([2]))
        self.assertEqual((outcome.output, self.queries()), (every(1, 2), [{"size": "2"}, {"n": "2"}]))
        self.assertTrue(self.service.requests[1].startswith(b"GET /other?n=2&key="))
        last = '</x?n=3>; rel="next"; results="false"'
        self.assertEqual(self.read("link", json_answer([3], headers={"Link": last})).output, every(3))

    def test_page(self) -> None:
        """Pages are counted until one is not full, or is empty."""
        self.assertEqual(self.read("page", json_answer([1, 2]), json_answer([3]), limit=2).output, every(1, 2, 3))
        self.assertEqual([each.get("page") for each in self.queries()], [None, "2"])
        self.assertEqual(self.read("page", json_answer([1, 2]), json_answer([])).output, every(1, 2))

    def test_offset(self) -> None:
        """An offset grows by what came."""
        pages = (
            json_answer({"values": [1, 2]}),
            json_answer({"values": [3]}),
            json_answer({"values": [], "last": True}),
        )
        self.assertEqual(self.read("offset", *pages).output, {"values": [1, 2, 3], "last": True})
        self.assertEqual([each.get("start") for each in self.queries()], [None, "2", "3"])

    def test_chosen(self) -> None:
        """Who names a page gets that one alone."""
        outcome = self.read("cursor", json_answer({"data": {"items": [5], "next": "c6"}}), after="c5")
        self.assertEqual(outcome.output, {"all": [5], "after": "c6", "more": True})
        self.assertEqual(self.read("page", json_answer([1]), page=4).output, every(1, more=True))
        self.assertEqual(len(self.service.requests), 2)


class EndTests(PagesCase):
    """Where they end."""

    def test_most_pages(self) -> None:
        """No more pages are read than declared, and the output says that there are more, and from where."""
        pages = [json_answer({"data": {"items": [n], "next": f"c{n}"}}) for n in range(9)]
        outcome = self.read("cursor", *pages)
        self.assertEqual(outcome.output, {"all": [0, 1, 2, 3], "after": "c3", "more": True})
        self.assertEqual(outcome.notes, {"pages": 4, "more": True})

    def test_most_items(self) -> None:
        """No further page is read once there are as many items as declared."""
        pages = [json_answer([n, n], headers={"Link": f'</l?n={n}>; rel="next"'}) for n in range(9)]
        self.assertEqual(self.read("link", *pages).output, every(0, 0, 1, 1, more=True))

    def test_size(self) -> None:
        """All pages together have no more bytes than one answer may; the page that is too much is left for later."""
        pages = [json_answer({"data": {"items": [str(n) * 400], "next": f"c{n}"}}) for n in range(3)]
        outcome = self.read("cursor", *pages)
        self.assertEqual(outcome.output, {"all": ["0" * 400, "1" * 400], "after": "c1", "more": True})
        outcome = self.read("cursor", json_answer({"data": {"items": ["x" * 1000]}}))
        assert outcome.fault is not None
        self.assertEqual((outcome.fault.kind, outcome.output), ("resource_limit_exceeded", None))

    def test_fails(self) -> None:
        """A page that fails is the outcome of all, whatever came before: half of it is not passed off as all."""
        first = json_answer({"data": {"items": [1], "next": "c"}})
        for bad, words, classified in (
            (answer(b"{}", 500), "status 500. (page 2)", False),
            (answer(b"{}", 429, {"Retry-After": "7"}), "status 429. (page 2)", True),
            (answer(b"<html>"), "not valid JSON (status 200). (page 2)", False),
            (json_answer({"data": {"items": {}}}), "cannot read. (page 2)", False),
            (answer(b"x" * 2000, 503), "(page 2)", False),
        ):
            outcome = self.read("cursor", first, bad)
            assert outcome.fault is not None
            self.assertIn(words, outcome.fault.message)
            self.assertEqual((outcome.output, outcome.classified), (None, classified))

    def test_cursor_forms(self) -> None:
        """Only a cursor that is missing, null, empty or false ends the read; one in another form fails it."""
        second = json_answer({"data": {"items": [2]}})
        for end in (None, "", False):
            self.assertEqual(self.read("body", json_answer({"items": [1], "end": end})).fault, None)
        self.assertEqual(self.read("body", json_answer({"items": [1]})).fault, None)
        self.assertEqual(len(self.service.requests), 4)
        in_no_known_form: list[JSON] = [1700.5, True, ["c"], {}]
        for wrong in in_no_known_form:
            outcome = self.read("body", json_answer({"items": [1], "end": wrong}), second)
            assert outcome.fault is not None
            self.assertIn("names a next page in a way", outcome.fault.message)
            self.service.replies.clear()
        self.assertEqual(len(self.service.requests), 8)
        self.assertEqual(
            self.read("cursor", json_answer({"data": {"items": [1], "next": 0}}), second).output,
            {"all": [1, 2], "more": False},
        )

    def test_digits(self) -> None:
        """What is a digit only elsewhere is no number of a page, and no size."""
        self.assertEqual(self.read("page", json_answer([1]), page="²").output, every(1, more=True))
        self.assertEqual(self.read("page", json_answer([1]), json_answer([]), limit="²").output, every(1))

    def test_breaks(self) -> None:
        """A connection that breaks between pages, or a page that takes too long, fails the read in time."""
        reading = self.start("cursor", json_answer({"data": {"items": [1], "next": "c"}}), None)
        self.service.advance(0)
        self.assertNoResult(reading)
        self.service.hang_up()
        self.assertIn("complete response", str(self.successResultOf(reading).fault))
        reading = self.start("cursor", json_answer({"data": {"items": [1], "next": "c"}}), None)
        self.service.advance(19)
        self.assertNoResult(reading)
        self.service.advance(2)
        fault = self.successResultOf(reading).fault
        assert fault is not None
        self.assertEqual(fault.kind, "resource_limit_exceeded")

    def test_cancelled(self) -> None:
        """Cancelled between pages, it drops the connection and asks for no other."""
        reading = self.start("cursor", json_answer({"data": {"items": [1], "next": "c"}}), None, answer())
        self.service.advance(0)
        reading.cancel()
        self.service.advance(1)
        self.failureResultOf(reading, CancelledError)
        self.assertEqual((len(self.service.requests), self.service.peers[-1].closed), (2, True))


class HostileTests(PagesCase):
    """What a service can do with it."""

    def test_other_host(self) -> None:
        """A link to another host, port or scheme is not followed, and no credential goes there."""
        for target in (
            "http://evil.example/l",
            "//evil.example/l",
            "https://127.0.0.1:8080/l",
            "http://127.0.0.1:81/l",
            "http://a@127.0.0.1:8080/l",
        ):
            outcome = self.read("link", json_answer([1], headers={"Link": f'<{target}>; rel="next"'}))
            assert outcome.fault is not None
            self.assertIn("another host", outcome.fault.message)
        self.assertEqual({host for host, _ in self.service.connected}, {"127.0.0.1"})
        self.assertEqual(len(self.service.requests), 5)

    def test_key_in_path(self) -> None:
        """A link is not followed where it would have the key in its path, and the key is in no outcome."""
        self.connector = self.service.connector(spec_of(SPEC.replace('query = "key"', 'path = "/bot{key}"')))
        link = {"Link": '</botcanary-key/l?page=2>; rel="next"'}
        outcome = self.read("link", json_answer([1, 2], headers=link))
        self.assertEqual(self.service.requests[0].split(b" ")[1], b"/botcanary-key/l?size=2")
        assert outcome.fault is not None
        self.assertEqual(len(self.service.requests), 1)
        self.assertIn("is read by a link, which would repeat the key in its path", outcome.fault.message)
        self.assertNotIn("canary-key", repr(outcome))

    def test_same_page(self) -> None:
        """A cursor that leads back to a page that was read ends it."""
        pages = [json_answer({"data": {"items": [n], "next": "c"}}) for n in range(9)]
        outcome = self.read("cursor", *pages)
        assert outcome.fault is not None
        self.assertIn("same page again", outcome.fault.message)
        self.assertEqual(len(self.service.requests), 2)

    def test_injection(self) -> None:
        """Whatever a cursor holds, it stays one parameter."""
        self.read(
            "cursor",
            json_answer({"data": {"items": [1], "next": "x&key=other\r\nX: y"}}),
            json_answer({"data": {"items": []}}),
        )
        self.assertEqual(self.queries()[1]["after"], "x&key=other\r\nX: y")

    def test_echo(self) -> None:
        """A secret in any page is taken out, and told."""
        outcome = self.read(
            "link", json_answer(["canary-key"], headers={"Link": '</l?n=2>; rel="next"'}), json_answer([2])
        )
        self.assertEqual((outcome.output, outcome.notes["echoed"]), (every("[redacted]", 2), ["plain"]))


class FileTests(SynchronousTestCase):
    """What a file may say."""

    def test_faults(self) -> None:
        """What cannot be read in pages, or would not end, is a fault."""
        for old, new, words in (
            ('kind = "link", most_items = 3', 'kind = "links"', "must be one of"),
            ('most_items = 3, more = "more"', "most_items = 3", "`more` is missing: the output would not say"),
            ('values = "values", last = "last"', 'values = "values"', "`more` is missing: the output would not say"),
            ('kind = "link"', 'kind = "link", cursor = "a"', "`cursor` is not a known key"),
            ("most_items = 3", "most_items = 20000", "from 1 to 10000"),
            ("most_pages = 4", "most_pages = 51", "from 1 to 50"),
            ('parameter = "after"', 'parameter = "before"', "`query`"),
            ('parameter = "variables.after"', 'parameter = "more.after"', "`json`"),
            ('cursor = "end", ', "", "`cursor` is missing"),
            ('size = "per_page"', 'size = "limit"', "must be one of: per_page, page"),
            ('more = "more"', 'more = "all"', "no other part"),
            ('method = "POST"\npath = "/b"', 'method = "POST"\nanswer = "text"\npath = "/b"', "JSON"),
            ('path = "/l"\nquery = { size = 2 }\neffect = "read"', 'path = "/l"\neffect = "write"', "for reads"),
        ):
            self.assertIn(old, SPEC)
            found = read_file(SPEC.replace(old, new, 1).encode(), "t.toml", "local").problems
            self.assertTrue(any(words in each.message for each in found), (new, found))
