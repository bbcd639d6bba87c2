"""AWS's signatures, held against botocore's and against those that AWS publishes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, ClassVar
from urllib.parse import quote

from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import digest_of_bytes
from aileron.credentials import KINDS, UNSIGNED_CHUNKS
from aileron.model.connectors import Request, StoredBody
from aileron.model.errors import BindingFailed
from tests.credentials.kind import NOW, REQUEST, Held, KindCase, KindContract, scope_of

# Its package has no types.
auth: Any = import_module("botocore.auth")
AWSRequest: Any = import_module("botocore.awsrequest").AWSRequest
Credentials: Any = import_module("botocore.credentials").Credentials

ID, SECRET, TOKEN = "AKIDEXAMPLE123456", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "canary/session+token=="


def document(**more: Any) -> bytes:
    """What is kept of a key."""
    whole = {"access_key_id": ID, "secret_access_key": SECRET, **more}
    return json.dumps({name: value for name, value in whole.items() if value is not None}).encode()


def signed(held: Held, request: Request) -> dict[str, str]:
    """The headers that are added to a request."""
    outcome: list[Any] = []
    Deferred.fromCoroutine(KINDS["aws_sigv4"].authorize(held.use(), request)).addBoth(outcome.append)
    return dict(outcome[0].headers)


def by_botocore(case: SynchronousTestCase, request: Request, service: str, token: str | None) -> str:
    """The header that botocore makes for the same."""
    kind = auth.S3SigV4Auth if service == "s3" else auth.SigV4Auth
    asked = AWSRequest(request.method, request.url, data=request.body or b"")
    for name, value in request.headers:
        asked.headers[name] = value
    digest = signed(Held(document(), scope_of(KINDS["aws_sigv4"], region="r", service="s")), request)
    asked.headers["X-Amz-Content-SHA256"] = digest["X-Amz-Content-Sha256"]
    patch = case.patch(auth, "get_current_datetime", lambda: NOW)
    try:
        kind(Credentials(ID, SECRET, token), service, "eu-west-1").add_auth(asked)
    finally:
        patch.restore()
    return str(asked.headers["Authorization"])


class AwsSigV4Tests(KindCase, KindContract):
    """A key of a session."""

    name = "aws_sigv4"
    good = document(session_token=TOKEN)
    settings: ClassVar[dict[str, str]] = {"region": "eu-west-1", "service": "sqs"}
    bad = (
        b"",
        b"canary",
        document(access_key_id="canary"),
        document(secret_access_key=""),
        document(secret_access_key="canary two"),
        document(session_token="canary\n"),
        document(region="canary.example/"),
        document(canary="x"),
        document(access_key_id=None),
    )
    sent_secrets = (SECRET, TOKEN)

    def test_beside(self) -> None:
        """What the signature needs goes in headers that no operation may set; the key itself goes nowhere."""
        sent = dict(self.authorized().headers)
        self.assertEqual((sent["X-Amz-Date"], sent["X-Amz-Security-Token"]), ("20260501T120000Z", TOKEN))
        self.assertEqual({name.lower() for name in sent} - {"authorization"}, self.kind.reserved)
        self.assertNotIn(SECRET, json.dumps(sent))

    def test_not_revealed(self) -> None:
        """A connector written in Python gets no key."""
        self.failureResultOf(Deferred.fromCoroutine(self.kind.reveal(self.held.use())), BindingFailed)

    def test_where(self) -> None:
        """Region and service are the file's, or else the credential's; without them nothing is signed."""
        self.held.scope = scope_of(self.kind)
        self.failureResultOf(self.authorizing(), BindingFailed)
        self.held.kept = document(region="us-east-1", service="s3")
        self.assertIn("/20260501/us-east-1/s3/aws4_request,", dict(self.authorized().headers)["Authorization"])
        self.held.scope = scope_of(self.kind, region="eu-west-1", service="sqs")
        self.assertIn("/20260501/eu-west-1/sqs/aws4_request,", dict(self.authorized().headers)["Authorization"])

    def test_all_of_it(self) -> None:
        """Whatever is changed of a request changes its signature."""
        signatures = {
            dict(self.authorized(each).headers)["Authorization"]
            for each in (
                REQUEST,
                evolve(REQUEST, method="PUT"),
                evolve(REQUEST, url="https://api.example/items?a=2"),
                evolve(REQUEST, url="https://api.example/item?a=1"),
                evolve(REQUEST, url="https://apis.example/items?a=1"),
                evolve(REQUEST, headers=(("Content-Type", "text/plain"),)),
                evolve(REQUEST, body=b"{}"),
            )
        }
        self.assertEqual(len(signatures), 7)

    def test_published(self) -> None:
        """A request of AWS's documentation of S3 has the signature that stands there."""
        self.held.kept = document(
            access_key_id="AKIAIOSFODNN7EXAMPLE", secret_access_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
        )
        self.held.scope = scope_of(self.kind, region="us-east-1", service="s3")
        self.held.now = datetime(2013, 5, 24, tzinfo=UTC)
        bucket = "https://examplebucket.s3.amazonaws.com"
        for url, headers, signature in (
            (
                f"{bucket}/test.txt",
                (("Range", "bytes=0-9"),),
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (f"{bucket}/?lifecycle=", (), "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
            (f"{bucket}/?max-keys=2&prefix=J", (), "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        ):
            request = evolve(REQUEST, method="GET", url=url, headers=headers, body=None)
            self.assertIn(f"Signature={signature}", dict(self.authorized(request).headers)["Authorization"])


class ServicesTests(SynchronousTestCase):
    """A key that signs for several services, each at its hosts."""

    def setUp(self) -> None:
        services = "sqs.eu-west-1.amazonaws.com=eu-west-1/sqs *.s3.eu-west-1.amazonaws.com=eu-west-1/s3"
        self.kind = KINDS["aws_sigv4"]
        self.held = Held(document(region="us-east-1", service="sts"), scope_of(self.kind, services=services))

    def signing(self, request: Request) -> Deferred[Any]:
        """Sign a request."""
        return Deferred.fromCoroutine(self.kind.authorize(self.held.use(), request))

    def test_by_host(self) -> None:
        """The host says the region and the service, whatever the credential says."""
        for host, scope in (
            ("sqs.eu-west-1.amazonaws.com", "eu-west-1/sqs"),
            ("acme.s3.eu-west-1.amazonaws.com", "eu-west-1/s3"),
        ):
            sent = self.successResultOf(self.signing(evolve(REQUEST, url=f"https://{host}/")))
            self.assertIn(f"/20260501/{scope}/aws4_request,", dict(sent.headers)["Authorization"])

    def test_other_host(self) -> None:
        """At another host nothing is signed."""
        for host in ("sns.eu-west-1.amazonaws.com", "s3.eu-west-1.amazonaws.com", "sqs.eu-west-1.amazonaws.com:8443"):
            self.failureResultOf(self.signing(evolve(REQUEST, url=f"https://{host}/")), BindingFailed)

    def test_unsigned_chunks(self) -> None:
        """Content in chunks that are not signed keeps its header; the content is not covered by the signature."""
        url, chunks = "https://acme.s3.eu-west-1.amazonaws.com/a", (("X-Amz-Content-Sha256", UNSIGNED_CHUNKS),)
        one, other = (
            dict(self.successResultOf(self.signing(evolve(REQUEST, url=url, headers=chunks, body=body))).headers)
            for body in (b"a", b"b")
        )
        self.assertEqual(one["Authorization"], other["Authorization"])
        self.assertNotIn("X-Amz-Content-Sha256", one)

    def test_stored(self) -> None:
        """The signature covers content that is stored in a file, by its digest."""
        url, content = "https://acme.s3.eu-west-1.amazonaws.com/a", b"x" * 100
        stored = StoredBody(digest_of_bytes(content), len(content))
        one, other = (
            dict(self.successResultOf(self.signing(evolve(each, url=url))).headers)["Authorization"]
            for each in (evolve(REQUEST, body=content), evolve(REQUEST, body=None, stored=stored))
        )
        self.assertEqual(one, other)

    def test_s3_path(self) -> None:
        """Of a path to S3 all is encoded that S3 encodes, however it was sent."""
        plain, encoded = (
            dict(
                self.successResultOf(
                    self.signing(evolve(REQUEST, url=f"https://acme.s3.eu-west-1.amazonaws.com/{key}"))
                ).headers
            )
            for key in ("a+b=c(d)", "a%2Bb%3Dc%28d%29")
        )
        self.assertEqual(plain["Authorization"], encoded["Authorization"])


_WORD = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda word: word not in {".", ".."}
)
_VALUE = st.text(st.sampled_from("ab 12,;=~%'\"/"), min_size=1, max_size=20).map(str.strip).filter(bool)


class OracleTests(SynchronousTestCase):
    """Whatever a connector can send."""

    @example("GET", ["/"], [], {}, None, "s3", None)
    @given(
        st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
        st.lists(_WORD, max_size=4),
        st.lists(st.tuples(_WORD, st.text(st.characters(exclude_categories=["Cs"]), max_size=8)), max_size=4),
        st.dictionaries(st.sampled_from(["Accept", "Content-Type", "X-Amz-Target", "X-One"]), _VALUE),
        st.none() | st.binary(max_size=50),
        st.sampled_from(["s3", "sqs", "execute-api"]),
        st.sampled_from([None, TOKEN]),
    )
    def test_as_botocore(
        self,
        method: str,
        path: list[str],
        query: list[tuple[str, str]],
        headers: dict[str, str],
        body: bytes | None,
        service: str,
        token: str | None,
    ) -> None:
        """The signature is the one that botocore makes, for S3 and for all that encode the path once more."""
        pairs = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in query)
        url = f"https://api.example:8443/{'/'.join(quote(each, safe='') for each in path)}{'?' if pairs else ''}{pairs}"
        request = evolve(REQUEST, method=method, url=url, headers=tuple(headers.items()), body=body)
        kind = KINDS["aws_sigv4"]
        held = Held(document(session_token=token), scope_of(kind, region="eu-west-1", service=service))
        self.assertEqual(signed(held, request)["Authorization"], by_botocore(self, request, service, token))
