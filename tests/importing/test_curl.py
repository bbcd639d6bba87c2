"""Of a curl command: what is made of it, what is refused, and that no value of it is kept."""

from __future__ import annotations

import json
import shlex
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import HttpConnector
from aileron.connectors._schema import read_file
from aileron.importing import CurlCommand, NotImported, WrittenFiles, read_api, write_connector
from aileron.manifests import ManifestFault, parse
from aileron.values import Request, compact
from tests.connectors.service import NOW, spec_of
from tests.extent import examples

URL = "https://tracker.example/api/issues"
KEY = "sk-live-4f9a8b7c6d5e4f3a2b1c"
SECRET = KEY[8:]
"""What nothing may repeat, also where a name is made of it."""
BEARER = ("-H", "Authorization: Bearer $TOKEN")
NAME = "local://me/trial"


def written(*words: str) -> WrittenFiles:
    """What is made of a command, given without its first word, or of its text, if that is all."""
    is_text = len(words) == 1 and "curl " in words[0]
    command = CurlCommand.read(words if is_text else ("curl", *words))
    return write_connector(command.describe(NAME, command.list_operations()))


def sound(*words: str) -> WrittenFiles:
    """The same; it must be without fault."""
    found = written(*words)
    assert not found.refused, found.refused
    spec_of(found.connector.text)
    (action,) = found.actions
    parse(action.text.encode(), action.name)
    return found


def request(*words: str, **inputs: Any) -> Request:
    """The request that the connector makes."""
    spec = spec_of(sound(*words).connector.text)
    connector = HttpConnector(spec, None, Clock(), lambda: NOW)  # type: ignore[arg-type]
    (name,) = spec.operations
    return connector.prepare(name, inputs, spec.description.base_url or "", "effect-1")


def credential(*words: str) -> dict[str, Any]:
    """The table of the credential."""
    found = CurlCommand.read(("curl", *words)).credential
    assert found is not None
    return {**found.found.keys, "real": found.is_real}


class RequestTests(SynchronousTestCase):
    """What a command becomes."""

    def test_json(self) -> None:
        """Members of a JSON body become inputs of their types, nested where they were; the same request leaves."""
        body = {"title": "a", "size": 3, "ratio": 1.5, "open": True, "tags": ["x"], "in": {"title": "b", "none": {}}}
        words = (URL, *BEARER, "-d", json.dumps(body))
        (action,) = sound(*words).actions
        types = {each.name: each.type for each in parse(action.text.encode(), action.name).inputs}
        wanted = {"title": "string", "size": "integer", "ratio": "number", "open": "boolean", "tags": "array"}
        self.assertEqual(types, {**wanted, "in_title": "string"})
        given = {**body, "in_title": "b"}
        sent = request(*words, **{name: given[name] for name in types})
        self.assertEqual((sent.method, sent.url, json.loads(sent.body or b"")), ("POST", URL, body))
        self.assertEqual(dict(sent.headers)["Content-Type"], "application/json")
        self.assertIn("with title, size, ratio, open, tags and in_title.", action.text)

    def test_whole_body(self) -> None:
        """An array is one input; what its elements are is said; an empty object is sent as it is."""
        rows = [{"id": 1, "names": ["a", "b"]}]
        (action,) = sound(URL, *BEARER, "--json", json.dumps(rows)).actions
        (found,) = parse(action.text.encode(), action.name).inputs
        self.assertEqual(json.loads(compact(found.schema))["items"]["properties"]["id"], {"type": "integer"})
        sent = request(URL, *BEARER, "--json", json.dumps(rows), body=rows)
        self.assertEqual(json.loads(sent.body or b""), rows)
        self.assertEqual(request(URL, *BEARER, "-d", "{}").body, b"{}")

    def test_form(self) -> None:
        """A form stays one, and so does a query, that of -G too; of a GET with -d nothing else is a body."""
        sent = request(URL, *BEARER, "-d", "to=%2B1&a[b]=2", "--data-raw", "c=3", to="+2", a_b="x y", c="z")
        self.assertEqual(sent.body, b"to=%2B2&a%5Bb%5D=x%20y&c=z")
        sent = request(f"{URL}?q=a", "-G", *BEARER, "-d", "limit=3", q="b", limit="4")
        self.assertEqual((sent.method, sent.url, sent.body), ("GET", f"{URL}?q=b&limit=4", None))

    def test_path(self) -> None:
        """What is another value each time is an input of the path: placeholders, capitals, and long ids."""
        base = "https://a.example/v1"
        long = "b55c9c91-384d-452b-81db-d1ef79372b75"
        for path, inputs in (
            ("repos/OWNER/REPO", {"owner": "a", "repo": "b"}),
            ("repos/{owner}/x-$REPO", {"owner": "a", "repo": "b"}),
            ("${A}/<the id>/{{b}}/{{b}}", {"a": "1", "the_id": "2", "b": "3"}),
            (f"{long}/blocks/{long[::-1]}/106540352242922/4", {"id": "1", "block_id": "2", "id_2": "3"}),
        ):
            (action,) = sound(f"{base}/{path}", *BEARER).actions
            names = [each.name for each in parse(action.text.encode(), action.name).inputs]
            self.assertNotIn(long, action.text)
            self.assertEqual(names, list(inputs))

    def test_headers(self) -> None:
        """Headers stay, but for those of the daemon's; a placeholder becomes an input, a key for retries is made."""
        given = ["Accept: application/vnd.x+json", "X-Version: 2022-11-28", "Org: $ORG", "User-Agent: me", "Expect:"]
        given += ["Content-Type: application/json; charset=utf-8", "Idempotency-Key: $(uuidgen)", "Content-Length: 2"]
        given += ["X-Request-Id: $(uuidgen)"]
        sent = request(URL, *BEARER, "-d", "{}", *(word for each in given for word in ("-H", each)), org="acme")
        headers = dict(sent.headers)
        self.assertEqual(headers.pop("Idempotency-Key"), headers.pop("X-Request-Id"))
        kept = {"Accept": "application/vnd.x+json", "X-Version": "2022-11-28", "Org": "acme"}
        self.assertEqual(headers, {**kept, "Content-Type": "application/json; charset=utf-8"})

    def test_operations(self) -> None:
        """An operation is named by its path, and by its method where the path has no verb."""
        for method, path, name in (
            ("POST", "api/issues", "post_issues"),
            ("GET", "v1/users/{id}/posts", "get_users_posts"),
            ("POST", "api/chat.postMessage", "chat_post_message"),
            ("DELETE", "$ID", "delete_root"),
        ):
            (found,) = CurlCommand.read(("curl", "-X", method, f"https://a.example/{path}")).list_operations()
            self.assertEqual(found.name, name)

    def test_effects(self) -> None:
        """A GET reads and needs no approval, unless it may hand out a secret or its name says otherwise."""
        for words, needed in (
            ((URL, *BEARER), False),
            (("-I", URL, *BEARER), False),
            ((f"{URL}/tokens", *BEARER), True),
            ((f"{URL}/delete", *BEARER), True),
            (("-X", "delete", URL, *BEARER), True),
            (("-XPUT", URL, *BEARER, "-d", '{"a": 1}'), True),
        ):
            (action,) = sound(*words).actions
            self.assertEqual(parse(action.text.encode(), action.name).approval.required, needed, words)

    def test_text(self) -> None:
        """The text of a page is read as a shell reads it, with its prompt, broken lines, and what follows a bar."""
        text = f"$ curl -sSL --compressed -o x {URL} \\\n  {shlex.join(BEARER)} \\\r\n -d '{{\n \"a\": 1}}' | jq ."
        self.assertEqual(sound(text).connector, sound(URL, *BEARER, "-d", '{"a": 1}').connector)
        reader = read_api(text.encode())
        self.assertEqual([each.name for each in reader.list_operations()], ["post_issues"])

    def test_names(self) -> None:
        """A service is named by its host."""
        for host, name in (
            ("api.github.com", "github"),
            ("tracker.example", "tracker"),
            ("a.shop.co.uk", "shop"),
            ("127.0.0.1:8080", "local"),
            ("localhost", "local"),
            ("[::1]:80", "local"),
            ("10.0.0.1", "local"),
            ("xn--bcher-kva.example", "xn--bcher-kva"),
        ):
            scheme = "http" if name == "local" and host != "10.0.0.1" else "https"
            self.assertEqual(CurlCommand.read(("curl", f"{scheme}://{host}/x", *BEARER)).short_name, name)


class CredentialTests(SynchronousTestCase):
    """Where the key is, and how it is sent."""

    def test_found(self) -> None:
        """The header, the parameter or the beginning of the path that carries the key is found, with its format."""
        for words, form, real in (
            (BEARER, "Bearer {key}", False),
            (("-H", "Authorization: Bearer"), "Bearer {key}", False),
            (("-H", f"authorization: token {KEY}"), "token {key}", True),
            (("-H", f"Authorization: {KEY}"), "{key}", True),
            (("-H", "Authorization: Token token=<YOUR KEY>"), "Token token={key}", False),
            (("-H", "Authorization: Odd YOUR_API_KEY"), "Odd {key}", False),
            (("-H", f"Authorization: Token token={KEY}"), "Token token={key}", True),
            (("-H", f'Authorization: Bearer token="{KEY}"'), 'Bearer token="{key}"', True),
            (("-H", f"Authorization: ApiKey {KEY}=="), "ApiKey {key}", True),
            (("-H", "X-API-Key: xoxb-xxxx"), "{key}", False),
            (("-H", "PRIVATE-TOKEN: abc"), "{key}", True),
            (("-H", f"X-Odd: {KEY}"), "{key}", True),
            (("--oauth2-bearer", KEY), "Bearer {key}", True),
        ):
            found = credential(URL, *words)
            self.assertEqual((found["format"], found["real"]), (form, real), words)
        self.assertEqual(credential(f"{URL}?api_key={KEY}&q=1"), {"kind": "api_key", "query": "api_key", "real": True})
        self.assertEqual(credential(f"{URL}?k={{API key}}"), {"kind": "api_key", "query": "k", "real": False})
        path = {"kind": "api_key", "path": "/bot{key}", "real": False}
        self.assertEqual(credential("https://a.example/bot$TOKEN/send"), path)
        for user, real in (("ada:$PASS", False), ("ada:secret42", True), ("ada", False)):
            self.assertEqual(credential(URL, "-u", user), {"kind": "basic", "real": real})
        self.assertEqual(credential(URL, "-H", "Authorization: Basic $(base64 x)")["kind"], "basic")
        self.assertIsNone(CurlCommand.read(("curl", URL)).credential)

    def test_left_out(self) -> None:
        """What carries the key is in no input and no header of the operation."""
        for words in (("-H", f"X-API-Key: {KEY}"), ("-u", f"a:{KEY}")):
            self.assertEqual({name for name, _ in request(URL, *words).headers}, {"Accept"})
        sent = request("https://a.example/bot$TOKEN/send?to=a", to="b")
        self.assertEqual((sent.url, sent.credential_path), ("https://a.example/send?to=b", "/bot{key}"))
        self.assertEqual(request(f"{URL}?api_key={KEY}").url, URL)


class RefusedTests(SynchronousTestCase):
    """What nothing is made of."""

    def test_told(self) -> None:
        """What is not understood is refused with the reason, and no value is repeated."""
        for words, told in (
            (("-F", f"a={KEY}", URL), "-F of the curl command"),
            (("-sk", URL), "-k of the curl command"),
            (("--data-urlencode", KEY, URL), "--data-urlencode of"),
            ((f"--{KEY}", URL), "An option of"),
            (("-d",), "lacks its value"),
            (("-d", f"@{KEY}", URL), "sends a file"),
            (("-H", f"@{KEY}", URL), "-H 'Name: value'"),
            (("-d", "a=1", "--json", "{}", URL), "both -d and --json"),
            ((URL, URL), "2 URLs"),
            ((*BEARER,), "has no URL"),
            ((f"http://{KEY}.example/x",), "must begin with https://"),
            ((f"https://{KEY}@a.example/x",), "user name or password"),
            (("https://your-domain.example/x",), "host of the URL is a placeholder"),
            ((URL, "-H", f"Authorization: OAuth oauth_token={KEY},a=b"), "cannot be told"),
            (("-X", KEY, URL), "The method"),
            (("-H", f"Cookie: {KEY}", URL), "the header Cookie"),
            (("-H", f"A: {KEY}", "-H", f"B: {KEY}", URL), "several keys"),
            (("-H", f"Authorization: Bearer {KEY} b", URL), "cannot be told"),
            (("-H", f"Authorization: {KEY} $KEY", URL), "more than a placeholder"),
            (("https://a.example/$ID/$KEY/x",), "before that for the key"),
            (("\ud800", URL), "not proper text"),
            (("x" * 20_000, URL), "more than 16384 characters"),
        ):
            error = self.assertRaises(NotImported, CurlCommand.read, ("curl", *words))
            self.assertIn(told, error.problem)
            self.assertNotIn(KEY, f"{error.problem} {error.advice}")
        self.assertIn("quote", self.assertRaises(NotImported, CurlCommand.read, (f"curl '{KEY}",)).problem)
        self.assertIn("begin with curl", self.assertRaises(NotImported, CurlCommand.read, (f"wget {KEY}",)).problem)

    def test_inexpressible(self) -> None:
        """A request that no connector file can say is refused with the reason."""
        for words, told in (
            ((URL, *BEARER, "-d", '{"a": {"b": null}}'), "null as a.b"),
            ((URL, *BEARER, "-d", '{"a": $B}'), "not JSON"),
            ((URL, *BEARER, "--json", KEY), "not JSON"),
            ((URL, *BEARER, "--json", "1"), "neither a JSON object nor an array"),
            ((URL, *BEARER, "-d", KEY), "nor a form"),
            ((URL, *BEARER, "-H", "Content-Type: text/xml", "-d", "<a/>"), "nor a form"),
            ((URL, *BEARER, "-X", "GET", "-d", "{}"), "a GET cannot have"),
            ((f"{URL}//x", *BEARER), "empty part in its path"),
            ((f"{URL}?a=1&a=2", *BEARER), "a parameter twice"),
            ((f"{URL}?_method=DELETE", *BEARER), "another request"),
            ((URL, *BEARER, "-H", "X-HTTP-Method-Override: DELETE"), "another request"),
            ((URL, *BEARER, "-H", "Host: b.example"), "another request"),
            ((URL, *BEARER, "-H", "X: ${in.a} b"), "more than a variable"),
            ((URL, "-d", f"token={KEY}&a=1"), "its key in the body"),
            ((f"{URL}/{KEY}", "-d", "{}"), "its key in the path"),
            ((URL, *BEARER, "-d", json.dumps(dict.fromkeys(map(str, range(400)), 1))), "more than 64 fields"),
        ):
            found = written(*words)
            (why,) = found.refused.values()
            self.assertIn(told, why)
            self.assertNotIn(KEY, why + found.connector.text)


_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_HALVES = ("Authorization: ", "X-API-Key: ", "Bearer ", "a=1&b=2")
_PIECES = st.sampled_from(
    ["curl", "-X", "-H", "-d", "--json", "-u", "-G", "POST", URL, f"{URL}/{{id}}?a=1", "$KEY", "{}", "[", "null"],
).flatmap(
    lambda each: st.sampled_from([each, "'", '"', "\\", "@", "\n", " ", ":", "|", "${in.a}", "-", "--", *_HALVES])
)
_BEGINNINGS = st.sampled_from([(), (URL,), (URL, *BEARER), (URL, "-d", "{}"), ("-u", "a:$B", "-d")])
_KEYED = st.sampled_from(
    [
        ("-H", f"Authorization: Bearer {KEY}"),
        ("-H", f"Authorization: {KEY}"),
        ("-H", f"X-Thing: {KEY}"),
        ("-H", f"X-Token: a {KEY} b"),
        ("-u", f"{KEY}:"),
        ("-u", f"ada:{KEY}"),
        ("-d", json.dumps({"token": KEY, "a": [KEY], "b": {"c": KEY}})),
        ("-d", f"token={KEY}&a={KEY}"),
        (f"https://a.example/x?key={KEY}&q={KEY}",),
        (f"https://a.example/x/{KEY}",),
        (*BEARER, f"https://a.example/{KEY}/{KEY[::-1]}/x-{KEY}/y"),
        (f"https://a.example/$ID/{KEY}/12345", *BEARER),
        (f"https://{KEY}@a.example/x",),
        ("--oauth2-bearer", KEY),
        ("--odd", KEY),
        (f"--odd={KEY}",),
        (f"-Z{KEY}",),
    ]
)


class WildTests(SynchronousTestCase):
    """Whatever is pasted."""

    @settings(deadline=None, max_examples=examples(600))
    @given(
        _BEGINNINGS,
        st.one_of(st.lists(_KEYED, max_size=2), st.lists(st.one_of(_TEXT, _PIECES, _KEYED), max_size=8)),
        st.booleans(),
    )
    def test_wild(self, beginning: tuple[str, ...], pieces: list[Any], split: bool) -> None:
        """It is refused with a sentence, or files are written that are sound or tell their fault; no key is in them."""
        words = [word for each in pieces for word in (each if isinstance(each, tuple) else (each,))]
        words = [*beginning, *words]
        command = ("curl", *words) if split else ("curl " + (shlex.join(words) if beginning else " ".join(words)),)
        try:
            read = CurlCommand.read(command)
            found = write_connector(read.describe(NAME, read.list_operations()))
        except NotImported as error:
            self.assertNotIn(SECRET, f"{error.problem} {error.advice} {error!s}")
            return
        self.assertNotIn(SECRET, repr((found.marks, found.refused)))
        for file in (found.connector, *found.actions):
            self.assertNotIn(SECRET, file.text)
        for problem in () if found.refused else read_file(found.connector.text.encode(), "x.toml").problems:
            self.assertEqual(problem.kind, "validation_error")
            self.assertNotIn(SECRET, problem.message)
        for action in found.actions:
            try:
                parse(action.text.encode(), action.name)
            except ManifestFault as fault:
                self.assertTrue(all(each.kind == "validation_error" for each in fault.errors), fault)
