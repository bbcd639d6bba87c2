"""The tests that every implementation of L{IConnector} must pass, to mix into a test case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from zope.interface import implementer
from zope.interface.verify import verifyObject

from aileron.base.converter import to_json
from aileron.base.json import JSON, utc
from aileron.credentials import place
from aileron.model.connectors import READ, WRITE, Outcome, Request, Sought
from aileron.model.errors import BindingFailed, CapabilityDenied
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer
from aileron.model.interfaces.vault import ICredential
from aileron.model.vault import Authorization, Scope

from ._case import MixedIn

_LONG = 3600.0


@implementer(ICredential)
@define
class MemoryCredential:
    """A credential with a given secret or error, which counts its uses.

    :ivar secret: the secret, or the exception that L{reveal} raises.
    :ivar format: the format of the header.
    :ivar renewable: whether a refused credential can be renewed.
    :ivar refusals: the refused authorizations.
    :ivar challenges: the challenge of each refusal.
    :ivar doubtful: the operation of each refusal, or empty if the credential is certainly the cause.
    :ivar acceptances: the accepted authorizations.
    """

    secret: bytes | Exception
    format: str = "Bearer {key}"
    renewable: bool = False
    opened: int = 0
    refusals: list[Authorization] = field(factory=list)
    challenges: list[str] = field(factory=list)
    doubtful: list[str] = field(factory=list)
    acceptances: list[Authorization] = field(factory=list)

    async def reveal(self) -> bytes:
        """Return the secret, or raise C{secret} if it is an exception."""
        self.opened += 1
        if isinstance(self.secret, Exception):
            raise self.secret
        return self.secret

    async def authorize(self, request: Request) -> Authorization:
        """Return the secret in the place that the request names.

        If C{secret} is an exception, raise it.
        """
        key = (await self.reveal()).decode("latin-1")
        placed = {"query": request.credential_query, "path": request.credential_path}
        settings = {name: text for name, text in placed.items() if text is not None}
        return place(key, Scope((), request.url, request.credential_header or "", self.format, settings))

    async def make_ready(self) -> None:
        """Raise the exception that the test set as C{secret}, or do nothing if it set bytes."""
        if isinstance(self.secret, Exception):
            raise self.secret

    async def refused(self, sent: Authorization, challenge: str = "", operation: str = "") -> bool:
        """Remember, for the test, that the service rejected the credential.

        :return: the value of C{renewable}.
        """
        self.doubtful.append(operation)
        self.refusals.append(sent)
        self.challenges.append(challenge)
        return self.renewable

    def accepted(self, sent: Authorization) -> None:
        """Remember, for the test, that the service accepted the credential."""
        self.acceptances.append(sent)


class ConnectorRig(Protocol):
    """The connector under test, which uses a credential, and a simulated service for it.

    :ivar reads: an operation declared C{read}.
    :ivar writes: an operation declared C{write} and not idempotent that sends the effect key.
    :ivar inputs: the inputs of both.
    """

    base_url: str
    reads: str
    writes: str
    inputs: Mapping[str, JSON]

    @property
    def connector(self) -> IConnector:
        """The connector under test."""

    def queue_answer(self, output: JSON) -> JSON:
        """Make the next request succeed with C{output}. A rig whose service has only one response ignores C{output}.

        :return: the output that the request will have.
        """

    def queue_silence(self) -> None:
        """Leave the next request without a response."""

    def advance(self, seconds: float) -> None:
        """Advance the clock and deliver pending bytes."""

    def sent(self) -> int:
        """Return the number of requests that the service received."""


class ConnectorContract(MixedIn):
    """Tests of L{IConnector}.  Mix into a C{SynchronousTestCase} and set L{rig}.

    :ivar rig: returns a new connector and its service.
    """

    rig: Callable[[], ConnectorRig]

    def inputs(self, rig: ConnectorRig, operation: str) -> Mapping[str, JSON]:
        """Return the inputs of C{operation}.  Override if the operations differ."""
        return rig.inputs

    def prepared(self, rig: ConnectorRig, operation: str, effect_key: str = "effect-1") -> Request:
        """Prepare the request of C{operation} with the rig's inputs."""
        return rig.connector.prepare(operation, self.inputs(rig, operation), rig.base_url, effect_key)

    def started(self, rig: ConnectorRig, operation: str, credential: ICredential | None = None) -> Deferred[Outcome]:
        """Prepare a request and send it: by C{read} if it only reads, else by C{invoke}."""
        request = self.prepared(rig, operation)
        send = rig.connector.read if request.effect == READ else rig.connector.invoke
        started = Deferred.fromCoroutine(send(request, credential or MemoryCredential(b"s3cret-value"), _LONG))
        rig.advance(0)
        return started

    def test_provides_the_interface(self) -> None:
        """The connector provides L{IConnector} with matching signatures."""
        self.assertTrue(verifyObject(IConnector, self.rig().connector))

    def test_describes_itself_alike(self) -> None:
        """The connector's description never changes."""
        connector = self.rig().connector
        self.assertEqual(connector.describe(), connector.describe())

    def test_declares_what_the_rig_says(self) -> None:
        """The description names the operations, their effects and the credential."""
        rig = self.rig()
        description = rig.connector.describe()
        self.assertEqual(READ, description.operations[rig.reads].effect)
        self.assertEqual(WRITE, description.operations[rig.writes].effect)
        self.assertFalse(description.operations[rig.writes].idempotent)
        self.assertIsNotNone(description.credential)

    def test_prepares_alike(self) -> None:
        """Equal arguments result in equal requests."""
        rig = self.rig()
        self.assertEqual(self.prepared(rig, rig.writes), self.prepared(rig, rig.writes))

    def test_request_says_what_it_is(self) -> None:
        """A request names its connector, operation, effect and credential header."""
        rig = self.rig()
        request, description = self.prepared(rig, rig.writes), rig.connector.describe()
        self.assertEqual((description.name, rig.writes, WRITE), (request.connector, request.operation, request.effect))
        self.assertEqual((description.credential and description.credential.header) or None, request.credential_header)

    def test_another_effect_is_another_request(self) -> None:
        """The effect key is part of the request, so the digest covers it."""
        rig = self.rig()
        self.assertNotEqual(
            to_json(self.prepared(rig, rig.writes, "effect-1")), to_json(self.prepared(rig, rig.writes, "effect-2"))
        )

    def test_compares_alike(self) -> None:
        """Normalizing an input twice gives one result, and unknown inputs are unchanged."""
        rig = self.rig()
        if not IInputNormalizer.providedBy(rig.connector):
            return
        normalizer = IInputNormalizer(rig.connector)
        for name, value in {**rig.inputs, "to": "bob <b@example.org>", "unknown": [1, None]}.items():
            form = normalizer.normalize_input(rig.writes, name, value)
            self.assertEqual(normalizer.normalize_input(rig.writes, name, form), form)
            self.assertEqual(normalizer.normalize_input("no_such_operation", name, value), value)

    def test_unknown_operation(self) -> None:
        """An undeclared operation is denied."""
        rig = self.rig()
        self.assertRaises(CapabilityDenied, rig.connector.prepare, "conjure", rig.inputs, rig.base_url, "effect-1")

    def test_undeclared_host(self) -> None:
        """A base URL on an undeclared host is denied."""
        rig = self.rig()
        elsewhere = "https://elsewhere.invalid"
        self.assertRaises(CapabilityDenied, rig.connector.prepare, rig.writes, rig.inputs, elsewhere, "effect-1")

    def test_read_refuses_an_effect(self) -> None:
        """A request with an effect is refused as a read, and nothing is sent."""
        rig = self.rig()
        reading = rig.connector.read(self.prepared(rig, rig.writes), MemoryCredential(b"s3cret-value"), _LONG)
        self.failureResultOf(Deferred.fromCoroutine(reading), CapabilityDenied)
        self.assertEqual(0, rig.sent())

    def test_success(self) -> None:
        """A successful request has an output and no fault, and is sent once."""
        rig = self.rig()
        for operation in (rig.reads, rig.writes):
            output = rig.queue_answer({"ts": "1"})
            outcome = self.successResultOf(self.started(rig, operation))
            self.assertEqual((output, None, True), (outcome.output, outcome.fault, outcome.sent))
        self.assertEqual(2, rig.sent())

    def test_credential_does_not_open(self) -> None:
        """If the credential cannot be revealed, its error is raised and nothing is sent."""
        rig = self.rig()
        closed = MemoryCredential(BindingFailed("It does not open."))
        self.failureResultOf(self.started(rig, rig.writes, closed), BindingFailed)
        self.assertEqual(0, rig.sent())

    def test_credential_is_opened_once_for_each_sending(self) -> None:
        """Preparing does not reveal the credential, and each request reveals it once."""
        rig = self.rig()
        rig.queue_answer({"ts": "1"})
        credential = MemoryCredential(b"s3cret-value")
        self.started(rig, rig.writes, credential)
        self.assertEqual(1, credential.opened)

    def test_too_slow(self) -> None:
        """If the service does not respond in time, the outcome is the error C{resource_limit_exceeded}.

        It says that the request was sent, and leaves open whether it had an effect.
        """
        rig = self.rig()
        rig.queue_silence()
        started = self.started(rig, rig.writes)
        self.assertNoResult(started)
        rig.advance(_LONG + 1)
        outcome = self.successResultOf(started)
        self.assertEqual("resource_limit_exceeded", outcome.fault and outcome.fault.kind)
        self.assertEqual((True, False), (outcome.sent, outcome.classified))

    def test_late(self) -> None:
        """After the timeout, a request that was sent waits C{late_seconds} longer for its response."""
        rig = self.rig()
        rig.queue_silence()
        request = self.prepared(rig, rig.writes)
        invoking = rig.connector.invoke(request, MemoryCredential(b"s3cret-value"), 5.0, 60.0)
        started = Deferred.fromCoroutine(invoking)
        rig.advance(0)
        rig.advance(5.0)
        rig.advance(59.0)
        self.assertNoResult(started)
        rig.advance(2.0)
        outcome = self.successResultOf(started)
        self.assertEqual((True, False), (outcome.sent, outcome.classified))

    def test_looks_for_nothing_undeclared(self) -> None:
        """An effect that is not reconcilable is not searched for, and nothing is sent."""
        rig = self.rig()
        at, operations = utc(1_700_000_000.0), rig.connector.describe().operations
        undeclared = rig.reads if operations[rig.writes].reconcilable else rig.writes
        self.assertFalse(operations[undeclared].reconcilable)
        sought = Sought(undeclared, self.inputs(rig, undeclared), rig.base_url, "effect-1", at, at)
        looking = rig.connector.reconcile(sought, MemoryCredential(b"s3cret-value"), 10.0)
        self.failureResultOf(Deferred.fromCoroutine(looking), CapabilityDenied)
        self.assertEqual(0, rig.sent())

    def test_cancelling(self) -> None:
        """Cancelling fails the Deferred at once."""
        rig = self.rig()
        rig.queue_silence()
        started = self.started(rig, rig.writes)
        started.cancel()
        self.failureResultOf(started, CancelledError)
