"""Of looking for an effect: what is asked, what counts as found, and what nothing found is worth."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors import Registry
from aileron.connectors._schema import read_file
from aileron.connectors._screened import Screened
from aileron.connectors.kinds.http._when import at
from aileron.model.connectors import CredentialNeed, Finding, Sought
from aileron.model.errors import BindingFailed
from aileron.model.faults import Fault
from aileron.model.interfaces.connectors import IConnector
from aileron.testing import FINDABLE, MemoryCredential, ScriptedConnector, scripted_description
from tests.connectors.certificate import Certificate
from tests.connectors.service import NOW, Service, json_answer, spec_of

BASE = "http://127.0.0.1:8080"
HEAD = """
[connector]
name = "local://me/post"
version = "1.0.0"
base_url = { default = "http://127.0.0.1:8080" }
hosts = ["127.0.0.1:8080"]
private_network = true

[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {key}"
"""
# A mail gateway is searched by Message-ID, an order is fetched by its key.
MAIL = """
[operations.send]
method = "POST"
path = "/send"
json = { to = "${in.to}", headers = { Message-ID = "<${effect.uuid}@aileron.invalid>" } }

[operations.send.reconcile]
op = "search"
inputs = { q = "to:${in.to}", since = "${effect.since}" }
items = "found.mails"
match = 'headers.Message-ID == "<${effect.uuid}@aileron.invalid>"'
result = { id = "id" }
"""
SEARCH = """
[operations.search]
method = "GET"
path = "/search"
query = { q = "${in.q}", since = "${in.since}" }
effect = "read"
"""
ORDER = """
[operations.order]
method = "POST"
path = "/orders"
json = { item = "${in.item}", key = "${effect.key}" }

[operations.order.reconcile]
op = "by_key"
inputs = { key = "${effect.key}" }
absent = "did_not_happen"
absent_statuses = [404]
after_seconds = 30

[operations.by_key]
method = "GET"
path = "/orders/${in.key}"
effect = "read"
"""
SECRET = b"s3cret/va+lue=42"
CERTAIN = ("match =", 'absent = "did_not_happen"\nafter_seconds = 1\nmatch =')
LATELY = NOW - timedelta(seconds=10)


def sought(operation: str, inputs: Mapping[str, JSON], base_url: str = BASE, key: str = "k1.send") -> Sought:
    """An effect that was tried ten seconds ago."""
    return Sought(operation, inputs, base_url, key, LATELY, LATELY)


class LookCase(SynchronousTestCase):
    """A service that is asked."""

    def setUp(self) -> None:
        """Nothing was asked yet."""
        self.service = Service()

    def look(self, connector: IConnector, wanted: Sought, *replies: bytes | None) -> Finding:
        """What one look comes to."""
        self.service.replies.extend(replies)
        looking = Deferred.fromCoroutine(connector.reconcile(wanted, MemoryCredential(SECRET), 10.0))
        self.service.advance(0)
        self.service.advance(10.0)
        return self.successResultOf(looking)

    def query(self) -> Mapping[str, list[str]]:
        """The query of the newest request."""
        line = self.service.requests[-1].partition(b"\r\n")[0].decode()
        return parse_qs(urlsplit(line.split(" ")[1]).query)


class MailTests(LookCase):
    """A list in which one is found by the key."""

    def mail(self, change: tuple[str, str] = ("", "")) -> IConnector:
        """The connector, with one thing of its file changed."""
        return self.service.connector(spec_of((HEAD + MAIL + SEARCH).replace(*change)))

    def sent(self, key: str = "k1.send", **more: JSON) -> dict[str, JSON]:
        """A mail as the search tells of it."""
        connector = self.mail()
        request = connector.prepare("send", {"to": "ann@x.invalid"}, BASE, key)
        asked = json.loads(request.body or b"")
        return {"headers": asked["headers"], **more}

    def answered(self, *mails: JSON, change: tuple[str, str] = ("", ""), **more: JSON) -> Finding:
        """What one look comes to, if the search finds these."""
        answer = json_answer({"found": {"mails": list(mails)}, **more})
        return self.look(self.mail(change), sought("send", {"to": "ann@x.invalid"}), answer)

    def test_found(self) -> None:
        """The one with our id is it, and what the file says of it is the output; that there were more is said.

        Nothing found says nothing, unless the file says that it does.
        """
        other, one, two = self.sent("other.send", id="m1"), self.sent(id="m2"), self.sent(id="m3")
        for mails, happened, output, notes in (
            ((other, one), True, {"id": "m2"}, {}),
            ((one, two), True, {"id": "m2"}, {"matches": 2}),
            ((other,), None, None, {}),
        ):
            finding = self.answered(*mails)
            self.assertEqual((happened, output, notes), (finding.happened, finding.output, finding.notes))

    def test_asked(self) -> None:
        """Only the declared read is sent, with its inputs, from a moment before the effect on, with the credential."""
        self.answered()
        self.assertTrue(self.service.requests[0].startswith(b"GET /search?"))
        self.assertEqual({"q": ["to:ann@x.invalid"], "since": ["2026-05-01T11:49:50.000000Z"]}, self.query())
        self.assertIn(b"Authorization: Bearer s3cret", self.service.requests[0])

    def test_likeness_is_nothing(self) -> None:
        """What has no id, or another, is not it, whatever else is the same."""
        mails: list[JSON] = [{}, {"headers": {}}, {"headers": None}, {"headers": {"Message-ID": 1}}, "x", None, [1]]
        for mail in mails:
            self.assertIsNone(self.answered(mail).happened)

    def test_another_form(self) -> None:
        """An answer without the list, or with one that is not whole, says nothing, also where absence would."""
        for answer in (json_answer({}), json_answer({"found": {"mails": {}}}), json_answer([]), json_answer({}, 404)):
            finding = self.look(self.mail(CERTAIN), sought("send", {"to": "ann"}), answer)
            self.assertIsNone(finding.happened)
            self.assertIsNotNone(finding.fault)
        self.assertIs(False, self.answered(change=CERTAIN).happened)
        whole = ("match =", CERTAIN[1].replace("match", 'complete = "more == false"\nmatch'))
        found = [self.answered(change=whole, **more).happened for more in ({"more": False}, {"more": True}, {})]
        self.assertEqual([False, None, None], found)

    def test_part(self) -> None:
        """Nothing found in a part of the pages says nothing, whether a bound ended the read or a page failed."""
        paged = """pages = { kind = "page", parameter = "page", items = "found.mails", most_pages = 2, more = "more" }
result = { found = "found" }
max_response_bytes = 200
"""
        search = SEARCH.replace("since =", 'page = "${in.page}", since =') + paged
        text = HEAD + MAIL.replace(
            "match =", 'absent_statuses = [404]\nabsent = "did_not_happen"\nafter_seconds = 1\nmatch ='
        )
        full, empty = json_answer({"found": {"mails": [{"id": "x" * 50}]}}), json_answer({"found": {"mails": []}})
        long = json_answer({"found": {"mails": ["x" * 200]}})
        for replies, happened in (
            ((full, empty), False),
            ((full, full), None),
            ((full, long), None),
            ((full, json_answer({"error": "e" * 300}, 503)), None),
            ((full, json_answer({}, 404)), None),
            ((json_answer({}, 404),), False),
        ):
            self.service = Service()
            finding = self.look(self.service.connector(spec_of(text + search)), sought("send", {"to": "ann"}), *replies)
            self.assertIs(happened, finding.happened, replies)

    def test_nobody_says(self) -> None:
        """A service that is silent or refuses to tell, or a look that cannot be built and is not sent, says nothing."""
        for inputs, replies, kind, count in (
            ({"to": "ann"}, [None], "resource_limit_exceeded", 1),
            ({"to": "ann"}, [json_answer({}, 403)], "external_api_error", 2),
            ({}, [], "invalid_request", 2),
        ):
            finding = self.look(self.mail(), sought("send", inputs), *replies)
            self.assertEqual((None, kind), (finding.happened, finding.fault and finding.fault.kind))
            self.assertEqual(count, len(self.service.requests))
        closed = MemoryCredential(BindingFailed("It does not open."))
        looking = self.mail().reconcile(sought("send", {"to": "ann"}), closed, 10.0)
        self.failureResultOf(Deferred.fromCoroutine(looking), BindingFailed)
        self.assertEqual(2, len(self.service.requests))

    def test_echo(self) -> None:
        """The secret is taken out of what was found."""
        finding = self.answered(self.sent(id=SECRET.decode()))
        self.assertEqual(({"id": "[redacted]"}, ["plain"]), (finding.output, finding.notes["echoed"]))

    @settings(deadline=None, max_examples=50)
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(("found", "mails", "headers", "Message-ID", "id")), inner, max_size=3)
            ),
            max_leaves=12,
        )
    )
    def test_wild_answers(self, answer: JSON) -> None:
        """Whatever the service answers, nothing is found that does not hold the key."""
        self.service = Service()
        finding = self.look(self.mail(CERTAIN), sought("send", {"to": "ann"}), json_answer(answer))
        self.assertIsNot(True, finding.happened)
        if finding.happened is False:
            self.assertIsInstance(at(answer, ("found", "mails")), list)


class OrderTests(LookCase):
    """One thing, fetched by its key."""

    def order(self, reply: bytes | None, ago: float = 60.0, change: tuple[str, str] = ("", "")) -> Finding:
        """What a look that long after the attempt comes to."""
        tried = NOW - timedelta(seconds=ago)
        wanted = evolve(sought("order", {"item": "tea"}, key="k1.order"), first_at=tried, last_at=tried)
        return self.look(self.service.connector(spec_of((HEAD + ORDER).replace(*change))), wanted, reply)

    def test_table(self) -> None:
        """What each answer is worth, by when it comes and what the file says; before the attempt it proves nothing."""
        unsure = ('absent = "did_not_happen"\n', "")
        unlisted = ("absent_statuses = [404]\n", "")
        here, gone, broken = json_answer({"id": 7}), json_answer({}, 404), json_answer({}, 500)
        for reply, ago, change, happened in (
            (here, 0.0, ("", ""), True),
            (here, 60.0, unsure, True),
            (gone, 30.0, ("", ""), False),
            (gone, 29.0, ("", ""), None),
            (gone, -3600.0, ("", ""), None),
            (gone, 60.0, unsure, None),
            (gone, 60.0, unlisted, None),
            (broken, 60.0, ("", ""), None),
            (json_answer("text"), 60.0, ("", ""), None),
            (None, 60.0, ("", ""), None),
        ):
            self.service = Service()
            finding = self.order(reply, ago, change)
            self.assertIs(happened, finding.happened, (reply, ago, change))
            self.assertEqual({"id": 7} if happened else None, finding.output)


class BuiltinTests(LookCase):
    """The connectors that come with the package."""

    def found(self, fqn: str, host: str, wanted: Sought, *replies: JSON) -> Finding:
        """What a look of a shipped connector comes to."""
        certificate = Certificate.made(host)
        self.service = Service({host: ["203.0.114.7"]}, certificate=certificate, trusted=certificate)
        connector = Registry(None, self.service.workshop).get(fqn)
        assert connector is not None
        return self.look(connector, wanted, *map(json_answer, replies))

    def test_slack(self) -> None:
        """A message is found by its client_msg_id in the channel's newest messages; a refusal says nothing."""
        wanted = sought("post_message", {"channel": "C1", "text": "Hi"}, "https://slack.com", "k1.post")
        slack = Registry(None, self.service.workshop).get("builtin://slack")
        assert slack is not None
        body = json.loads(slack.prepare("post_message", wanted.inputs, wanted.base_url, "k1.post").body or b"")
        other = {"client_msg_id": str(uuid.uuid4()), "ts": "1.1"}
        mine = {"client_msg_id": body["client_msg_id"], "ts": "1.2"}
        finding = self.found("builtin://slack", "slack.com", wanted, {"ok": True, "messages": [other, mine]})
        self.assertEqual((True, {"ts": "1.2"}), (finding.happened, finding.output))
        oldest = str(int((LATELY - timedelta(minutes=10)).timestamp()))
        self.assertEqual({"channel": ["C1"], "oldest": [oldest], "limit": ["200"]}, self.query())
        finding = self.found("builtin://slack", "slack.com", wanted, {"ok": False, "error": "channel_not_found"})
        self.assertEqual((None, True), (finding.happened, finding.fault is not None))

    def test_github(self) -> None:
        """An issue and a comment are found by the mark in their text."""
        inputs: Mapping[str, JSON] = {"owner": "o", "repo": "r", "body": "Text"}
        cases: list[tuple[str, Mapping[str, JSON], Mapping[str, JSON]]] = [
            ("create_issue", {"title": "T"}, {"number": 7, "html_url": "https://github.com/i/7"}),
            ("comment", {"number": 7}, {"id": 9, "html_url": "https://github.com/c/9"}),
        ]
        for operation, more, shown in cases:
            wanted = sought(operation, {**inputs, **more}, "https://api.github.com", "k1.issue")
            github = Registry(None, self.service.workshop).get("builtin://github")
            assert github is not None
            sent = json.loads(github.prepare(operation, wanted.inputs, wanted.base_url, "k1.issue").body or b"")
            self.assertEqual("Text\n\n<!-- aileron:k1.issue -->", sent["body"])
            there: JSON = [{"body": None}, {"body": "<!-- aileron:k1.issue2 -->"}, {"body": sent["body"], **shown}]
            finding = self.found("builtin://github", "api.github.com", wanted, there)
            self.assertIs(True, finding.happened)
            self.assertEqual("https://github.com", str(finding.output["url"])[:18])  # type: ignore[index,call-overload]


class ScreenedTests(SynchronousTestCase):
    """A connector in Python that looks."""

    def test_screened(self) -> None:
        """Nothing of the secret passes back in what it found, or in why it cannot say."""
        fault = Fault("external_api_error", f"no {SECRET.decode()}", "external")
        need = CredentialNeed("api_key", "Authorization", "Bearer {key}")
        inner = ScriptedConnector(scripted_description(FINDABLE, credential=need))
        inner.findings = [Finding(True, {"a": SECRET.decode()}), Finding(None, fault=fault)]
        wanted = sought("send", {}, "https://scripted.invalid")
        for _ in range(2):
            credential = MemoryCredential(SECRET)
            looking = Screened(inner).reconcile(wanted, credential, 10.0)
            finding = self.successResultOf(Deferred.fromCoroutine(looking))
            self.assertNotIn("s3cret", str(finding))


class FileTests(SynchronousTestCase):
    """What a file may say of it."""

    def test_faults(self) -> None:
        """What cannot find it by its key, or is no read, is told, and so is a request that refers to a moment."""
        text, match = HEAD + MAIL + SEARCH, '== "<${effect.uuid}@aileron.invalid>"\''
        operations = spec_of(text).description.operations
        self.assertEqual([True, False], [operations[name].reconcilable for name in ("send", "search")])
        for old, new in (
            ('op = "search"', 'op = "send"'),
            ('op = "search"', 'op = "nothing"'),
            ('op = "search"\n', ""),
            (f"match = 'headers.Message-ID {match}", ""),
            ("<${effect.uuid}@aileron.invalid>\"'", "me\"'"),
            (match, "== 1'"),
            (match, "!= ${effect.uuid}'"),
            (match, "== ${effect.since}'"),
            ("to:${in.to}", "to:${in.other}"),
            ('q = "to:${in.to}"', 'query = "x"'),
            ("${effect.since}", "${effect.then}"),
            ('items = "found.mails"', 'items = "found..mails"'),
            ('result = { id = "id" }', "result = { id = 7 }"),
            ('result = { id = "id" }', 'absent = "perhaps"'),
            ('result = { id = "id" }', "after_seconds = 0"),
            ('result = { id = "id" }', "absent_statuses = [500]"),
            ('result = { id = "id" }', 'complete = "more"'),
            ('result = { id = "id" }', "colour = 1"),
            ('path = "/send"\njson', 'path = "/send"\neffect = "read"\njson'),
            ('effect = "read"', 'effect = "read"\nanswer = "text"'),
            ('"to:${in.to}"', '"to:${in.to"'),
            ('json = { to = "${in.to}"', 'json = { to = "${in.to}", at = "${effect.since}"'),
        ):
            self.assertIn(old, text)
            found = read_file(text.replace(old, new).encode(), "x.toml").problems
            self.assertEqual(1, len(found), (new, found))
