"""Requests to AWS of an agent's own tools, made by a program that has all that a launcher has."""

from __future__ import annotations

import json
from typing import ClassVar

from tests.attacks.test_own_tools_way import WayTestCase
from tests.functional import canary
from tests.functional.operated import kinds

REGION = "eu-central-1"
PLACEHOLDER = "AKIAAILERON000000000"
KEY_ID, SECRET = "AKIDCANARY1234567", "wJalrXUtnFEMI/K7MDENG+canaryCANARYcanary"
_FOREIGN = "AKIACANARYOFTHEAGENT"
_FORM = "Content-Type: application/x-www-form-urlencoded"


def signed(service: str, region: str = REGION, key_id: str = PLACEHOLDER) -> str:
    """Return the header of a signature."""
    scope = f"{key_id}/20261130/{region}/{service}/aws4_request"
    return f"Authorization: AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={'0' * 64}"


def request(host: str, *lines: str, start: str = "POST / HTTP/1.1", body: str = "") -> str:
    """Return a request in one piece, after which the connection ends."""
    usual = (f"Host: {host}", f"Content-Length: {len(body)}", "Connection: close")
    return "\r\n".join((start, *usual, *lines, "", body))


class AwsTests(WayTestCase):
    """A user who let the tools of agents use AWS."""

    tools = "aws"
    hosts: ClassVar[dict[str, str]] = {
        "sns": f"sns.{REGION}.amazonaws.com",
        "sts": f"sts.{REGION}.amazonaws.com",
        "s3": f"acme.s3.{REGION}.amazonaws.com",
    }

    async def bind_service(self) -> None:
        """Bind a key."""
        key = json.dumps({"access_key_id": KEY_ID, "secret_access_key": SECRET})
        await self.feed(key, "credential", "setup", "builtin://aws", "--set", f"region={REGION}")

    async def ask(self, service: str, *requests: str) -> list[str]:
        """Send requests to a service by a new session, and return the answers."""
        session, pem = await self.opened()
        return await self.say(session, pem, requests, self.hosts[service])

    def call(self, service: str, *lines: str, start: str = "POST / HTTP/1.1", body: str = "") -> str:
        """Return a request to a service."""
        return request(self.hosts[service], *lines, start=start, body=body)

    async def test_refused(self) -> None:
        """Refused, in a form that AWS's tools read: another key, a presigned URL, another region or service, two
        operations, and content that is signed piece by piece. Nobody is asked, and no foreign key is recorded.
        """
        await self.begin()
        topics = "Action=ListTopics"
        query = f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={_FOREIGN}&X-Amz-Signature={'0' * 64}"
        chunks = "X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
        asked = {
            "sns": (
                self.call("sns", _FORM, signed("sns", key_id=_FOREIGN), body=topics),
                self.call("sns", _FORM, f"X-Amz-Security-Token: {_FOREIGN}", body=topics),
                self.call("sns", _FORM, signed("sns", "us-east-1"), body=topics),
                self.call("sns", _FORM, signed("sqs"), body=topics),
                self.call("sns", _FORM, signed("sns"), body=f"{topics}&Action=DeleteTopic"),
                self.call("sns", _FORM, signed("sns"), body=f"{topics}&action=DeleteTopic"),
                self.call("sns", _FORM, signed("sns"), start="POST /?Action=DeleteTopic HTTP/1.1", body=topics),
                self.call("sns", _FORM, signed("sns"), start="GET /?Action=DeleteTopic HTTP/1.1"),
                self.call("sns", _FORM, signed("sns"), start="PUT / HTTP/1.1", body=topics),
            ),
            "s3": (
                self.call("s3", start=f"PUT /a?{query} HTTP/1.1", body="x"),
                self.call("s3", "Content-Type: multipart/form-data; boundary=x", body="--x--"),
                self.call("s3", signed("s3"), chunks, start="PUT /a HTTP/1.1", body="1;chunk-signature=0\r\nx\r\n"),
            ),
        }
        for service, requests in asked.items():
            for sent, answer in zip(requests, await self.ask(service, *requests), strict=True):
                self.assertIn("HTTP/1.1 403 Refused by Aileron", answer, sent)
                self.assertRegex(answer, "<Code>(Refused|ForeignCredential)</Code>", sent)
                self.assertNotIn(_FOREIGN, answer)
        self.assertEqual([], await self.waiting(0))
        record = await self.audit()
        self.assertIn("own_tools.refused", kinds(record))
        self.assertNotIn(_FOREIGN, json.dumps(record))

    async def test_session_token(self) -> None:
        """What returns a credential waits, and is said to; the secret key is in no answer, record or file."""
        await self.begin()
        asked = self.call("sts", _FORM, signed("sts"), body="Action=GetSessionToken&Version=2011-06-15")
        (answer,) = await self.ask("sts", asked)
        self.assertIn("HTTP/1.1 403 Waits for approval", answer)
        self.assertIn("<Code>PendingApproval</Code>", answer)
        (waiting,) = await self.waiting(1)
        told = json.dumps(waiting) + json.dumps(await self.audit()) + answer
        self.assertIn(f"STS GetSessionToken in {REGION}", told)
        for each in (SECRET, KEY_ID):
            self.assertNotIn(each, told)
        self.assertEqual(canary.in_files(self.home.aileron, SECRET), [])
