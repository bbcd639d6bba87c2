"""Of requests to AWS: what each does, which are refused, and that what is sent carries a valid signature."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors.kinds.http._connector import build_request
from aileron.credentials import KINDS
from aileron.features.own_tools._aws import AWS_JSON, AWS_QUERY, AWS_S3
from aileron.features.own_tools._bodies import LongBody
from aileron.features.own_tools._forms import form_digest
from aileron.features.own_tools._messages import write_inputs
from aileron.features.own_tools._recognition import Recognised, recognise
from aileron.features.own_tools.values import ToolRequest
from aileron.model.connectors import FORWARD
from aileron.model.own_tools import AwsCalls
from tests.connectors.aws import Signed, check_signature
from tests.connectors.test_builtin import spec
from tests.credentials.kind import Held
from tests.features.own_tools.requests import declared

from .aws import BASE, PLACEHOLDER, REGION, ask, aws, client, see

get_session: Any = import_module("botocore.session").Session
QUEUE = f"https://sqs.{REGION}.amazonaws.com/123456789012/jobs"
TOPIC = f"arn:aws:sns:{REGION}:123456789012:alerts"
ID, SECRET = "AKIDEXAMPLE123456", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
FORM = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
JSON_TYPE = ("Content-Type", "application/x-amz-json-1.0")
SEND = ("X-Amz-Target", "AmazonSQS.SendMessage")


def call(body: bytes, *headers: tuple[str, str], service: str = "sns", **more: Any) -> ToolRequest:
    """Return a request to a service, which is not signed."""
    host = f"{service}.{REGION}.amazonaws.com"
    given = {"host": host, "method": "POST", "target": "/", "headers": headers, "body": body, **more}
    return ToolRequest("ses_1", 1, **given)


def put(content: bytes = b"x", **headers: str) -> ToolRequest:
    """Return a request that writes an object, with headers in place of its own."""
    found = ask(client("s3"), "put_object", Bucket="acme", Key="a.txt", Body=content)
    changed = {name.replace("_", "-").lower(): value for name, value in headers.items()}
    kept = tuple((name, value) for name, value in found.headers if name.lower() not in changed)
    return evolve(found, headers=(*kept, *changed.items()))


class CallTests(SynchronousTestCase):
    """Operations that a form or a header names."""

    def refused(self, request: ToolRequest) -> str:
        """Return why a request is refused."""
        found = see(request)
        self.assertEqual(found.effect, "", request)
        return found.problem

    def test_effects(self) -> None:
        """Declared reads read; everything else is a write, also what AWS adds later."""
        sqs, sns, sts = client("sqs"), client("sns"), client("sts")
        for request, effect, named in (
            (ask(sts, "get_caller_identity"), "read", "STS GetCallerIdentity"),
            (ask(sqs, "list_queues"), "read", "SQS ListQueues"),
            (ask(sqs, "send_message", QueueUrl=QUEUE, MessageBody="x"), "write", "SQS SendMessage"),
            (ask(sqs, "receive_message", QueueUrl=QUEUE), "write", "SQS ReceiveMessage"),
            (ask(sns, "list_topics"), "read", "SNS ListTopics"),
            (ask(sns, "publish", TopicArn=TOPIC, Message="x"), "write", "SNS Publish"),
            (call(b"Action=ListNews&Version=1", FORM), "write", "SNS ListNews"),
        ):
            found = see(request)
            self.assertEqual((found.effect, found.problem), (effect, ""))
            assert found.aws is not None
            self.assertEqual(found.aws.call, f"{named} in {REGION}")

    def test_credentials(self) -> None:
        """An operation that returns a credential is always asked for, and said to return one."""
        for name in ("GetSessionToken", "AssumeRole", "GetFederationToken"):
            found = see(call(f"Action={name}&Version=2011-06-15".encode(), FORM, service="sts"))
            self.assertEqual((found.effect, found.returns_credential), ("write", True), name)

    def test_declared(self) -> None:
        """Each declared operation is one of AWS's; what the models say returns credentials is declared so."""
        tools = declared(aws())
        for name in ("sts", "sqs", "sns"):
            model, calls = get_session().get_service_model(name), tools.aws[name]
            self.assertLessEqual(calls.reads, set(model.operation_names))
            self.assertTrue(all(each.startswith(("Get", "List", "Check", "Decode")) for each in calls.reads), name)
            for each in calls.reads:
                returned = model.operation_model(each).output_shape
                self.assertFalse({"Credentials", "Token"} & set(returned.members), each)
        model = get_session().get_service_model("sts")
        returning = {each for each in model.operation_names if each.startswith(("Assume", "Get"))}
        self.assertLessEqual(returning - tools.aws["sts"].reads, tools.aws["sts"].credentials)

    def test_tree(self) -> None:
        """Parameters are shown as a tree, from a form and from JSON; names that are no tree are shown flat."""
        attributes: dict[str, JSON] = {"kind": {"DataType": "String", "StringValue": "a&b"}}
        sent = ask(client("sns"), "publish", TopicArn=TOPIC, Message="Hi ü", MessageAttributes=attributes)
        shown = see(sent).to_json()["parameters"]
        entry = {"Name": "kind", "Value": {"DataType": "String", "StringValue": "a&b"}}
        self.assertEqual(shown, {"TopicArn": TOPIC, "Message": "Hi ü", "MessageAttributes": {"entry": {"1": entry}}})
        sent = ask(client("sqs"), "send_message", QueueUrl=QUEUE, MessageBody="Hi")
        self.assertEqual(see(sent).to_json()["parameters"], {"QueueUrl": QUEUE, "MessageBody": "Hi"})
        flat = see(call(b"Action=Publish&A=1&A.b=2", FORM)).to_json()["parameters"]
        self.assertEqual(flat, {"A": "1", "A.b": "2"})
        long = see(call(b"Action=Publish&Message=" + b"x" * 70_000, FORM)).to_json()
        self.assertNotIn("parameters", long)

    def test_places(self) -> None:
        """An operation is named in one place: no query, no other method, no other type or encoding of the content."""
        for request in (
            call(b"Action=ListTopics", FORM, target="/?Action=Publish"),
            call(b"Action=ListTopics", FORM, target="/?"),
            call(b"", method="GET", target="/?Action=Publish"),
            call(b"Action=ListTopics", FORM, method="GET"),
            call(b"Action=ListTopics", FORM, method="PUT"),
            call(b"Action=ListTopics"),
            call(b"Action=ListTopics", ("Content-Type", "text/plain")),
            call(b"Action=ListTopics", ("Content-Type", "application/x-www-form-urlencoded, text/plain")),
            call(b"Action=ListTopics", FORM, ("Content-Encoding", "gzip")),
            call(b"Action=ListQueues", FORM, SEND, service="sqs"),
            call(b'{"Action": "ListTopics"}', JSON_TYPE),
            call(b"{}", JSON_TYPE, SEND),
            call(b"{}", JSON_TYPE, ("X-Amz-Target", "AmazonSNS.Publish"), service="sqs"),
            call(b"[]", JSON_TYPE, SEND, service="sqs"),
            call(b'{"a": 1, "a": 2}', JSON_TYPE, SEND, service="sqs"),
            call(b"{}", JSON_TYPE, SEND, service="sqs", target="/123456789012/jobs"),
            call(b"{}", JSON_TYPE, ("X-Amz-Target", "AmazonSQS."), service="sqs"),
        ):
            self.refused(request)

    def test_twice(self) -> None:
        """No parameter is given twice, by whatever spelling, and a form has one meaning."""
        for body in (
            b"Action=ListTopics&Action=Publish",
            b"Action=ListTopics&action=Publish",
            b"Action=ListTopics&%41ction=Publish",
            b"Action=ListTopics;Action=Publish",
            b"Action=ListTopics&Message=a;Action=Publish",
            b"Action=ListTopics&Action",
            b"Action=List%FFTopics",
            b"Action=List\xc3\xbcTopics",
            b"Action=",
            b"Action=ListTopics%00",
            b"Action=ListTopics+",
            b"",
            b"&".join(b"A%d=1" % each for each in range(2001)),
        ):
            self.refused(call(body, FORM))

    def test_repeated_header(self) -> None:
        """A header that AWS reads once is there once, also with underscores."""
        for more in (SEND, ("X_Amz_Target", "AmazonSQS.DeleteQueue"), JSON_TYPE):
            self.refused(call(b"{}", JSON_TYPE, SEND, more, service="sqs"))

    def test_spelled_header(self) -> None:
        """A header with underscores, which AWS does not read, says nothing: the body could be read as a form then."""
        body, listed = b'{"a": "&Action=DeleteQueue&b="}', "AmazonSQS.ListQueues"
        for kind in (JSON_TYPE, ("Content_Type", JSON_TYPE[1])):
            self.refused(call(body, kind, ("X_Amz_Target", listed), service="sqs"))
        self.refused(call(body, ("Content_Type", JSON_TYPE[1]), ("X-Amz-Target", listed), service="sqs"))
        self.refused(call(b"Action=ListTopics", ("Content_Type", FORM[1])))

    def test_queue(self) -> None:
        """A path names the queue that the content names, and only for SQS."""
        path, form = "/123456789012/jobs", b"Action=DeleteQueue"
        for body in (form, form + b"&QueueUrl=https%3A%2F%2Fqueue.amazonaws.com%2F123456789012%2Fjobs"):
            self.assertEqual(see(call(body, FORM, service="sqs", target=path)).effect, "write")
        other = form + b"&QueueUrl=https%3A%2F%2Fqueue.amazonaws.com%2F9%2F123456789012%2Fjobs"
        self.refused(call(other, FORM, service="sqs", target=path))
        self.refused(call(b"Action=Publish", FORM, target=path))


class ScopeTests(SynchronousTestCase):
    """Regions and hosts."""

    def test_mismatch(self) -> None:
        """A request that is signed for another region or service than its host's is refused."""
        own = ask(client("sns"), "list_topics")
        for elsewhere in (
            ask(client("sns", "us-east-1"), "list_topics"),
            evolve(ask(client("sns", "us-east-1"), "list_topics"), host=own.host),
            evolve(ask(client("sqs"), "list_queues"), host=own.host),
        ):
            found = see(elsewhere)
            self.assertEqual(found.effect, "")
        self.assertIn(f"sns in {REGION}. Use this region", see(evolve(own, headers=_elsewhere(own))).problem)

    def test_hosts(self) -> None:
        """The hosts of the bound region are covered, with all buckets; no other region's, and no deeper ones."""
        tools = declared(aws())
        for host in (f"sqs.{REGION}.amazonaws.com", f"{REGION}.queue.amazonaws.com", f"acme.s3.{REGION}.amazonaws.com"):
            self.assertTrue(tools.has_host(host), host)
        for host in (
            "sqs.us-east-1.amazonaws.com",
            "us-east-1.queue.amazonaws.com",
            "acme.s3.us-east-1.amazonaws.com",
            f"a.b.s3.{REGION}.amazonaws.com",
            f".s3.{REGION}.amazonaws.com",
            f"iam.{REGION}.amazonaws.com",
            f"evil-s3.{REGION}.amazonaws.com",
        ):
            self.assertFalse(tools.has_host(host), host)

    def test_variables(self) -> None:
        """Tools get the bound region; the variables of session tokens are removed."""
        found = declared(aws()).variables
        self.assertEqual((found["AWS_REGION"], found["AWS_SESSION_TOKEN"]), (REGION, ""))
        self.assertEqual(declared(aws()).placeholders, {PLACEHOLDER, "aileron-placeholder"})


def _elsewhere(request: ToolRequest) -> tuple[tuple[str, str], ...]:
    return tuple((name, value.replace(f"/{REGION}/", "/us-east-1/")) for name, value in request.headers)


class CredentialTests(SynchronousTestCase):
    """Keys other than the placeholder."""

    def foreign(self, request: ToolRequest) -> None:
        """Check that a request is refused for its credential."""
        found = see(request)
        self.assertEqual((found.effect, found.is_foreign), ("", True), found)
        self.assertNotIn("AKIAOTHER", found.problem)

    def test_foreign(self) -> None:
        """Another key, a token of a session or of S3, or another kind of signature is refused."""
        self.foreign(ask(client("sns", REGION, "AKIAOTHER0000000000"), "list_topics"))
        own = ask(client("sns"), "list_topics")
        signed = next(value for name, value in own.headers if name == "Authorization")
        for name, value in (
            ("X-Amz-Security-Token", "x"),
            ("X-Amz-S3session-Token", "x"),
            ("Authorization", signed),
            ("Cookie", "x"),
        ):
            self.foreign(evolve(own, headers=(*own.headers, (name, value))))
        for value in (
            signed.replace("HMAC", "ECDSA-P256"),
            f"AWS {PLACEHOLDER}:x",
            f"Bearer {PLACEHOLDER}",
            PLACEHOLDER,
            signed.replace(PLACEHOLDER, f"{PLACEHOLDER}/{PLACEHOLDER}"),
            f"{signed}, Credential=AKIAOTHER",
        ):
            self.foreign(evolve(own, headers=(("Authorization", value), FORM)))

    def test_presigned(self) -> None:
        """A presigned URL is refused, and so is a form with a policy, and one with a signature."""
        made = client("s3").generate_presigned_url("get_object", Params={"Bucket": "acme", "Key": "a"})
        url = urlsplit(made)
        self.foreign(ToolRequest("ses_1", 1, url.netloc, "GET", f"{url.path}?{url.query}"))
        for query in ("AWSAccessKeyId=x", "Signature=x", "x-amz-algorithm=x", "X_Amz_Signature=x"):
            self.foreign(ToolRequest("ses_1", 1, url.netloc, "GET", f"/a?{query}"))
        policy = ("Content-Type", "multipart/form-data; boundary=x")
        self.foreign(ToolRequest("ses_1", 1, url.netloc, "POST", "/", (policy,), b"--x--"))
        found = see(call(b"Action=ListTopics&Signature=x", FORM))
        self.assertIn("credential of its own", found.problem)

    def test_unsigned(self) -> None:
        """A request without a signature gets one."""
        self.assertEqual(see(call(b"Action=ListTopics", FORM)).effect, "read")


class RestTests(SynchronousTestCase):
    """S3."""

    def named(self, operation: str, **parameters: JSON | bytes) -> tuple[str, str]:
        """Return the effect and the name of a call, which has no problem."""
        found = see(ask(client("s3"), operation, **parameters))
        assert found.aws is not None, found
        self.assertEqual(found.protocol, AWS_S3)
        return found.effect, found.aws.call

    def test_effects(self) -> None:
        """GET and HEAD read, of buckets, objects and what belongs to them; everything else is a write."""
        acme: dict[str, JSON] = {"Bucket": "acme"}
        self.assertEqual(self.named("list_buckets"), ("read", f"S3 GET / in {REGION}"))
        self.assertEqual(self.named("list_objects_v2", **acme), ("read", f"S3 GET acme in {REGION}"))
        self.assertEqual(self.named("get_object", **acme, Key="a/ü b"), ("read", f"S3 GET acme/a/ü b in {REGION}"))
        self.assertEqual(self.named("head_object", **acme, Key="a")[0], "read")
        self.assertEqual(self.named("get_bucket_policy", **acme)[0], "read")
        self.assertEqual(self.named("put_object", **acme, Key="a", Body=b"x"), ("write", f"S3 PUT acme/a in {REGION}"))
        self.assertEqual(self.named("delete_object", **acme, Key="a")[0], "write")
        self.assertEqual(self.named("create_bucket", Bucket="acme")[0], "write")
        deleted: JSON = {"Objects": [{"Key": "a"}]}
        self.assertEqual(self.named("delete_objects", **acme, Delete=deleted)[0], "write")

    def test_path_style(self) -> None:
        """A bucket in the path is shown like one in the host."""
        other = client("s3", s3=_Frozen({"addressing_style": "path"}))
        found = see(ask(other, "get_object", Bucket="acme", Key="a/b"))
        assert found.aws is not None
        self.assertEqual(dict(found.aws.parameters), {"bucket": "acme", "key": "a/b"})

    def test_session(self) -> None:
        """What creates a session, which is a credential, is asked for, although it is a GET."""
        found = see(ToolRequest("ses_1", 1, f"acme.s3.{REGION}.amazonaws.com", "GET", "/?session"))
        self.assertEqual((found.effect, found.returns_credential), ("write", True))

    def test_twice(self) -> None:
        """What is shown of a call to S3 is what S3 reads: no parameter twice, or named as the bucket or the key."""
        host = f"s3.{REGION}.amazonaws.com"
        for target in (
            "/acme/a?key=harmless",
            "/acme/a?bucket=other",
            "/acme/a?versionId=1&versionId=2",
            "/acme%2Fa/b",
        ):
            self.assertEqual(see(ToolRequest("ses_1", 1, host, "DELETE", target)).effect, "", target)
        found = see(ToolRequest("ses_1", 1, host, "DELETE", "/acme/a%2Fb?versionId=1"))
        assert found.aws is not None
        self.assertEqual(dict(found.aws.parameters), {"bucket": "acme", "key": "a/b", "versionId": "1"})

    def test_content(self) -> None:
        """Content that is signed piece by piece is refused; so are parts of an answer, and a GET with content."""
        for value in (
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
            "x",
        ):
            found = see(put(x_amz_content_sha256=value))
            self.assertIn("signed in a way that is not supported", found.problem)
        for value in ("UNSIGNED-PAYLOAD", "0" * 64):
            self.assertEqual(see(put(x_amz_content_sha256=value)).effect, "write")
        chunks = call(b"Action=ListTopics", FORM, ("X-Amz-Content-Sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"))
        self.assertEqual(see(chunks).effect, "")
        self.assertIn(
            "Parts of an answer", see(ask(client("s3"), "get_object", Bucket="a", Key="b", Range="x")).problem
        )
        self.assertEqual(see(evolve(put(), method="GET")).effect, "")

    def test_long(self) -> None:
        """Long content is accepted for an object, and for no operation that a form names."""
        long = LongBody("sha256:" + "0" * 64, 2**21, ("bytes", ""))
        self.assertEqual(see(evolve(put(b""), body=b"", long=long)).effect, "write")
        self.assertIn("too long", see(evolve(call(b"", FORM), long=long)).problem)

    def test_unclear(self) -> None:
        """Keys that a server could take for others are refused, and parameters that change the method."""
        host = f"acme.s3.{REGION}.amazonaws.com"
        for target in ("/a/../b", "/a//b", "/%2e%2e/b", "/%252e", "/a?_method=DELETE"):
            self.assertEqual(see(ToolRequest("ses_1", 1, host, "GET", target)).effect, "", target)


class _Frozen(dict[str, str]):
    """Settings that can be told apart by their content."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))


class SignedTests(SynchronousTestCase):
    """What AWS gets."""

    def send(self, request: ToolRequest, found: Recognised) -> tuple[Signed, dict[str, str]]:
        """Prepare and sign a recognised request, and return what AWS says to its signature, and its headers."""
        about = spec("aws")
        left_out = declared(aws()).headers | found.left_out
        inputs = {**write_inputs(request, left_out), "recognised": found.to_json()}
        made = build_request(about, FORWARD, inputs, BASE, "key")
        about.check_own(made)
        scope = about.description.scope(BASE)
        assert scope is not None
        kept = json.dumps({"access_key_id": ID, "secret_access_key": SECRET}).encode()
        outcome: list[Any] = []
        held = Held(kept, scope)
        Deferred.fromCoroutine(KINDS["aws_sigv4"].authorize(held.use(), made)).addBoth(outcome.append)
        headers = (*made.headers, *outcome[0].headers)
        self.assertEqual(made.body or b"", request.body)
        self.assertEqual(made.url, f"https://{request.host}{request.target}")
        self.assertNotIn("laceholder", repr(headers))
        return check_signature(made.method, made.url, headers, made.body or b"", ID, SECRET), dict(headers)

    def each(self) -> Iterable[ToolRequest]:
        """Yield requests of each service."""
        acme: dict[str, JSON] = {"Bucket": "acme"}
        s3 = client("s3")
        yield ask(client("sts"), "get_caller_identity")
        yield ask(client("sqs"), "send_message", QueueUrl=QUEUE, MessageBody="Hi ü")
        yield ask(client("sns"), "publish", TopicArn=TOPIC, Message="Hi + ü & =")
        for key in ("a b", "ü", "a+b=c", "a/b~c", "(x)!'*;,:@&$"):
            yield ask(s3, "get_object", **acme, Key=key)
            yield ask(s3, "put_object", **acme, Key=key, Body=b"Hello")
        yield ask(s3, "list_objects_v2", **acme, Prefix="a b+ü/", Delimiter="/")
        yield ask(s3, "get_bucket_policy", **acme)
        yield ask(s3, "delete_object", **acme, Key="a", VersionId="x+y=")
        yield put(x_amz_content_sha256="UNSIGNED-PAYLOAD")
        yield ToolRequest("ses_1", 1, f"s3.{REGION}.amazonaws.com", "GET", "/acme/a+b=c")

    def test_valid(self) -> None:
        """Each signature is what botocore computes for this request, by the real key, for the bound region."""
        for request in self.each():
            found = see(request)
            self.assertEqual(found.problem, "", request)
            signed, headers = self.send(request, found)
            if request.target == "/acme/a+b=c":
                self.assertTrue(headers["Authorization"])  # S3 encodes what curl does not, and botocore would
                continue
            self.assertEqual((signed.problem, signed.region), ("", REGION), request)

    def test_chunks(self) -> None:
        """What botocore sends in chunks with a checksum is sent as it is, and its checksum is not signed."""
        request = put(b"Hello")
        self.assertEqual(dict(request.headers)["X-Amz-Content-SHA256"], "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
        signed, headers = self.send(request, see(request))
        self.assertEqual(signed.problem, "")
        self.assertEqual(headers["Content-Encoding"], "aws-chunked")
        self.assertIn(b"5\r\nHello\r\n0\r\n", request.body)

    def test_protocols(self) -> None:
        """Answers have the form of the protocol."""
        for request, protocol in (
            (ask(client("sns"), "list_topics"), AWS_QUERY),
            (ask(client("sqs"), "list_queues"), AWS_JSON),
            (ask(client("s3"), "list_buckets"), AWS_S3),
        ):
            self.assertEqual(see(request).protocol, protocol)


class FormTests(SynchronousTestCase):
    """Repetitions."""

    def form(self, request: ToolRequest, varying: frozenset[str] = frozenset()) -> str:
        """Return the digest of a request's form."""
        found = see(request)
        return form_digest(request, declared(aws()), found.left_out, varying)

    def test_same(self) -> None:
        """The same command has the same form, whenever it is signed, and whatever its agent is called."""
        first = ask(client("sqs"), "send_message", QueueUrl=QUEUE, MessageBody="Hi")
        again = evolve(
            first,
            headers=tuple(
                (name, f"{value}1" if name.lower() in ("x-amz-date", "user-agent", "amz-sdk-invocation-id") else value)
                for name, value in first.headers
            ),
        )
        self.assertNotEqual(first, again)
        self.assertEqual(self.form(first), self.form(again))
        other = ask(client("sqs"), "send_message", QueueUrl=QUEUE, MessageBody="Ho")
        self.assertNotEqual(self.form(first), self.form(other))
        self.assertEqual(self.form(put()), self.form(put()))
        self.assertNotEqual(self.form(put()), self.form(put(b"y")))

    def test_varying(self) -> None:
        """A parameter that differs between repetitions is no part of it, in a form and in JSON."""
        token = frozenset({"ClientToken"})
        for one, other, headers in (
            (b"Action=A&ClientToken=1&B=2", b"Action=A&ClientToken=2&B=2", (FORM,)),
            (b'{"ClientToken": "1", "B": 2}', b'{"B": 2, "ClientToken": "2"}', (JSON_TYPE, SEND)),
        ):
            two = [call(each, *headers, service="sqs") for each in (one, other)]
            self.assertNotEqual(self.form(two[0]), self.form(two[1]))
            self.assertEqual(self.form(two[0], token), self.form(two[1], token))

    def test_declared(self) -> None:
        """The door gets the parameters that the connector declares as varying."""
        about = aws()
        tools = declared(about)
        changed = evolve(tools, aws={**tools.aws, "sns": AwsCalls(varying=frozenset({"Token"}))})
        found = recognise(call(b"Action=Publish", FORM), evolve(about, own_tools=changed))
        assert found.aws is not None
        self.assertEqual(found.aws.varying, {"Token"})
