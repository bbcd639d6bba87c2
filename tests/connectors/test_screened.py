"""Of connectors written in Python: nothing of the secret passes back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import partial

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.base.waiting import Interrupted
from aileron.connectors._screened import Broke, Screened
from aileron.model.connectors import CredentialNeed, Outcome
from aileron.model.errors import BindingFailed
from aileron.model.interfaces.connectors import IConnector
from aileron.testing import ConnectorContract, MemoryCredential, ScriptedConnector, scripted_description

SECRET = "s3cret-of-some-length"
_NEED = CredentialNeed("api_key", "Authorization", "Basic {key}")


@define
class ScriptedRig:
    """The scripted connector, in the contract's hand."""

    clock: Clock = field(factory=Clock)
    inner: ScriptedConnector = field()
    base_url: str = "https://scripted.invalid"
    reads: str = "look"
    writes: str = "post"
    inputs: Mapping[str, JSON] = field(factory=lambda: {"text": "hello"})

    @inner.default
    def _(self) -> ScriptedConnector:
        return ScriptedConnector(scripted_description(credential=_NEED), self.clock)

    @property
    def connector(self) -> IConnector:
        return self.inner

    def queue_answer(self, output: JSON) -> JSON:
        self.inner.script.append(Outcome(output=output))
        return output

    def queue_silence(self) -> None:
        """A Deferred that nobody fires."""
        self.inner.script.append(Deferred())

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def sent(self) -> int:
        return len(self.inner.sendings)


class ScreenedRig(ScriptedRig):
    """The same behind the screen."""

    @property
    def connector(self) -> IConnector:
        return Screened(self.inner)


class ScriptedContractTests(ConnectorContract, SynchronousTestCase):
    """The double that other rooms' tests use keeps the contract."""

    rig = ScriptedRig


class ScreenedContractTests(ConnectorContract, SynchronousTestCase):
    """The screen keeps the contract."""

    rig = ScreenedRig


def _interrupt(notes: Mapping[str, JSON], asked: Deferred[Outcome]) -> None:
    asked.errback(Interrupted(notes))


class ScreenedTests(SynchronousTestCase):
    """What the screen adds."""

    def setUp(self) -> None:
        self.rig = ScreenedRig()

    def started(self, operation: str, secret: str = SECRET) -> Deferred[Outcome]:
        """One sending with a secret."""
        connector = self.rig.connector
        request = connector.prepare(operation, {}, self.rig.base_url, "effect-1")
        send = connector.read if operation == "look" else connector.invoke
        return Deferred.fromCoroutine(send(request, MemoryCredential(secret.encode()), 9))

    def test_interrupted(self) -> None:
        """What a connector tells of a call that is cancelled holds no secret either."""
        for told, expected in (({"refused": [SECRET]}, {"refused": ["[redacted]"], "echoed": ["plain"]}), ({}, {})):
            notes: Mapping[str, JSON] = told
            self.rig.inner.script.append(Deferred(partial(_interrupt, notes)))
            started = self.started("post")
            started.cancel()
            ended = self.failureResultOf(started, Interrupted).value
            assert isinstance(ended, Interrupted)
            self.assertEqual(ended.notes, expected)

    def test_echo(self) -> None:
        """A secret in an outcome is replaced and noted, of a read and of an effect."""
        for operation in ("look", "post"):
            self.rig.queue_answer({"you": SECRET})
            outcome = self.successResultOf(self.started(operation))
            self.assertEqual(({"you": "[redacted]"}, ["plain"]), (outcome.output, outcome.notes["echoed"]))

    def test_basic(self) -> None:
        """What the Basic scheme encodes is as secret as the encoding."""
        self.rig.queue_answer("correct horse")
        key = base64.b64encode(b"ada:correct horse").decode()
        self.assertEqual("[redacted]", self.successResultOf(self.started("post", key)).output)

    def test_error(self) -> None:
        """An error of ours that is raised stays what it is, without the secret."""
        self.rig.inner.script.append(BindingFailed(f"no {SECRET}", {"key": SECRET}))
        failure = self.failureResultOf(self.started("post"), BindingFailed)
        self.assertEqual(("no [redacted]", {"key": "[redacted]"}), (failure.value.message, failure.value.details))

    def test_strange_error(self) -> None:
        """Of anything else that is raised only the kind is told."""
        self.rig.inner.script.append(ValueError(f"https://x/?key={SECRET}"))
        failure = self.failureResultOf(self.started("post"), Broke)
        self.assertEqual("local://test/scripted raised ValueError", str(failure.value))
        self.assertEqual((None, None), (failure.value.__cause__, failure.value.__context__))

    def test_no_credential(self) -> None:
        """Without a credential an outcome passes as it is."""
        self.rig.queue_answer({"x": 1})
        connector = self.rig.connector
        request = connector.prepare("look", {}, self.rig.base_url, "effect-1")
        outcome = self.successResultOf(Deferred.fromCoroutine(connector.read(request, None, 9)))
        self.assertEqual(({"x": 1}, {}), (outcome.output, outcome.notes))
