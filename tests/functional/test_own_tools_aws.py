"""C{aws} and boto3 use AWS from a sandbox without a key; writes are approved, and signed when they are sent."""

from __future__ import annotations

import json
import sys
from typing import Any, cast

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.web.server import Site

from tests.extent import seldom
from tests.functional import canary, command_lines
from tests.functional.aws import BUCKET, HOSTS, KEY_ID, QUEUE, REGION, SECRET, TOPIC, Aws
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.operated import PASSPHRASE
from tests.functional.reactor import until
from tests.functional.test_own_tools import Inside, OwnToolsTestCase

USERS_TOKEN = "canary-of-a-session-8812"
_READS = f"""
import boto3
print(boto3.client("sts").get_caller_identity()["Account"])
print(boto3.client("s3").get_object(Bucket="{BUCKET}", Key="a ü+b=c.txt")["Body"].read().decode())
"""
_SENDS = f"""
import boto3, botocore
try:
    print(boto3.client("sqs").send_message(QueueUrl="{QUEUE}", MessageBody="Hi")["MessageId"])
except botocore.exceptions.ClientError as error:
    print(error)
"""


class AwsTestCase(OwnToolsTestCase):
    """A user of AWS, which is a double."""

    skip = None

    def setUp(self) -> None:
        """Begin with no network."""
        super().setUp()
        self.aws = Aws()

    async def begin(self, hold_seconds: int = 1) -> None:
        """Have a daemon, a key bound, and the service added."""
        site = cast(IProtocolFactory, Site(self.aws))
        self.behind = (await Internet.open(self, HOSTS, {HTTPS: site})).prefix
        await self.operator("vault", "init")
        await self.set_config(f"own_tools: {{hold_seconds: {hold_seconds}}}\n")
        words = ("binding", "setup", "builtin://aws", "--set", f"region={REGION}", "--secret-fd", "4")
        command = self.home.with_passphrase(PASSPHRASE, "aileron", *words)
        key = json.dumps({"access_key_id": KEY_ID, "secret_access_key": SECRET}).encode()
        self._expect(await self.run_command(attrs.evolve(command, feeds={**command.feeds, 4: key})), 0)
        await self.operator("own-tools", "add", "aws", "--yes")

    def enter(self, *options: str, **environment: str) -> Inside:
        """Launch the agent, whose user has a key of a session too."""
        programs = self.write_agent()
        command = self.home.script("aileron", "launch", "--sandbox", "--own-tools", "aws", *options, "opencode")
        theirs = {
            "PATH": f"{programs}:{command_lines.program('aws').parent}:{command.environment['PATH']}",
            "AWS_ACCESS_KEY_ID": "AKIACANARYOFTHEUSER0",
            "AWS_SESSION_TOKEN": USERS_TOKEN,
            "AWS_REGION": "us-east-1",
            **environment,
        }
        return Inside(self, self.start(attrs.evolve(command, environment={**command.environment, **theirs})))

    async def approve_one(self) -> str:
        """Approve the only run that waits, and return what the list said of it, when it was sent."""
        before = len(self.aws.effects)
        (waiting,) = await self.pending()
        await self.approve(waiting["id"])
        await until(self.reactor, lambda: len(self.aws.effects) > before, 30, "the effect")
        return json.dumps(waiting)


class BotoTests(AwsTestCase):
    """boto3."""

    async def test_boto3(self) -> None:
        """It reads at once. A write waits, is sent once when approved, and its repetition gets the answer."""
        await self.begin()
        inside = self.enter()
        (self.home.project / "reads.py").write_text(_READS)
        (self.home.project / "sends.py").write_text(_SENDS)
        read = await inside.run(f"{sys.executable} reads.py; env")
        self.assertEqual(read.stdout.splitlines()[:2], ["123456789012", "Hello"], read)
        self.assertIn(f"AWS_REGION={REGION}", read.stdout)
        for theirs in (USERS_TOKEN, "AKIACANARYOFTHEUSER0", SECRET, KEY_ID):
            self.assertNotIn(theirs, read.stdout)
        parked = await inside.run(f"{sys.executable} sends.py")
        self.assertIn("(PendingApproval) when calling the SendMessage operation", parked.stdout, parked)
        self.assertEqual(self.aws.effects, [])
        self.assertIn(f"SQS SendMessage in {REGION}", await self.approve_one())
        again = await inside.run(f"{sys.executable} sends.py")
        self.assertEqual(again.stdout, "message-1\n", again)
        self.assertEqual((self.aws.effects, self.aws.refused), (["SendMessage Hi"], []))
        await inside.end()
        self.assertNotIn(SECRET, json.dumps(await self.audit()))
        self.assertEqual(canary.in_files(self.home.aileron, SECRET), [])


class CommandLineTests(AwsTestCase):
    """C{aws}."""

    @seldom
    async def test_aws(self) -> None:
        """Its commands read at once, also by hosts of buckets; its writes wait, and are repeated after approval."""
        await self.begin()
        inside = self.enter()
        (self.home.project / "b c.txt").write_text("Text")
        for script, expected in (
            ("aws sts get-caller-identity", "123456789012"),
            ("aws s3 ls", BUCKET),
            (f"aws s3 ls s3://{BUCKET}", "a ü+b=c.txt"),
            (f"aws s3 cp 's3://{BUCKET}/a ü+b=c.txt' -", "Hello"),
            ("aws sqs list-queues", QUEUE),
        ):
            finished = await inside.run(f"export LC_ALL=C.UTF-8; {script}")
            self.assertIn(expected, finished.stdout, (finished, self.aws.refused))
        for script, effect in (
            (f"aws sqs send-message --queue-url {QUEUE} --message-body Hi", "SendMessage Hi"),
            (f"aws sns publish --topic-arn {TOPIC} --message Hi", "Publish Hi"),
            (f"aws s3 cp 'b c.txt' 's3://{BUCKET}/b ü.txt'", "PUT b ü.txt"),
            (f"aws s3 rm 's3://{BUCKET}/b ü.txt'", "DELETE b ü.txt"),
        ):
            parked = await inside.run(f"export LC_ALL=C.UTF-8; {script}")
            self.assertNotEqual(parked.exit_code, 0, parked)
            self.assertIn("waits for the user's approval", parked.stdout + parked.stderr)
            await self.approve_one()
            again = await inside.run(f"export LC_ALL=C.UTF-8; {script}")
            self.assertEqual(again.exit_code, 0, again)
            self.assertEqual((self.aws.effects[-1], self.aws.refused), (effect, []))
        self.assertEqual(len(self.aws.effects), 4)
        await inside.end()
        self.assertNotIn(SECRET, json.dumps(cast(Any, await self.audit())))
