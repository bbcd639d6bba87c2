"""Of a curl command: what is made of it, what is refused, and that no value of it is kept."""

from __future__ import annotations

import json
import shlex
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import ManifestFault, parse
from aileron.base.json import compact
from aileron.connectors import HttpConnector
from aileron.connectors._schema import read_file
from aileron.features.importing.curl import CurlCommand
from aileron.features.importing.description import NotImported
from aileron.features.importing.files import WrittenFiles, write_connector
from aileron.features.importing.readers import connector_name, read_api
from aileron.model.connectors import Request
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
        """Members of a JSON body become inputs of their types; the same request leaves."""
        inside = {"title": "b", "none": {}, "rows": [{"id": 1}], "deep": {"er": True}}
        body = {"title": "a", "size": 3, "ratio": 1.5, "open": True, "tags": ["x"], "mixed": [1, "a"], "in": inside}
        words = (URL, *BEARER, "-d", json.dumps(body))
        (action,) = sound(*words).actions
        inputs = {each.name: each for each in parse(action.text.encode(), action.name).inputs}
        kinds = ("string", "integer", "number", "boolean", "array", "array", "object")
        self.assertEqual([(each.name, each.type) for each in inputs.values()], [*zip(body, kinds, strict=True)])
        schema = json.loads(compact(inputs["in"].schema))
        self.assertEqual((schema["required"], schema["additionalProperties"]), ([*inside], False))
        sent = request(*words, **body)
        self.assertEqual((sent.method, sent.url, json.loads(sent.body or b"")), ("POST", URL, body))
        self.assertEqual(dict(sent.headers)["Content-Type"], "application/json")

    def test_whole_body(self) -> None:
        """An array is one input, and an empty object is sent as it is."""
        rows = [{"id": 1, "names": ["a", "b"]}]
        sent = request(URL, *BEARER, "--json", json.dumps(rows), body=rows)
        self.assertEqual(json.loads(sent.body or b""), rows)
        self.assertEqual(request(URL, *BEARER, "-d", "{}").body, b"{}")
        sent = request(URL, *BEARER, "-d", "")
        self.assertEqual((sent.method, sent.body), ("POST", None))

    def test_url_encoded(self) -> None:
        """C{--data-urlencode} is a field of a form, and with C{-G} data is a query."""
        sent = request(URL, *BEARER, "--data-urlencode", "q=a b&c", "-d", "d=1", q="x&y", d="2")
        self.assertEqual((sent.method, sent.body), ("POST", b"q=x%26y&d=2"))
        sent = request(f"{URL}?a=1#b", *BEARER, "-G", "--data-urlencode", "q=a b", "-d", "d=1", a="1", q="x", d="2")
        self.assertEqual((sent.method, sent.url, sent.body), ("GET", f"{URL}?a=1&q=x&d=2", None))

    def test_shell(self) -> None:
        """What only a shell understands is named as what it is; a prompt and a pipe are read past."""
        for text, told in (
            (f"curl {URL} -d @- <<EOF\n{{}}\nEOF", "a here-document"),
            (f"curl {URL} > out.json", "an output redirection"),
            (f"curl {URL} 2>/dev/null", "an output redirection"),
            (f"curl {URL} < in.json", "an input redirection"),
            (f"curl {URL} && echo done", "another command"),
            (f"curl {URL} ; echo done", "another command"),
            (f"curl -X POST ^\r\n {URL}", "Windows"),
            (f'curl -X POST {URL} -d ^"a^"', "Windows"),
            (f"curl {URL} -H\u00a0'Accept: a'", "U+00A0"),
            (f"curl \u00a0{URL}", "U+00A0"),
        ):
            error = self.assertRaises(NotImported, CurlCommand.read, (text,))
            self.assertIn(told, error.problem, text)
            self.assertTrue(error.advice)
        self.assertEqual(sound(f"$ curl {URL} | jq .").connector, sound(f"curl {URL}").connector)

    def test_form(self) -> None:
        """A form stays one, and so does a query."""
        sent = request(URL, *BEARER, "-d", "to=%2B1&a[b]=2", "--data-raw", "c=3", to="+2", a_b="x y", c="z")
        self.assertEqual(sent.body, b"to=%2B2&a%5Bb%5D=x%20y&c=z")
        sent = request(f"{URL}?q=a&$top=3#part", *BEARER, q="b", top="4")
        self.assertEqual((sent.method, sent.url, sent.body), ("GET", f"{URL}?q=b&%24top=4", None))

    def test_path(self) -> None:
        """Placeholders and words in capitals are inputs of the path, each within its segment; all else stays."""
        base = "https://a.example/v1"
        for path, inputs, sent in (
            ("repos/OWNER/REPO", {"owner": "a", "repo": "../b?c"}, "repos/a/..%2Fb%3Fc"),
            ("a:b/:id/x:c", {"id": "1"}, "a:b/1/x:c"),
            ("repos/{owner+}/x-$REPO", {"owner": "a", "repo": "b"}, "repos/a/x-b"),
            ("${A}/<the id>/{{b}}/{{b}}", {"a": "1", "the_id": "2", "b": "3"}, "1/2/3/3"),
            ("{id}/$ID/123456/a%2Fb", {"id": "1", "id_2": "2"}, "1/2/123456/a%2Fb"),
        ):
            self.assertEqual(request(f"{base}/{path}", *BEARER, **inputs).url, f"{base}/{sent}")

    def test_headers(self) -> None:
        """Headers stay, but for those of the daemon's and empty ones; a key for retries is made."""
        given = ["Accept: application/vnd.x+json", "X-Version: 2022-11-28", "User-Agent: $ME", "Expect:", "X-None:"]
        given += ["Content-Type: application/json; charset=utf-8", "Idempotency-Key: $(uuidgen)", "Content-Length: 2"]
        sent = request(URL, *BEARER, "-d", "{}", *(word for each in given for word in ("-H", each)))
        headers = dict(sent.headers)
        self.assertRegex(headers.pop("Idempotency-Key"), "^[0-9a-f-]{36}$")
        kept = {"Accept": "application/vnd.x+json", "X-Version": "2022-11-28"}
        self.assertEqual(headers, {**kept, "Content-Type": "application/json; charset=utf-8"})

    def test_effects(self) -> None:
        """A GET reads and needs no approval, unless it may hand out a secret or its name says otherwise."""
        for words, needed in (
            ((URL, *BEARER), False),
            ((f"{URL}/tokens", *BEARER), True),
            ((f"{URL}/delete", *BEARER), True),
            (("-X", "delete", URL, *BEARER), True),
            (("-XPUT", URL, *BEARER, "-d", '{"a": 1}'), True),
        ):
            (action,) = sound(*words).actions
            self.assertEqual(parse(action.text.encode(), action.name).approval.gated, needed, words)

    def test_text(self) -> None:
        """The text of a page is read as a shell reads it, with its prompt, broken lines, and what follows a bar."""
        text = f"$ curl -sSL --compressed {URL} \\\n  {shlex.join(BEARER)} \\\r\n -d '{{\n \"a\": 1}}' | jq ."
        self.assertEqual(sound(text).connector, sound(URL, *BEARER, "-d", '{"a": 1}').connector)
        reader = read_api(text.encode())
        self.assertEqual([each.name for each in reader.list_operations()], ["post_api_issues"])

    def test_names(self) -> None:
        """A service is named by its host."""
        for host, name in (
            ("api.github.com", "github"),
            ("a.shop.co.uk", "shop"),
            ("127.0.0.1:8080", "local"),
            ("localhost", "local"),
            ("[::1]:80", "local"),
            ("10.0.0.1", "x-10"),
        ):
            scheme = "http" if name == "local" else "https"
            read = CurlCommand.read(("curl", f"{scheme}://{host}/x", *BEARER))
            self.assertEqual(connector_name(read.title), f"local://me/{name}")
            self.assertEqual(read.describe(NAME, ()).base_url, f"{scheme}://{host.removesuffix(':80')}")


class CredentialTests(SynchronousTestCase):
    """Where the key is, and how it is sent."""

    def test_found(self) -> None:
        """The header or the parameter that carries the key is found, with its format, and is nowhere else."""
        for words, form, real in (
            (BEARER, "Bearer {key}", False),
            (("-H", "Authorization: Bearer"), "Bearer {key}", False),
            (("-H", f"authorization: token {KEY}"), "token {key}", True),
            (("-H", f"Authorization: {KEY}"), "{key}", True),
            (("-H", "Authorization: Odd YOUR_API_KEY"), "Odd {key}", False),
            (("-H", "Authorization: Bearer <YOUR KEY>"), "Bearer {key}", False),
            (("-H", f"Authorization: ApiKey {KEY}=="), "ApiKey {key}", True),
            (("-H", "X-API-Key: xoxb-xxxx"), "{key}", False),
            (("-H", "X-API-Key: API_KEY"), "{key}", False),
            (("-H", "X-API-Key: ABCDEFGHIJK1"), "{key}", True),
            (("-H", "X-API-Key:"), "{key}", False),
            (("-H", "PRIVATE-TOKEN: abc"), "{key}", True),
            (("-H", f"X-Odd: {KEY}"), "{key}", True),
            (("-u", "ada:$PASS"), None, False),
            (("-u", "ada:a b,c"), None, True),
            (("-H", "Authorization: Basic $(base64 x)"), None, False),
            (("-H", f"Authorization: basic {KEY}"), None, True),
        ):
            found = credential(URL, *words)
            self.assertEqual((found.get("format"), found["real"]), (form, real), words)
            self.assertEqual(found["kind"], "api_key" if form else "basic")
            self.assertEqual({name for name, _ in request(URL, *words).headers}, {"Accept"})
        self.assertEqual(credential(f"{URL}?api_key={KEY}&q=1"), {"kind": "api_key", "query": "api_key", "real": True})
        self.assertEqual(credential(f"{URL}?k={{{{API key}}}}"), {"kind": "api_key", "query": "k", "real": False})
        self.assertEqual(request(f"{URL}?api_key={KEY}").url, URL)
        for path, prefix, rest in (
            ("/bot$TOKEN/sendMessage", "/bot{key}", "/sendMessage"),
            ("/v1/<your-api-key>/a/{id}", "/v1/{key}", "/a/1"),
        ):
            url = f"https://a.example{path}"
            found = credential(url)
            self.assertEqual((found["path"], found["real"]), (prefix, False))
            given = {"id": "1"} if "{id}" in path else {}
            self.assertEqual(request(url, **given).url, f"https://a.example{rest}")
        both = sound("https://a.example/invites/$TOKEN/x", *BEARER).connector.text
        self.assertIn('header = "Authorization"', both)
        self.assertIsNone(CurlCommand.read(("curl", "https://a.example/kv/{key}/x")).credential)
        self.assertIsNone(CurlCommand.read(("curl", URL)).credential)


class RefusedTests(SynchronousTestCase):
    """What nothing is made of."""

    def test_told(self) -> None:
        """What is not understood, or no connector file can say, is refused with the reason; no value is repeated."""
        for words, told in (
            (("-F", f"a={KEY}", URL), "-F of the curl command"),
            (("-sk", URL), "-k of the curl command"),
            (("--data-urlencode", KEY, URL), "neither a JSON"),
            (("--data-urlencode", f"a@{KEY}", URL), "sends a file"),
            ((URL, "-d", '{"id": 9007199254740993}'), "beyond 2^53-1"),
            ((URL, "-d", '{"a": 1, "b": {"c": 1, "c": 2}}'), "a key twice"),
            (("https://a.example/{id}/bot$TOKEN/x",), "before its key"),
            (("https://a.example/hooks/$SECRET",), "ends with its key"),
            ((f"--{KEY}", URL), "An option of"),
            (("-d",), "lacks its value"),
            (("--head", "-H", f"A: {KEY}", URL), "2 URLs"),
            (("-d", f"@{KEY}", URL), "sends a file"),
            (("-H", f"@{KEY}", URL), "-H 'Name: value'"),
            ((URL, URL), "2 URLs"),
            (BEARER, "has no URL"),
            ((f"http://{KEY}.example/x",), "must begin with https://"),
            ((f"https://{KEY}@a.example/x",), "no user name and no password"),
            (("https://your-domain.example/x",), "host of the URL is a placeholder"),
            (("https://$A/x",), "host of the URL is a placeholder"),
            (("-X", KEY, URL), "The method"),
            (("-H", f"Cookie: {KEY}", URL), "has cookie"),
            (("-H", "Host: b.example", URL), "has host"),
            (("-H", "Range: bytes=0-4", URL), "a part of an answer"),
            (("-H", "X-HTTP-Method-Override: DELETE", URL), "has x-http-method-override"),
            ((f"{URL}?_method=DELETE",), "has _method"),
            ((f"{URL}?a=1&a=2",), "twice"),
            (("-u", f"ada:{KEY}", *BEARER, URL), "twice"),
            (("-H", f"{KEY}: a", URL), "without a proper name"),
            ((f"{URL}?{KEY}",), "without a proper name"),
            ((f"{URL}?{'&'.join(f'a{at}=' for at in range(65))}",), "or too many"),
            ((f"{URL}?a=1\u202e&\u202eb=1",), "without a proper name"),
            (("-d", f"a=1&{KEY}", URL), "without a proper name"),
            (("-u", f"{KEY}:", URL), "empty password"),
            (("-H", f"A: {KEY}", "-H", f"B: {KEY}", URL), "several keys"),
            (("-H", f"Authorization: Bearer {KEY} b", URL), "cannot be told"),
            (("-H", f"Authorization: {KEY} $KEY", URL), "cannot be told"),
            (("-H", f"Authorization: Token token={KEY}", URL), "cannot be told"),
            (("-H", f"Authorization: Token a$KEY{KEY}", URL), "cannot be told"),
            (("-H", "X: ${in.a} b", *BEARER, URL), "has a variable"),
            (("-H", "X: a\u202eb", *BEARER, URL), "cannot be seen"),
            (("-H", "X: a\udcffb", *BEARER, URL), "cannot be seen"),
            (("-H", f"X: a\n{KEY[:8]}", *BEARER, URL), "cannot be seen"),
            ((f"{URL}/{KEY}",), "a key, or a long id"),
            ((f"{URL}/{''.join(f'%{ord(each):02X}' for each in KEY)}/x",), "a key, or a long id"),
            ((f"https://a.example/<{KEY}>/x",), "a key, or a long id"),
            ((f"https://a.example/{{{KEY}}}/x",), "a key, or a long id"),
            ((URL, "-d", json.dumps({"a": {KEY: 1}})), "name may be a key"),
            (("-H", f"Accept: {KEY}", *BEARER, URL), "a variable or a key"),
            (("-H", f"Content-Type: application/json; {KEY}", *BEARER, URL), "a variable or a key"),
            ((f"{URL}//x",), "empty part"),
            ((f"{URL}/%2e%2e/x",), "or dots"),
            ((URL, "-d", '{"a": {"b": null}}'), "null as b"),
            ((URL, "-d", '{"a": $B}'), "not JSON"),
            ((URL, "-d", "[" * 9000), "not JSON"),
            ((URL, "-d", KEY), "nor a form"),
            ((URL, "-H", "Content-Type: text/xml", "-d", "a=1"), "nor a form"),
            (("x" * 20_000, URL), "more than 16384 characters"),
        ):
            error = self.assertRaises(NotImported, CurlCommand.read, ("curl", *words))
            self.assertIn(told, error.problem)
            self.assertNotIn(SECRET, f"{error.problem} {error.advice}")
        self.assertIn("quote", self.assertRaises(NotImported, CurlCommand.read, (f"curl '{KEY}",)).problem)
        self.assertIn("begin with curl", self.assertRaises(NotImported, CurlCommand.read, (f"wget {KEY}",)).problem)

    def test_inexpressible(self) -> None:
        """What the writer of files refuses is refused with its reason."""
        for words, told in (
            ((URL, *BEARER, "-X", "GET", "-d", "a=1"), "a GET has not"),
            ((f"{URL}/{{a,b}}", *BEARER), "its path"),
            ((f"{URL}/[1-3]", *BEARER), "its path"),
            ((URL, *BEARER, "-d", '{"a\u202e": 1}'), "cannot be seen"),
            ((URL, *BEARER, "-d", json.dumps(dict.fromkeys(map(str, range(100)), 1))), "at most 64 inputs"),
        ):
            (why,) = written(*words).refused.values()
            self.assertIn(told, why)


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
        ("-u", KEY),
        ("-u", f"{KEY}:"),
        ("-H", f"{KEY}: a"),
        ("-d", f"a=1&{KEY}"),
        (f"https://a.example/x?{KEY}",),
        ("-u", f"ada:{KEY}"),
        ("-d", json.dumps({"token": KEY, "a": [KEY], "b": {"c": KEY}})),
        ("-d", f"token={KEY}&a={KEY}"),
        (f"https://a.example/x?key={KEY}&q={KEY}",),
        (f"https://a.example/x/{KEY}",),
        (*BEARER, f"https://a.example/{KEY}/{KEY[::-1]}/x-{KEY}/y"),
        (f"https://a.example/$ID/{KEY}/12345", *BEARER),
        (f"https://{KEY}@a.example/x",),
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
