"""Of the recognition of tools' requests: what is read, written or refused, and as which operation it is shown."""

from __future__ import annotations

import base64

from attrs import evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import canonical
from aileron.features.own_tools._bodies import LongBody
from aileron.features.own_tools._recognition import Recognised, recognise
from aileron.features.own_tools.values import ToolRequest
from tests.extent import examples

from .requests import JSON_TYPE, ask_github, ask_tracker, github, see, see_github, see_tracker, tracker

_FORM = ("Content-Type", "application/x-www-form-urlencoded")
_MERGE = {
    "query": "mutation PullRequestMerge($input:MergePullRequestInput!){mergePullRequest(input:$input){__typename}}"
}
_VIEWER = {"query": "query UserCurrent{viewer{login}}"}
_LABEL = {"name": "bug", "color": "d73a4a", "description": ""}
_RELEASE = {"tag_name": "v1", "draft": True, "prerelease": False, "name": "One"}

GH = (
    # issue create, pr create
    ("POST", "/graphql", {"query": "query RepositoryInfo{repository{id}}", "variables": {"owner": "o"}}, "read", ""),
    ("POST", "/graphql", {"query": "mutation IssueCreate{createIssue{issue{url}}}"}, "write", "createIssue"),
    ("POST", "/graphql", {"query": "mutation PullRequestCreate{createPullRequest{x}}"}, "write", "createPullRequest"),
    # pr merge -d
    ("POST", "/graphql", {"query": 'query F{PullRequest:__type(name:"PullRequest"){fields{name}}}'}, "read", "__type"),
    ("POST", "/graphql", _MERGE, "write", "mergePullRequest"),
    ("DELETE", "/repos/o/r/git/refs/heads%2Ffeature", b"", "write", ""),
    # label create, release create, workflow run, gist create
    ("POST", "/repos/o/r/labels", _LABEL, "write", ""),
    ("HEAD", "/repos/o/r/releases/tags/v1", b"", "read", ""),
    ("POST", "/repos/o/r/releases", _RELEASE, "write", "create_release"),
    ("PATCH", "/repos/o/r/releases/7", {"draft": False}, "write", ""),
    ("POST", "/repos/o/r/actions/workflows/7/dispatches", {"ref": "main", "inputs": {}}, "write", "dispatch_workflow"),
    ("POST", "/gists", {"public": False, "files": {"a": {"content": "b"}}}, "write", ""),
    # api
    ("GET", "/repos/o/r/pulls?state=open&per_page=100", b"", "read", ""),
    ("GET", "/user", b"", "read", "get_authenticated_user"),
    ("POST", "/repos/o/r/issues", {"title": "Crash", "body": "Text"}, "write", "create_issue"),
    ("PATCH", "/repos/o/r/issues/4", {"state": "closed"}, "write", "close_issue"),
    ("POST", "/markdown", {"text": "*a*"}, "read", ""),
)
"""Requests of gh: method, target, body, effect, and the operation or the first field of GraphQL if it is known."""


class GithubTests(SynchronousTestCase):
    """Requests of gh 2.23 and curl."""

    def test_commands(self) -> None:
        """Each request of gh's commands is recognised."""
        for method, target, body, effect, known in GH:
            found = see_github(method, target, body)
            self.assertEqual((found.effect, found.problem), (effect, ""), target)
            if known:
                self.assertIn(known, (found.operation, *found.fields), target)
            else:
                self.assertEqual(found.operation, "", target)

    def test_inputs(self) -> None:
        """An issue is shown with its inputs, though the mark that Aileron would add is missing."""
        found = see_github("POST", "/repos/o/r/issues", {"title": "Crash", "body": "Text", "labels": ["bug"]})
        inputs = {"owner": "o", "repo": "r", "title": "Crash", "body": "Text", "labels": ["bug"]}
        self.assertEqual((found.operation, found.inputs), ("create_issue", inputs))
        shown = {"protocol": "rest", "operation": "create_issue", "inputs": inputs}
        self.assertEqual(found.to_json(), shown)

    def test_curl(self) -> None:
        """The JSON that curl sends as a form, as it does by default, is a raw request."""
        found = see_github("POST", "/repos/o/r/issues", b'{"title": "a"}', (_FORM,))
        self.assertEqual((found.effect, found.operation), ("write", ""))

    def test_registration_token(self) -> None:
        """A request whose answer holds a credential is asked for, and says so."""
        found = see_github("POST", "/repos/o/r/actions/runners/registration-token")
        self.assertEqual((found.effect, found.returns_credential), ("write", True))
        self.assertEqual(found.to_json(), {"protocol": "rest", "returns_credential": True})

    def test_reads_of_credentials(self) -> None:
        """A C{GET} by which GitHub hands out a token, or shows secrets that it found, is asked for."""
        for target in (
            "/copilot_internal/v2/token",
            "/repos/o/r/secret-scanning/alerts?state=open",
            "/repos/o/r/secret-scanning/alerts/7",
            "/repositories/7/secret-scanning/alerts",
            "/orgs/o/secret-scanning/alerts",
        ):
            found = see_github("GET", target)
            self.assertEqual((found.effect, found.returns_credential), ("write", True), target)
        self.assertEqual(see_github("GET", "/repos/o/r/secret-scanning/alerts/7/locations").effect, "read")


class OperationTests(SynchronousTestCase):
    """Requests that are those of declared operations."""

    def test_nested(self) -> None:
        """Inputs are read back from members at any depth, and literal values must be the same."""
        body = {"title": "a", "kind": "issue", "meta": {"by": 7, "tags": ["x", "y"]}}
        found = see_tracker("POST", "/v2/projects/p%2Fq/issues", body)
        self.assertEqual(found.operation, "create")
        self.assertEqual(found.inputs, {"project": "p/q", "title": "a", "by": 7, "tag": "y"})

    def test_different(self) -> None:
        """A body that differs in a literal, a type, a length or a missing literal is a raw request."""
        meta = {"by": 7, "tags": ["x", "y"]}
        for body in (
            {"title": "a", "kind": "bug", "meta": meta},
            {"title": "a", "kind": ["issue"], "meta": meta},
            {"title": "a", "meta": meta},
            {"title": "a", "kind": "issue"},
            {"title": "a", "kind": "issue", "meta": []},
            {"title": "a", "kind": "issue", "meta": {"tags": ["x", "y", "z"]}},
            {"title": "a", "kind": "issue", "meta": {"tags": "xy"}},
            ["title"],
            None,
        ):
            found = see_tracker("POST", "/v2/projects/p/issues", body)
            self.assertEqual((found.effect, found.operation), ("write", ""), body)

    def test_further_members(self) -> None:
        """A body with a member that the operation does not declare is shown as it is, at any depth."""
        meta = {"by": 7, "tags": ["x", "y"]}
        for body in (
            {"title": "a", "kind": "issue", "meta": meta, "assignee": "me"},
            {"title": "a", "kind": "issue", "meta": {**meta, "admin": True}},
        ):
            self.assertEqual(see_tracker("POST", "/v2/projects/p/issues", body).operation, "")

    def test_headers(self) -> None:
        """A request with a header that may change what it does is shown as it is."""
        body = {"name": "a"}
        usual = (("Accept", "*/*"), ("X-Request-Id", "7"), ("Idempotency-Key", "k"), ("sec-fetch-mode", "cors"))
        self.assertEqual(see_tracker("PUT", "/v2/releases/1", body, *usual).operation, "release")
        for name in ("Sudo", "Stripe-Account", "If-Match", "X-Any"):
            found = see_tracker("PUT", "/v2/releases/1", body, *usual, (name, "1"))
            self.assertEqual((found.effect, found.operation), ("write", ""), name)
        self.assertEqual(see_tracker("POST", "/v2/projects/p/find", {"text": "x"}, ("Sudo", "1")).effect, "write")

    def test_not_plain(self) -> None:
        """JSON with a repeated member, of another type or charset, or encoded, is compared with no operation."""
        body = b'{"name": "a"}'
        self.assertEqual(
            see_tracker("PUT", "/v2/releases/1", body, ("content-type", "application/json")).operation, "release"
        )
        for content, headers in (
            (b'{"name": "a", "name": "b"}', (("Content-Type", "application/json"),)),
            (body, (("Content-Type", "application/json; charset=utf-16"),)),
            (body, (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))),
            (body, (("Content-Type", "text/plain"),)),
            (body, ()),
        ):
            found = see_tracker("PUT", "/v2/releases/1", content, *headers)
            self.assertEqual((found.effect, found.operation), ("write", ""), headers)

    def test_form(self) -> None:
        """Forms and queries are compared by parameters; an input in two places must have one value."""
        found = see_tracker("POST", "/v2/projects/p/labels?mode=add&notify=no", b"name=a+b%21&project=p", _FORM)
        self.assertEqual((found.operation, found.inputs["name"], found.inputs["notify"]), ("label", "a b!", "no"))
        for target, body in (
            ("?mode=add", b"name=a&project=other"),
            ("?mode=add&mode=add", b"name=a&project=p"),
            ("?mode=drop", b"name=a&project=p"),
            ("", b"name=a&project=p"),
            ("?mode=add", b"name=a&project=p&force=1"),
            ("?mode=add;force=1", b"name=a&project=p"),
            ("?mode=add", b"name=a;project=p"),
        ):
            found = see_tracker("POST", f"/v2/projects/p/labels{target}", body, _FORM)
            self.assertEqual((found.effect, found.operation), ("write", ""), (target, body))

    def test_most_literal(self) -> None:
        """Of two operations, the one with more literal parts is meant. If none has more, neither is."""
        self.assertEqual(see_tracker("PUT", "/v2/releases/latest", {"name": "a"}).operation, "latest")
        self.assertEqual(see_tracker("PUT", "/v2/releases/7", {"name": "a"}).operation, "release")
        self.assertEqual(see_tracker("PUT", "/v2/aliases/7", {"name": "a"}).operation, "")

    def test_encoded_literal(self) -> None:
        """An encoded slash is part of a segment, so it leads to no operation with more segments."""
        self.assertEqual(see_tracker("PUT", "/v2/%72eleases/7", {"name": "a"}).operation, "release")
        self.assertEqual(see_tracker("PUT", "/v2%2Freleases/7", {"name": "a"}).operation, "")


class EffectTests(SynchronousTestCase):
    """Reads, writes, and what is refused whoever asks."""

    def test_reads(self) -> None:
        """C{GET} reads, and other methods where that is declared: as a route, or as an operation that reads."""
        reads: tuple[tuple[str, str, object], ...] = (
            ("GET", "/v2/anything?a=1", b""),
            ("HEAD", "/v2/anything", b""),
            ("POST", "/v2/search", {"text": "x"}),
            ("POST", "/v2/projects/p/find", {"text": "x"}),
        )
        for method, target, body in reads:
            self.assertEqual(see_tracker(method, target, body).effect, "read", target)
        writes: tuple[tuple[str, str, object], ...] = (
            ("POST", "/v2/search/", {"text": "x"}),
            ("POST", "/v2%2Fsearch", {"text": "x"}),
            ("POST", "/v2/SEARCH", {"text": "x"}),
            ("POST", "/v2/projects/p/find", {"text": "x", "delete": True}),
            ("PUT", "/v2/search", {"text": "x"}),
        )
        for method, target, body in writes:
            self.assertEqual(see_tracker(method, target, body).effect, "write", target)

    def test_writing_get(self) -> None:
        """A declared write is a write by C{GET} and C{HEAD} too, whatever parameters it has."""
        for method, query in (("GET", ""), ("HEAD", ""), ("GET", "?surprise=1")):
            self.assertEqual(see_tracker(method, f"/v2/projects/p/archive.zip{query}").effect, "write", query)

    def test_get_asks(self) -> None:
        """If the service writes by C{GET} too, only what is declared reads, exactly as it is spelled."""
        for method, path, effect in (
            ("GET", "/api/conversations.list", "read"),
            ("HEAD", "/api/users.info", "read"),
            ("POST", "/api/users.info", "read"),
            ("GET", "/api/chat.postMessage?channel=C1&text=Hi", "write"),
            ("GET", "/api/Users.info", "write"),
            ("GET", "/api/users.info/", "write"),
            ("GET", "/api/rtm.connect", "write"),
        ):
            found = see("slack", method, path)
            self.assertEqual((found.effect, found.problem), (effect, ""), path)
        self.assertTrue(see("slack", "GET", "/api/rtm.connect").returns_credential)

    def test_parts(self) -> None:
        """A multipart body is no part of a declared read."""
        parts = ("Content-Type", 'multipart/form-data; boundary="b"')
        self.assertEqual(see_tracker("POST", "/v2/search", b"--b--", parts).effect, "write")
        self.assertEqual(see_tracker("POST", "/v2/search", b"a=b", _FORM).effect, "read")

    def test_override_in_read(self) -> None:
        """A declared read with a method override in its body is a write."""
        self.assertEqual(see_tracker("POST", "/v2/search", {"_method": "DELETE"}).effect, "write")

    def test_credentials(self) -> None:
        """A C{GET} that returns a credential is a write, also if its path is only similar."""
        for target in (
            "/v2/projects/p/token",
            "/V2/Projects/p/TOKEN",
            "/v2/projects/p/token/",
            "/v2/projects/p/token%2F",
            "/v2%2Fprojects/p%2Ftoken",
            "/v2/projects/p%2Fq/token",
            "/v2/projects/p%2Fq/Token.json",
            "/v2/projects/p/token%2Exml/",
        ):
            for method in ("GET", "HEAD"):
                found = see_tracker(method, target)
                self.assertEqual((found.effect, found.returns_credential), ("write", True), target)

    def test_body_of_get(self) -> None:
        """A C{GET} with a body is refused."""
        self.assertIn("must not have a body", see_tracker("GET", "/v2/a", b"x").problem)

    def test_batch(self) -> None:
        """Batches are refused: by their path, or by their type."""
        mixed = ("Content-Type", 'multipart/mixed; boundary="b"')
        for found in (
            see_tracker("POST", "/v2/many", {}),
            see_tracker("POST", "/v2/MANY/", {}),
            see_tracker("POST", "/v2/$batch", {}),
            see_tracker("POST", "/v2/a", b"x", mixed),
        ):
            self.assertIn("Batches", found.problem)

    def test_raw_refused(self) -> None:
        """If the connector refuses raw writes, only declared operations are written."""
        request = ask_tracker("DELETE", "/v2/projects/p")
        self.assertEqual(recognise(request, tracker()).effect, "write")
        self.assertIn("none of the operations", recognise(request, tracker("refuse")).problem)
        mutation = ask_tracker("POST", "/graphql", {"query": "mutation{a}"})
        self.assertIn("none of the operations", recognise(mutation, tracker("refuse")).problem)
        create = ask_tracker("PUT", "/v2/releases/1", {"name": "a"})
        self.assertEqual(recognise(create, tracker("refuse")).operation, "release")

    def test_host_and_method(self) -> None:
        """Another host and an unusual method are refused."""
        self.assertIn("not a host", recognise(ask_tracker("GET", "/v2", host="other.example"), tracker()).problem)
        self.assertIn("Only the methods", see_tracker("TRACE", "/v2").problem)

    def test_no_declaration(self) -> None:
        """A connector without the table cannot be asked."""
        with self.assertRaises(ValueError):
            recognise(ask_tracker("GET", "/v2"), evolve(tracker(), own_tools=None))


class PathTests(SynchronousTestCase):
    """Requests that servers could read in two ways."""

    def test_unclear(self) -> None:
        """Such a path is refused."""
        query = "&".join(["a"] * 300)
        for target in (
            *("/v2//a", "/v2/./a", "/v2/../a", "/v2/%2e%2e/a", "/v2/%2E./a", "/v2/x%2F..%2Fy", "//a"),
            *("/v2/a;b=1/c", "/v2/..%3Bx/c", "/v2/%252e", "/v2/%2541", "/v2/a%00", "/v2/a%0a", "/v2/a%5Cb", "/v2/a\\b"),
            *("/v2/%ff", "/v2/%c0%ae", "/v2/%zz", "/v2/%", "/v2/a b", "/v2/ä", "/v2/a#b", "/v2/a?b#c", "/v2/a?b=%zz"),
            *("/v2/" + "a" * 9000, f"/v2/a?{query}", "v2", ""),
        ):
            found = see_tracker("GET", target)
            self.assertEqual(found.effect, "", target[:50])
            self.assertIn("URL", found.problem)

    def test_clear(self) -> None:
        """Dots inside a segment, an encoded slash and a percent sign are as good as any text."""
        for target in (
            "/v2/main...feature",
            "/v2/.github",
            "/v2/a%2Fb",
            "/v2/100%25",
            "/v2/%C3%BC",
            "/",
            "/v2?a[]=1&b=x%20y",
        ):
            self.assertEqual(see_tracker("GET", target).effect, "read", target)

    def test_decoded(self) -> None:
        """An encoded path is shown decoded too."""
        found = see_github("DELETE", "/repos/o/r/git/refs/heads%2Ff%C3%BCr?a=1")
        self.assertEqual(found.to_json(), {"protocol": "rest", "decoded_path": "/repos/o/r/git/refs/heads/für"})
        self.assertEqual(see_github("DELETE", "/repos/o/r?a=1").to_json(), {"protocol": "rest"})

    def test_outside(self) -> None:
        """If the connector declares paths, requests under others are refused, however they are spelled."""
        for target in ("/", "/me/web.git/info/refs", "/jwt/auth", "/API/v4/user", "/api%2Fv4/user", "/api/v4x/user"):
            self.assertIn("Only requests under /api/graphql and /api/v4", see("gitlab", "GET", target).problem, target)

    def test_override(self) -> None:
        """Headers and parameters that change the method or the path are refused."""
        for found in (
            see_tracker("GET", "/v2", b"", ("X-HTTP-Method-Override", "DELETE")),
            see_tracker("GET", "/v2", b"", ("X_Http_Method_Override", "DELETE")),
            see_tracker("GET", "/v2", b"", ("X-Original-URL", "/admin")),
            see_tracker("GET", "/v2?_method=DELETE"),
            see_tracker("POST", "/v2/a", b"_method=DELETE", _FORM),
            see_tracker("POST", "/v2/a", b"_method=DELETE"),
            see_tracker("POST", "/v2/a", b"_method=DELETE", ("Content-Type", "")),
            see_tracker("POST", "/v2/a", b"_method=DELETE", ("Content-Type", f"{_FORM[1]}, x")),
            see_tracker(
                "POST", "/v2/a", b'x name="_method" DELETE', ("Content-Type", "multipart/form-data; boundary=b")
            ),
            see_tracker("POST", "/v2/a", b"x", ("Content-Type", "text/plain"), ("Content-Type", "application/json")),
        ):
            self.assertEqual(found.effect, "")
            self.assertTrue(found.problem)


class CredentialTests(SynchronousTestCase):
    """Credentials that tools bring with them."""

    def test_placeholder(self) -> None:
        """The placeholder passes in each of its forms."""
        basic = [f"{user}:aileron-placeholder" for user in ("", "x-access-token", "me")] + ["aileron-placeholder:"]
        values = ["aileron-placeholder", "token aileron-placeholder", "Bearer aileron-placeholder"]
        for value in [*values, *(f"Basic {base64.b64encode(each.encode()).decode()}" for each in basic)]:
            self.assertEqual(see_github("GET", "/user", b"", (("Authorization", value),)).effect, "read", value)
        self.assertEqual(see_github("GET", "/user", b"", ()).effect, "read")

    def test_refused(self) -> None:
        """Any other credential is refused, wherever it is, and its value is not repeated."""
        secret = "ghp_0123456789"
        basic = base64.b64encode(f"me:{secret}".encode()).decode()
        both = base64.b64encode(f"aileron-placeholder:{secret}".encode()).decode()
        headers: tuple[tuple[tuple[str, str], ...], ...] = (
            (("Authorization", f"token {secret}"),),
            (("Authorization", f"Basic {basic}"),),
            (("Authorization", f"Basic {both}"),),
            (("Authorization", "Basic !"),),
            (("Authorization", ""),),
            (("Authorization", f"token aileron-placeholder {secret}"),),
            (("Authorization", "token aileron-placeholder"), ("authorization", f"token {secret}")),
            (("Cookie", f"user_session={secret}"),),
            (("Proxy-Authorization", secret),),
            (("X_Api_Key", secret),),
            (("Private-Token", "aileron-placeholder"),),
        )
        for each in headers:
            found = see_github("GET", "/user", b"", each)
            self.assertEqual((found.effect, found.is_foreign), ("", True), each)
            self.assertNotIn(secret, found.problem)
        for query in ("access_token", "ACCESS_TOKEN", "private-token", "a=1&token", "a=1;client_secret", "%61pi_key"):
            found = see_github("GET", f"/user?{query}={secret}")
            self.assertEqual((found.effect, found.is_foreign), ("", True), query)
            self.assertNotIn(secret, found.problem)
            self.assertIn("GH_TOKEN", found.problem)
        for form in ("token", "a=1&client-secret", "a=1; Access_Token", "%70rivate_token"):
            found = see_tracker("POST", "/v2/a", f"{form}={secret}".encode(), _FORM)
            self.assertEqual((found.effect, found.is_foreign), ("", True), form)
            self.assertNotIn(secret, found.problem)
        for form in ("a=token", "tokens=1", "a[token]=1", "my_token=1"):
            self.assertEqual(see_tracker("POST", "/v2/a", form.encode(), _FORM).effect, "write", form)


class LongTests(SynchronousTestCase):
    """Requests whose body is too long for memory."""

    def see(self, method: str, target: str, *headers: tuple[str, str], overrides: bool = False) -> Recognised:
        """Return what a request with a long body is recognised as."""
        long = LongBody("sha256:" + "0" * 64, 2**21, ("bytes", ""), overrides)
        return recognise(evolve(ask_tracker(method, target, b"", *headers), long=long), tracker())

    def test_write(self) -> None:
        """It is shown raw, as whatever operation it might be."""
        found = self.see("PUT", "/v2/releases/latest", JSON_TYPE)
        self.assertEqual(("write", "", ""), (found.effect, found.operation, found.problem))

    def test_refused(self) -> None:
        """It reads nothing and is no GraphQL: both would have to be read as a whole."""
        about = github()
        for method, target in (("GET", "/user"), ("POST", "/graphql"), ("POST", "/markdown")):
            long = LongBody("sha256:" + "0" * 64, 2**21, ("bytes", ""))
            found = recognise(evolve(ask_github(method, target), long=long), about)
            self.assertIn("too long", found.problem, target)

    def test_override(self) -> None:
        """A part that could change the method is refused."""
        found = self.see("POST", "/v2/files", ("Content-Type", "multipart/form-data; boundary=b"), overrides=True)
        self.assertIn("method", found.problem)


_TARGETS = st.lists(
    st.sampled_from(
        [
            "/",
            "repos",
            "o",
            "r",
            "issues",
            "%2F",
            "%2e",
            "..",
            ".",
            ";",
            "?",
            "&",
            "=",
            "%",
            "%25",
            "graphql",
            "1",
            "ü",
            "\\",
        ]
    ),
    max_size=12,
).map(lambda parts: "/" + "".join(parts))
_HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["Content-Type", "Authorization", "Content-Encoding", "Cookie", "X-Method", "Accept"]),
        st.sampled_from(["application/json", "token aileron-placeholder", "gzip", "a=b", "multipart/form-data", ""]),
    ),
    max_size=4,
).map(tuple)
_BODIES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"{}", b'{"query":"{a}"}', b"[" * 5000, b'{"query":"' + b"{a" * 3000 + b'"}', b"a=b&_method=PUT"]),
)


class HostileTests(SynchronousTestCase):
    """Requests made to be read wrongly."""

    @given(st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "BREW"]), _TARGETS, _HEADERS, _BODIES)
    @settings(max_examples=examples(300), deadline=None)
    @example("POST", "/graphql", (("Content-Type", "application/json"),), b'{"query":"' + b"{a" * 4000 + b'"}')
    def test_any(self, method: str, target: str, headers: tuple[tuple[str, str], ...], body: bytes) -> None:
        """Anything is recognised as a read, a write or a refusal with a reason; only declared requests are reads."""
        found = recognise(ask_github(method, target, body, headers), github())
        self.assertIn(found.effect, ("read", "write", ""))
        self.assertEqual(found.effect == "", bool(found.problem))
        canonical(found.to_json())
        if found.effect == "read" and found.protocol == "rest":
            self.assertIn(method, ("GET", "HEAD"))
        if found.effect:
            self.assertFalse({"cookie", "x-method"} & {name.lower() for name, _ in headers})

    def test_long(self) -> None:
        """A megabyte of anything is judged, and only once."""
        for body in (
            b"[" * 2**20,
            b'{"a":' * 2**17,
            b"a=" * 2**19,
            b'{"title": "' + b"a" * 2**20 + b'"}',
            b"\xff" * 2**20,
        ):
            for kind in ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a"):
                request = ToolRequest(
                    "ses_1", 1, "api.github.com", "POST", "/repos/o/r/issues", (("Content-Type", kind),), body
                )
                self.assertIsInstance(recognise(request, github()), Recognised)
