"""Requests to AWS, held against those that botocore makes for the same call."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.model.connectors import Request
from tests.connectors.service import Service
from tests.connectors.test_builtin import spec

# Its package has no types.
Session: Any = import_module("botocore.session").Session
Config: Any = import_module("botocore.config").Config

BUCKET, KEY = "example-reports", "2030/a & b/ü=+.txt"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:alerts"
TEXT = {"topic": TOPIC, "subject": "Alert", "text": "It is down & out."}
ASKED: Mapping[str, JSON] = {"TopicArn": TOPIC, "Subject": "Alert", "Message": "It is down & out."}


class _CapturedError(Exception):
    """A request that would have left."""


class AwsTests(SynchronousTestCase):
    """The connectors C{builtin://s3} and C{builtin://sns}."""

    def by_botocore(self, service: str, operation: str, **parameters: JSON) -> Any:
        """The request that botocore would send."""
        made: list[Any] = []

        def capture(request: Any, **_more: object) -> None:
            made.append(request)
            raise _CapturedError

        client = Session().create_client(
            service,
            "eu-west-1",
            aws_access_key_id="AKIDEXAMPLE123456",
            aws_secret_access_key="example",
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )
        client.meta.events.register(f"before-send.{service}", capture)
        self.assertRaises(_CapturedError, getattr(client, operation), **parameters)
        return made[0]

    def ours(self, service: str, operation: str, **inputs: JSON) -> Request:
        """The request of the connector."""
        connector = Service().connector(spec(service))
        return connector.prepare(operation, inputs, f"https://{service}.eu-west-1.amazonaws.com", "effect-1")

    def test_s3(self) -> None:
        """Method, host, path, parameters and body are the same, also for a key that has to be encoded."""
        found, key = {"Bucket": BUCKET}, {"bucket": BUCKET, "key": KEY}
        listed: dict[str, JSON] = {"Prefix": "2030/", "Delimiter": "/", "MaxKeys": 10, "ContinuationToken": "1n=+"}
        inputs: dict[str, JSON] = {"prefix": "2030/", "delimiter": "/", "limit": 10, "cursor": "1n=+"}
        for ours, theirs in (
            (self.ours("s3", "list_buckets", limit=3), self.by_botocore("s3", "list_buckets", MaxBuckets=3)),
            (
                self.ours("s3", "list_objects", bucket=BUCKET, **inputs),
                self.by_botocore("s3", "list_objects_v2", **found, **listed),
            ),
            (self.ours("s3", "get_text", **key), self.by_botocore("s3", "get_object", **found, Key=KEY)),
            (self.ours("s3", "head_object", **key), self.by_botocore("s3", "head_object", **found, Key=KEY)),
            (self.ours("s3", "delete_object", **key), self.by_botocore("s3", "delete_object", **found, Key=KEY)),
            (
                self.ours("s3", "put_text", **key, text="Hällo", type="text/plain"),
                self.by_botocore("s3", "put_object", **found, Key=KEY, Body="Hällo".encode(), ContentType="text/plain"),
            ),
        ):
            mine, wanted = urlsplit(ours.url), urlsplit(theirs.url)
            self.assertEqual((ours.method, mine.netloc, mine.path), (theirs.method, wanted.netloc, wanted.path))
            without = {("encoding-type", "url"), ("x-id", "GetObject"), ("x-id", "PutObject")}
            without |= {("x-id", name) for name in ("ListBuckets", "DeleteObject")}
            self.assertEqual(sorted(parse_qsl(mine.query)), sorted({*parse_qsl(wanted.query)} - without))
            if ours.method == "PUT":
                self.assertEqual((ours.body, dict(ours.headers)["Content-Type"]), ("Hällo".encode(), "text/plain"))

    def test_sns(self) -> None:
        """The parameters of the form are the same."""
        for ours, theirs in (
            (self.ours("sns", "publish", **TEXT), self.by_botocore("sns", "publish", **ASKED)),
            (self.ours("sns", "list_topics", cursor="n"), self.by_botocore("sns", "list_topics", NextToken="n")),
        ):
            self.assertEqual((ours.method, ours.url), (theirs.method, theirs.url))
            body = theirs.body if isinstance(theirs.body, bytes) else theirs.body.encode()
            self.assertEqual(dict(parse_qsl((ours.body or b"").decode())), dict(parse_qsl(body.decode())))
        ordered = dict(parse_qsl((self.ours("sns", "publish_in_order", **TEXT, group="a").body or b"").decode()))
        asked = self.by_botocore("sns", "publish", **ASKED, MessageGroupId="a", MessageDeduplicationId="d").body
        body = asked if isinstance(asked, bytes) else asked.encode()
        self.assertEqual({**ordered, "MessageDeduplicationId": "d"}, dict(parse_qsl(body.decode())))
