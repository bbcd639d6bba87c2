"""A double of AWS: S3, SQS, SNS and STS, as far as C{aws} and boto3 ask them here. It checks each signature."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote

from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.connectors.aws import CHUNKS, check_signature

REGION = "eu-central-1"
KEY_ID, SECRET = "AKIDCANARY1234567", "wJalrXUtnFEMI/K7MDENG+canaryCANARYcanary"
BUCKET = "acme"
BUCKET_HOST = f"{BUCKET}.s3.{REGION}.amazonaws.com"
QUEUE = f"https://sqs.{REGION}.amazonaws.com/123456789012/jobs"
TOPIC = f"arn:aws:sns:{REGION}:123456789012:alerts"
HOSTS = (
    f"sts.{REGION}.amazonaws.com",
    f"sqs.{REGION}.amazonaws.com",
    f"{REGION}.queue.amazonaws.com",
    f"sns.{REGION}.amazonaws.com",
    f"s3.{REGION}.amazonaws.com",
    BUCKET_HOST,
)
_NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_BUCKETS = (
    f"<ListAllMyBucketsResult {_NAMESPACE}><Buckets><Bucket><Name>{BUCKET}</Name>"
    "<CreationDate>2026-01-01T00:00:00.000Z</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>"
)


class Aws(Resource):
    """One account, with one bucket.

    :ivar objects: by key.
    :ivar effects: what was written, in order.
    :ivar reads: what was read.
    :ivar refused: why requests were refused.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.objects: dict[str, bytes] = {"a ü+b=c.txt": b"Hello"}
        self.effects: list[str] = []
        self.reads: list[str] = []
        self.refused: list[str] = []

    def render(self, request: Request) -> bytes:
        """Answer one request."""
        assert request.content is not None
        body, host = request.content.read(), (request.getHeader("Host") or "").removesuffix(":443")
        headers = [
            (name.decode(), value.decode("latin-1"))
            for name, values in request.requestHeaders.getAllRawHeaders()
            for value in values
        ]
        url = f"https://{host}{request.uri.decode()}"
        signed = check_signature(request.method.decode(), url, headers, body, KEY_ID, SECRET)
        if signed.problem or signed.region != REGION:
            self.refused.append(f"{request.method.decode()} {url}: {signed}")
            request.setResponseCode(403)
            return b"<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error>"
        if signed.service == "s3":
            return self._answer_s3(request, host, body)
        target = request.getHeader("X-Amz-Target")
        if target is not None:
            return self._answer_json(request, target.rpartition(".")[2], json.loads(body))
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        return self._answer_form(request, form)

    def _answer_form(self, request: Request, form: Mapping[str, str]) -> bytes:
        request.setHeader("Content-Type", "text/xml")
        name = form["Action"]
        if name == "GetCallerIdentity":
            self.reads.append(name)
            inside = "<Arn>arn:aws:iam::123456789012:user/agent</Arn><Account>123456789012</Account>"
        else:
            self.effects.append(f"{name} {form.get('Message', '')}")
            inside = f"<MessageId>message-{len(self.effects)}</MessageId>"
        return f"<{name}Response><{name}Result>{inside}</{name}Result></{name}Response>".encode()

    def _answer_json(self, request: Request, name: str, asked: Mapping[str, Any]) -> bytes:
        request.setHeader("Content-Type", "application/x-amz-json-1.0")
        if name == "ListQueues":
            self.reads.append(name)
            return json.dumps({"QueueUrls": [QUEUE]}).encode()
        text = str(asked["MessageBody"])
        self.effects.append(f"{name} {text}")
        digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
        return json.dumps({"MessageId": f"message-{len(self.effects)}", "MD5OfMessageBody": digest}).encode()

    def _answer_s3(self, request: Request, host: str, body: bytes) -> bytes:
        method, key = request.method.decode(), unquote(request.path.decode()[1:])
        if host != BUCKET_HOST:
            self.reads.append(f"{method} {key or 'buckets'}")
            request.setHeader("Content-Type", "application/xml")
            return _BUCKETS.encode()
        if method in ("GET", "HEAD"):
            return self._read(request, method, key)
        self.effects.append(f"{method} {key}")
        if method == "DELETE":
            request.setResponseCode(204)
            self.objects.pop(key, None)
            return b""
        self.objects[key] = _join(body) if request.getHeader("X-Amz-Content-Sha256") == CHUNKS else body
        request.setHeader("ETag", '"0"')
        return b""

    def _read(self, request: Request, method: str, key: str) -> bytes:
        self.reads.append(f"{method} {key}")
        if not key:
            request.setHeader("Content-Type", "application/xml")
            listed = "".join(
                f"<Contents><Key>{each}</Key><Size>{len(content)}</Size>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                for each, content in self.objects.items()
            )
            return f"<ListBucketResult {_NAMESPACE}><Name>{BUCKET}</Name>{listed}</ListBucketResult>".encode()
        content = self.objects.get(key)
        if content is None:
            request.setResponseCode(404)
            return b"" if method == "HEAD" else b"<Error><Code>NoSuchKey</Code><Message>no</Message></Error>"
        request.setHeader("Content-Type", "text/plain")
        request.setHeader("ETag", '"0"')
        request.setHeader("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        if method == "HEAD":
            request.setHeader("Content-Length", str(len(content)))
            return b""
        return content


def _join(body: bytes) -> bytes:
    """Return the content of chunks, each of which has its length in front of it."""
    content = b""
    while body:
        line, _, body = body.partition(b"\r\n")
        length = int(line, 16)
        if not length:
            break
        content, body = content + body[:length], body[length + 2 :]
    return content
